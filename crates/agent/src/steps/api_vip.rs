//! Step `api-vip-connectivity-check`: whether the host gets its ignition from the cluster that it joins.
//!
//! Source: assisted-installer-agent, src/apivip_check.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::steps::{ApiVipConnectivityRequest, ApiVipConnectivityResponse};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::Value;

use super::context::{StepOutcome, only};
use crate::fetch;

const IGNITION_TYPE: &str = "application/vnd.coreos.ignition+json; version=3.2.0";
/// Files that describe the cluster to the service; all others are dropped, since ignitions are long.
const KEPT_FILES: [&str; 3] = [
    "/etc/kubernetes/manifests/coredns.yaml",
    "/etc/kubernetes/manifests/keepalived.yaml",
    "/etc/kubernetes/kubeconfig",
];

pub(super) async fn run(arguments: &[String]) -> Result<StepOutcome, String> {
    let request: ApiVipConnectivityRequest = only(arguments)?;
    let found = match download(&request).await {
        Ok(body) => filtered(&body),
        Err(error) => Err(format!("ignition file download failed: {error}")),
    };
    let (ignition, download_error) = match found {
        Ok(ignition) => (ignition, String::new()),
        Err(error) => (String::new(), error),
    };
    StepOutcome::json(&ApiVipConnectivityResponse {
        is_success: download_error.is_empty(),
        url: request.url,
        download_error,
        ignition,
    })
}

async fn download(request: &ApiVipConnectivityRequest) -> Result<Vec<u8>, String> {
    let decode = |text: &String| {
        let pem = STANDARD.decode(text);
        pem.map_err(|error| format!("the CA certificate is not base64: {error}"))
    };
    let pem = request.ca_certificate.as_ref().map(decode).transpose()?;
    let client = fetch::client(pem.as_deref()).map_err(|error| error.chain())?;
    let mut get = client.get(&request.url).header(ACCEPT, IGNITION_TYPE);
    if let Some(token) = &request.ignition_endpoint_token {
        get = get.header(AUTHORIZATION, secret(&format!("Bearer {token}"))?);
    }
    for header in &request.request_headers {
        let name: HeaderName = header
            .key
            .parse()
            .map_err(|error| format!("header {:?}: {error}", header.key))?;
        get = get.header(name, secret(&header.value)?);
    }
    let body = fetch::get(get).await?;
    if body.is_empty() {
        return Err("the answer is empty".to_owned());
    }
    Ok(body)
}

fn secret(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text).map_err(|error| error.to_string())?;
    value.set_sensitive(true);
    Ok(value)
}

/// The parts of an ignition that the service reads: encryption of disks, and three files.
fn filtered(body: &[u8]) -> Result<String, String> {
    let wrong = |reason: &dyn std::fmt::Display| {
        format!(
            "the answer is no ignition, it begins with {:?}: {reason}",
            fetch::beginning(body)
        )
    };
    let ignition: Value = serde_json::from_slice(body).map_err(|error| wrong(&error))?;
    let version = ignition["ignition"]["version"].as_str().unwrap_or_default();
    if !version.starts_with("3.") {
        return Err(wrong(&format_args!("version {version:?}")));
    }
    let storage = &ignition["storage"];
    let is_kept = |file: &&Value| {
        file["path"]
            .as_str()
            .is_some_and(|path| KEPT_FILES.contains(&path))
    };
    let files: Vec<&Value> = storage["files"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(is_kept)
        .collect();
    let mut kept = serde_json::json!({
        "ignition": ignition["ignition"],
        "storage": { "files": files },
    });
    if !storage["luks"].is_null() {
        kept["storage"]["luks"] = storage["luks"].clone();
    }
    Ok(kept.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_parts_are_dropped() {
        let ignition = r#"{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"a"}]},
            "storage":{"luks":[{"name":"root"}],"files":[{"path":"/etc/kubernetes/kubeconfig"},{"path":"/etc/other"}]}}"#;
        let kept = filtered(ignition.as_bytes()).unwrap();
        assert!(kept.contains("/etc/kubernetes/kubeconfig") && kept.contains("luks"));
        assert!(!kept.contains("/etc/other") && !kept.contains("units"));
        assert!(filtered(b"<html>").unwrap_err().contains("<html>"));
        assert!(filtered(b"{}").is_err());
    }

    #[tokio::test]
    async fn failures_are_answers() {
        let request = r#"{"url":"http://127.0.0.1:1/config/worker"}"#.to_owned();
        let outcome = run(&[request]).await.unwrap();
        assert_eq!(outcome.exit_code, 0);
        let response: ApiVipConnectivityResponse = serde_json::from_str(&outcome.output).unwrap();
        assert!(!response.is_success && response.download_error.contains("download failed"));
    }
}
