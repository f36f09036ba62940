//! HTTP clients of servers.

use std::time::Duration;

use net::resolve::Resolver;
use rustls::ClientConfig;

use crate::{Error, tls};

/// Long enough for a busy server, short enough to notice a dead one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence of the other side.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// A client that trusts the system's roots and `ca_pem`, or, when `insecure`, any certificate. Its connections are
/// balanced over the addresses of a host.
///
/// Errors: when `ca_pem` is no PEM certificate.
pub fn http_client(ca_pem: Option<&[u8]>, insecure: bool) -> Result<reqwest::Client, Error> {
    build(trusting(ca_pem, insecure)?)
}

/// A client for the server's own health: it trusts any certificate, since the server may have any name. A server that
/// asks for client certificates gets its own.
///
/// Errors: when that cannot be loaded.
pub(crate) async fn own_client(server: Option<&tls::TlsConfig>) -> Result<reqwest::Client, Error> {
    let mut config = trusting(None, true)?;
    if let Some(server) = server.filter(|server| server.clients.is_some()) {
        config.client_auth_cert_resolver = tls::own_identity(&server.files).await?;
    }
    build(config)
}

fn trusting(ca_pem: Option<&[u8]>, insecure: bool) -> Result<ClientConfig, Error> {
    net::trust::client_config(ca_pem, insecure)
        .map_err(|e| Error::new("reading the trusted certificates", e))
}

fn build(tls: ClientConfig) -> Result<reqwest::Client, Error> {
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .dns_resolver(Resolver::system())
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|e| Error::new("building the HTTP client", e))
}
