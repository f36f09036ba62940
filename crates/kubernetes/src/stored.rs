//! The connection by a kubeconfig that a server keeps for others.
//!
//! Its author decides where the server connects and with which credentials, and nothing else: programs, files, proxies
//! and authorities of the server are not used. Responses have bounds, and are read one at a time.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::StreamExt as _;
use http::{Request, Response};
use http_body_util::{BodyStream, Limited, StreamBody};
use kube::Client;
use kube::client::Body;
use model::Error;
use net::resolve::Resolver;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{BoxError, service_fn};
use url::Url;

use super::connect::{CONNECT_TIMEOUT, KubernetesCluster, READ_TIMEOUT};
use net::client_tls::{ClientIdentity, client_config};

/// Largest response: a page of nodes with their images has some MiB. Units: bytes.
pub const MAX_RESPONSE_BYTES: usize = 4 << 20;
/// JSON values of a response, counted by the bytes that begin an object, an array or one more element: seven bytes of
/// JSON can take 600 in memory.
pub const MAX_RESPONSE_VALUES: usize = 100_000;

/// The members of a kubeconfig that are used. Source: Kubernetes, client-go, tools/clientcmd/api/v1/types.go.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct StoredKubeconfig {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
    current_context: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: StoredCluster,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: StoredUser,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: StoredContext,
}

#[derive(Deserialize)]
struct StoredContext {
    cluster: String,
    user: String,
}

/// Files and programs are unknown members here.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct StoredCluster {
    server: Url,
    certificate_authority_data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct StoredUser {
    client_certificate_data: Option<String>,
    client_key_data: Option<SecretString>,
    token: Option<SecretString>,
}

impl KubernetesCluster {
    /// Prepares a connection by the content of a kubeconfig that a server keeps; nothing is sent.
    ///
    /// Errors: Invalid – it lacks a part, or has more than an address, an authority and inline credentials.
    pub fn of_stored(kubeconfig: Value) -> Result<Self, Error> {
        let kubeconfig: StoredKubeconfig =
            serde_path_to_error::deserialize(kubeconfig).map_err(|error| unusable(&error))?;
        let (cluster, user) = kubeconfig.current()?;
        let url = cluster.server.clone();
        if url.scheme() != "https" {
            return Err(invalid(&"server: expected an address with https"));
        }
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .dns_resolver(Resolver::system())
            .redirect(Policy::none())
            .no_proxy()
            .http1_only()
            .tls_backend_preconfigured(tls(&cluster, &user)?)
            .default_headers(headers(user.token.as_ref())?)
            .build()
            .map_err(|error| Error::internal("building the client of a cluster", error))?;
        let server = url.to_string();
        let one = Arc::new(Semaphore::new(1));
        let service = service_fn(move |request| {
            let (client, url, one) = (client.clone(), url.clone(), one.clone());
            async move { respond(client, url, request, one.acquire_owned().await?).await }
        });
        Ok(Self::by(Client::new(service, "default"), server))
    }
}

impl StoredKubeconfig {
    fn current(self) -> Result<(StoredCluster, StoredUser), Error> {
        let current = &self.current_context;
        let context = self.contexts.iter().find(|it| it.name == *current);
        let context = context.ok_or_else(|| invalid(&"current-context: no such context"))?;
        let StoredContext { cluster, user } = &context.context;
        let found = self.clusters.into_iter().find(|it| it.name == *cluster);
        let found = found.zip(self.users.into_iter().find(|it| it.name == *user));
        found
            .map(|(cluster, user)| (cluster.cluster, user.user))
            .ok_or_else(|| invalid(&"the cluster or the user of its context is missing"))
    }
}

