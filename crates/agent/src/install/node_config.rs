//! The machine configuration that a host will have as a node: the machine config server of the control plane puts it into
//! the ignition that the host's own ignition names.
//!
//! Source: openshift/assisted-installer, src/ops, GetEncapsulatedMC.

use std::path::Path;
use std::time::Duration;

use ignition::data_url;
use reqwest::header::ACCEPT;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::{Error, fetch};

/// The file with the configuration that the node is to have.
const FILE: &str = "/etc/ignition-machine-config-encapsulated.json";
const MEDIA_TYPE: &str = "application/vnd.coreos.ignition+json; version=3.2.0";
/// The server starts with the control plane.
const TIMEOUT: Duration = Duration::from_mins(20);
const INTERVAL: Duration = Duration::from_secs(5);

/// The parts of a machine configuration that a restart applies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct NodeConfig {
    /// Reference of the operating system's image.
    #[serde(rename = "osImageURL")]
    pub(super) os_image: String,
    #[serde(rename = "kernelArguments", default)]
    pub(super) kernel_arguments: Vec<String>,
}

impl NodeConfig {
    /// Asks the machine config server until it answers.
    ///
    /// Errors: the host's ignition names none; it does not answer in time.
    pub(super) async fn fetch(ignition: &Path) -> Result<Self, Error> {
        let doing = "reading the machine configuration";
        let content = std::fs::read(ignition)
            .map_err(|error| Error::io(format!("reading {}", ignition.display()), error))?;
        let pointer =
            IgnitionPointer::parse(&content).map_err(|problem| Error::new(doing, problem))?;
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let content = tokio::time::timeout_at(deadline, pointer.content()).await;
            let problem = match content {
                Ok(content) => match content.and_then(|content| Self::parse(&content)) {
                    Ok(config) => return Ok(config),
                    Err(problem) => problem,
                },
                Err(_) => format!("no answer within {TIMEOUT:?}"),
            };
            if Instant::now() + INTERVAL > deadline {
                return Err(Error::new(doing, problem));
            }
            tracing::info!(problem, "machine configuration not read, trying again");
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// The configuration inside an ignition.
    fn parse(ignition: &[u8]) -> Result<Self, String> {
        let ignition = json(ignition)?;
        let files = list(&ignition, "/storage/files");
        let file = files
            .iter()
            .find(|file| file["path"] == FILE)
            .ok_or_else(|| format!("the ignition has no file {FILE}"))?;
        let source = file.pointer("/contents/source").and_then(Value::as_str);
        let content = data_url::decode(source.unwrap_or_default());
        let content = content.map_err(|error| format!("{FILE}: {error}"))?;
        let mut config = json(&unpacked(content)?)?;
        let config: Self = serde_json::from_value(config["spec"].take())
            .map_err(|error| format!("{FILE}: {error}"))?;
        if config.os_image.is_empty() {
            return Err(format!("{FILE} has no osImageURL"));
        }
        Ok(config)
    }
}

/// The source of the ignition that replaces the host's, with the certificates that it is trusted by.
#[derive(Debug, PartialEq, Eq)]
struct IgnitionPointer {
    source: String,
    certificates: Option<Vec<u8>>,
}

impl IgnitionPointer {
    fn parse(ignition: &[u8]) -> Result<Self, String> {
        let ignition = json(ignition)?;
        let first = |path: &str| {
            let sources = list(&ignition, path).iter();
            let mut sources = sources.filter_map(|entry| entry["source"].as_str());
            sources.find(|source| !source.is_empty()).map(str::to_owned)
        };
        let source = first("/ignition/config/merge")
            .ok_or("the host's ignition names no other to be merged with")?;
        let certificates = first("/ignition/security/tls/certificateAuthorities");
        let certificates = certificates
            .map(|source| data_url::decode(&source))
            .transpose();
        Ok(Self {
            source,
            certificates: certificates.map_err(|error| format!("certificates: {error}"))?,
        })
    }

