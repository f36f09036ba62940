//! Clients of checked services: for single requests, for registries, and the handshake alone.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::Error;
use net::resolve::Resolver;
use oci_client::{Client, ClientOptions};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::site::SiteFacts;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A repository that need not exist: its answer shows whether the login is accepted.
pub(super) const PROBE: &str = "atoll/doctor:probe";

/// A client for single requests, without redirects.
pub(super) fn client(ca: Option<&[u8]>, insecure: bool) -> Result<reqwest::Client, String> {
    let tls = net::trust::client_config(ca, insecure).map_err(|e| e.to_string())?;
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Resolver::system())
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(|e| e.to_string())
}

/// A client of HTTP/2 without TLS.
pub(super) fn http2_client() -> Result<reqwest::Client, String> {
    let tls = net::trust::client_config(None, true).map_err(|e| e.to_string())?;
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http2_prior_knowledge()
        .connect_timeout(CONNECT_TIMEOUT)
        .no_proxy()
        .build()
        .map_err(|e| e.to_string())
}

/// A client of the local registry, and of others that have logins beside it.
pub(super) fn registry_client(site: &SiteFacts) -> Result<Client, Error> {
    let credentials = match &site.registry {
        Some(registry) => &registry.credentials,
        None => &site.logins,
    };
    Client::new(ClientOptions {
        credentials: credentials.clone(),
        ca_pem: site.ca_pem.clone(),
        mirrors: site.mirrors.clone(),
        insecure: site.is_insecure,
        attempts: Some(1),
        ..ClientOptions::default()
    })
}

/// The chain that a server presents for `name`, unverified.
///
/// Errors: no connection, no TLS, no certificate.
pub(super) async fn handshake(
    address: SocketAddr,
    name: &str,
) -> std::io::Result<Vec<CertificateDer<'static>>> {
    let invalid = |reason: String| std::io::Error::new(ErrorKind::InvalidInput, reason);
    let config = net::trust::client_config(None, true).map_err(|e| invalid(e.to_string()))?;
    let server = ServerName::try_from(name.to_owned()).map_err(|e| invalid(e.to_string()))?;
    let socket = TcpStream::connect(address).await?;
    let connected = TlsConnector::from(Arc::new(config)).connect(server, socket);
    let connected = connected.await?;
    let (_, session) = connected.get_ref();
    let chain = session.peer_certificates().unwrap_or_default();
    if chain.is_empty() {
        return Err(invalid("it presents no certificate".to_owned()));
    }
    Ok(chain.iter().map(|one| one.clone().into_owned()).collect())
}
