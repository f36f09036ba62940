//! Requests of steps to servers other than the service.

use std::time::Duration;

use net::redirect;
use net::resolve::Resolver;
use net::web::shown;
use reqwest::{Client, ClientBuilder, RequestBuilder};

use crate::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For a whole request.
const TIMEOUT: Duration = Duration::from_mins(2);
const READ_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest body. Units: bytes.
const MAX_BODY: usize = 32 << 20;
/// Longest part of a refusal in an error. Units: characters.
const MAX_REASON: usize = 512;

/// A client that trusts the system's certificates and `ca_pem`. Headers with secrets do not follow redirects to other
/// servers.
///
/// Errors: no certificate in `ca_pem`.
pub(crate) fn client(ca_pem: Option<&[u8]>) -> Result<Client, Error> {
    build(ca_pem, false, |builder| builder.timeout(TIMEOUT))
}

/// A client for files of any length, which end when the server is silent.
///
/// Errors: no certificate in `ca_pem`.
pub(crate) fn download_client(ca_pem: Option<&[u8]>, is_insecure: bool) -> Result<Client, Error> {
    build(ca_pem, is_insecure, |builder| {
        builder.read_timeout(READ_TIMEOUT)
    })
}

fn build(
    ca_pem: Option<&[u8]>,
    is_insecure: bool,
    limit: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, Error> {
    let tls = net::trust::client_config(ca_pem, is_insecure)
        .map_err(|error| Error::new("reading the trusted certificates", error))?;
    limit(Client::builder())
        .connect_timeout(CONNECT_TIMEOUT)
        .dns_resolver(Resolver::system())
        .redirect(redirect::policy())
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|error| Error::new("building the HTTP client", error))
}

/// The body of a successful response.
///
/// Errors: no response, or one that is too long or none of success, as text, which has no secret of the URL.
pub(crate) async fn get(request: RequestBuilder) -> Result<Vec<u8>, String> {
    let (client, request) = request.build_split();
    let request = request
        .map_err(|error| Error::new("building the request failed", error.without_url()).chain())?;
    let url = shown(request.url());
    let broken = |error: reqwest::Error| {
        Error::new(format!("the request to {url} failed"), error.without_url()).chain()
    };
    let mut response = redirect::send(&client, request)
        .await
        .map_err(broken)?
        .response;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(format!("the answer has more than {MAX_BODY} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    if status.is_success() {
        return Ok(body);
    }
    Err(format!(
        "the server answered {status}: {}",
        beginning(&body)
    ))
}

/// The beginning of a text for an error.
pub(crate) fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(body)
        .chars()
        .take(MAX_REASON)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn errors_have_no_secret_of_the_url() {
        // Its port is free again once the listener is dropped.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let client = client(None).unwrap();
        let url = format!("http://user:secret-1@{address}/config?token=secret-2#secret-3");
        let error = get(client.get(url)).await.unwrap_err();
        assert!(
            error.contains(&format!("http://{address}/config")),
            "{error}"
        );
        assert!(
            !error.contains("secret") && !error.contains("user"),
            "{error}"
        );
        for url in [
            "secret-1",
            "http://user:secret-1@[::/?token=secret-2",
            "file:///a?token=secret",
        ] {
            let error = get(client.get(url)).await.unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