    async fn content(&self) -> Result<Vec<u8>, String> {
        if data_url::is_data_url(&self.source) {
            let content = data_url::decode(&self.source).map_err(|error| error.to_string())?;
            return unpacked(content);
        }
        let client = fetch::client(self.certificates.as_deref());
        let client = client.map_err(|error| error.chain())?;
        fetch::get(client.get(&self.source).header(ACCEPT, MEDIA_TYPE)).await
    }
}

fn json(content: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(content).map_err(|error| format!("unexpected JSON: {error}"))
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    let list = value.pointer(path).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Compressed contents begin with the number of gzip.
fn unpacked(content: Vec<u8>) -> Result<Vec<u8>, String> {
    if content.starts_with(&[0x1f, 0x8b]) {
        return data_url::gunzip(&content).map_err(|error| error.to_string());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::HeaderMap;
    use axum::routing::get;
    use serde_json::json;

    use super::*;

    fn rendered(content: &str) -> String {
        let file = json!({ "path": FILE, "contents": { "source": content } });
        let other = json!({ "path": "/etc/hostname", "contents": { "source": "data:,a" } });
        json!({ "ignition": { "version": "3.2.0" }, "storage": { "files": [other, file] } })
            .to_string()
    }

    fn config() -> String {
        let spec =
            json!({ "osImageURL": "quay.io/a/os@sha256:1", "kernelArguments": ["a=1", "b"] });
        json!({ "kind": "MachineConfig", "spec": spec }).to_string()
    }

    async fn fetched(source: &str) -> Result<NodeConfig, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.ign");
        let pointer = json!({ "ignition": { "config": { "merge": [{}, { "source": source }] } } });
        std::fs::write(&path, pointer.to_string()).unwrap();
        NodeConfig::fetch(&path).await
    }

    #[tokio::test]
    async fn the_server_s_configuration_is_read() {
        let ignition = rendered(&data_url::gzip_base64(config().as_bytes()));
        let answer = ignition.clone();
        let app = Router::new().route(
            "/config/worker",
            get(move |headers: HeaderMap| async move {
                assert_eq!(headers["accept"], MEDIA_TYPE);
                answer
            }),
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let expected = NodeConfig {
            os_image: "quay.io/a/os@sha256:1".to_owned(),
            kernel_arguments: vec!["a=1".to_owned(), "b".to_owned()],
        };
        let by_http = fetched(&format!("http://{address}/config/worker")).await;
        assert_eq!(by_http.unwrap(), expected);
        let embedded = fetched(&data_url::gzip_base64(ignition.as_bytes())).await;
        assert_eq!(embedded.unwrap(), expected);
    }

    #[test]
    fn other_ignitions_are_refused() {
        for (ignition, problem) in [
            ("{", "unexpected JSON"),
            ("{}", "no file"),
            (&rendered("data:,x"), "unexpected JSON"),
            (&rendered("http://x"), "data:"),
            (&rendered("data:,{\"spec\":{}}"), "osImageURL"),
            (
                &rendered("data:,{\"spec\":{\"osImageURL\":\"\"}}"),
                "no osImageURL",
            ),
        ] {
            let error = NodeConfig::parse(ignition.as_bytes()).unwrap_err();
            assert!(error.contains(problem), "{ignition}: {error}");
        }
        let error = IgnitionPointer::parse(b"{}").unwrap_err();
        assert!(error.contains("names no other"), "{error}");
    }

    #[test]
    fn certificates_are_those_of_the_ignition() {
        let ignition = json!({ "ignition": {
            "config": { "merge": [{ "source": "https://api-int.a:22623/config/master" }] },
            "security": { "tls": { "certificateAuthorities": [{ "source": "data:,pem" }] } },
        } });
        let pointer = IgnitionPointer::parse(ignition.to_string().as_bytes()).unwrap();
        assert_eq!(pointer.source, "https://api-int.a:22623/config/master");
        assert_eq!(pointer.certificates.as_deref(), Some(&b"pem"[..]));
    }
}