fn tls(cluster: &StoredCluster, user: &StoredUser) -> Result<ClientConfig, Error> {
    let authorities = pem(
        &cluster.certificate_authority_data,
        "certificate-authority-data",
    )?;
    let identity = match (&user.client_certificate_data, &user.client_key_data) {
        (Some(certificate), Some(key)) => Some((
            pem(certificate, "client-certificate-data")?,
            SecretString::from(pem(key.expose_secret(), "client-key-data")?),
        )),
        (None, None) => None,
        _ => {
            return Err(invalid(
                &"client-certificate-data and client-key-data belong together",
            ));
        }
    };
    let identity = identity.as_ref();
    let identity = identity.map(|(certificate, key)| ClientIdentity { certificate, key });
    let mut config = client_config(&authorities, identity).map_err(|error| invalid(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn headers(token: Option<&SecretString>) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
        let mut value = value.map_err(|_| invalid(&"token: has a character that no token has"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

/// Sends a request, whose URI is a path, to the server. The permit lasts until the response is read.
async fn respond(
    client: reqwest::Client,
    server: Url,
    request: Request<Body>,
    permit: OwnedSemaphorePermit,
) -> Result<Response<reqwest::Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let mut url = server;
    let path = format!("{}{}", url.path().trim_end_matches('/'), parts.uri.path());
    url.set_path(&path);
    url.set_query(parts.uri.query());
    let request = client.request(parts.method, url).headers(parts.headers);
    let response = request.body(body.collect_bytes().await?).send().await?;
    let response = Response::<reqwest::Body>::from(response);
    Ok(response.map(|body| bounded(body, permit)))
}

/// Fails a body that is larger, or has more values, than a response may have.
fn bounded(body: reqwest::Body, permit: OwnedSemaphorePermit) -> reqwest::Body {
    let mut values = 0;
    let frames = BodyStream::new(Limited::new(body, MAX_RESPONSE_BYTES)).map(move |frame| {
        let _held = &permit;
        let frame = frame?;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        values += data.iter().filter(|byte| b"{[,".contains(byte)).count();
        if values > MAX_RESPONSE_VALUES {
            let reason = format!("the response has more than {MAX_RESPONSE_VALUES} values");
            return Err(BoxError::from(reason));
        }
        Ok(frame)
    });
    reqwest::Body::wrap(StreamBody::new(frames))
}

fn pem(encoded: &str, member: &str) -> Result<String, Error> {
    let decoded = BASE64_STANDARD.decode(encoded).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| invalid(&format_args!("{member}: expected base64 of PEM")))
}

/// Names the member; serde's words show contents where a text is in the place of a list.
fn unusable(error: &serde_path_to_error::Error<serde_json::Error>) -> Error {
    let words = error.inner().to_string();
    let of_names = ["unknown field", "missing field"];
    let is_of_names = of_names.iter().any(|start| words.starts_with(start));
    let reason = if is_of_names {
        &words
    } else {
        "is not of its type"
    };
    invalid(&format_args!("{}: {reason}", error.path()))
}

fn invalid(reason: &dyn std::fmt::Display) -> Error {
    Error::invalid("kubeconfig", reason.to_string())
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use serde_json::json;
    use testkit::certificates::Authority;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn kubeconfig() -> Value {
        let authority = Authority::new("cluster").unwrap();
        json!({
            "apiVersion": "v1", "kind": "Config", "preferences": {},
            "clusters": [{ "name": "a", "cluster": {
                "server": "https://api.lab.test:6443",
                "certificate-authority-data": BASE64_STANDARD.encode(authority.certificate),
            }}],
            "users": [{ "name": "b", "user": { "token": "SECRET" } }],
            "contexts": [{ "name": "c", "context": { "cluster": "a", "user": "b", "namespace": "d" } }],
            "current-context": "c",
        })
    }

    fn refusal(pointer: &str, value: Value) -> String {
        let mut kubeconfig = kubeconfig();
        *kubeconfig.pointer_mut(pointer).unwrap() = value;
        let refused = KubernetesCluster::of_stored(kubeconfig).unwrap_err();
        let refused = refused.to_string();
        assert!(!refused.contains("SECRET"), "{refused}");
        refused
    }

    #[tokio::test]
    async fn a_kubeconfig_reaches_neither_programs_nor_files() {
        let cluster = KubernetesCluster::of_stored(kubeconfig()).unwrap();
        assert_eq!(cluster.url(), "https://api.lab.test:6443/");
        assert!(!format!("{cluster:?}").contains("SECRET"));
        for member in [
            "exec",
            "auth-provider",
            "tokenFile",
            "client-certificate",
            "client-key",
        ] {
            let refused = refusal("/users/0/user", json!({ member: "/etc/shadow" }));
            assert!(
                refused.contains(&format!("users[0].user.{member}: unknown field")),
                "{refused}"
            );
        }
        let refused = refusal(
            "/clusters/0/cluster",
            json!({ "server": "https://a", "certificate-authority": "/a" }),
        );
        assert!(refused.contains("certificate-authority"), "{refused}");
    }

    #[tokio::test]
    async fn a_wrong_part_is_named() {
        for (pointer, value, part) in [
            ("/clusters/0/cluster/server", json!("http://a"), "https"),
            (
                "/clusters/0/cluster/certificate-authority-data",
                json!("SECRET"),
                "base64",
            ),
            (
                "/clusters/0/cluster/certificate-authority-data",
                json!(""),
                "authorities",
            ),
            ("/users/0/user/token", json!("SECRET\n"), "token"),
            (
                "/users/0/user/token",
                json!(["SECRET"]),
                "users[0].user.token",
            ),
            ("/users", json!("SECRET"), "users: is not of its type"),
            (
                "/users/0",
                json!({ "name": "b" }),
                "users[0]: missing field `user`",
            ),
            ("/users/0/name", json!("e"), "user of its context"),
            ("/current-context", json!("e"), "current-context"),
        ] {
            let refused = refusal(pointer, value);
            assert!(refused.contains(part), "{refused}");
        }
    }

    /// The first line of the request to a server with a path, and the size of its response's body, unless it is refused.
    async fn exchange(body: String) -> (String, Option<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 1024];
            let count = stream.read(&mut request).await.unwrap();
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            // Fails once the client has had enough.
            let _ = stream.write_all(body.as_bytes()).await;
            String::from_utf8(request[..count].to_vec()).unwrap()
        });
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(net::trust::client_config(None, false).unwrap())
            .build()
            .unwrap();
        let server_url = format!("http://{address}/k8s/").parse().unwrap();
        let request = Request::get("/api/v1/nodes?limit=25").body(Body::empty());
        let one = Arc::new(Semaphore::new(1));
        let permit = one.clone().acquire_owned().await.unwrap();
        let response = respond(client, server_url, request.unwrap(), permit).await;
        let body = response.unwrap().into_body();
        assert_eq!(one.available_permits(), 0);
        let body = body.collect().await;
        assert_eq!(one.available_permits(), 1);
        let request = server.await.unwrap();
        let first = request.lines().next().unwrap().to_owned();
        (first, body.ok().map(|body| body.to_bytes().len()))
    }

    // limit: response of an installed cluster
    #[tokio::test]
    async fn a_response_has_a_bound() {
        let (request, size) = exchange(" ".repeat(MAX_RESPONSE_BYTES)).await;
        assert_eq!(request, "GET /k8s/api/v1/nodes?limit=25 HTTP/1.1");
        assert_eq!(size, Some(MAX_RESPONSE_BYTES));
        assert_eq!(exchange(" ".repeat(MAX_RESPONSE_BYTES + 1)).await.1, None);
    }

    // limit: values of a response of an installed cluster
    #[tokio::test]
    async fn a_response_has_few_values() {
        let largest = MAX_RESPONSE_VALUES;
        assert_eq!(exchange("[".repeat(largest)).await.1, Some(largest));
        assert_eq!(exchange(",{[".repeat(largest / 3 + 1)).await.1, None);
    }
}
