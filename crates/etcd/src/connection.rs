//! Connections by mutual TLS. Only the given authorities are trusted, never those of the system.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use net::resolve::Resolver;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use secrecy::SecretString;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::address::{EtcdAddress, EtcdAddressError};
use super::error::EtcdError;
use net::client_tls::{self, ClientIdentity, CredentialError};

/// Time of one TCP connection and its handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time of an alert after the handshake.
const ALERT_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of pings while a call waits, and time of their response.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Certificates and key of a client. Its Debug output hides the key.
#[derive(Clone, Debug)]
pub struct EtcdCredentials {
    /// Authorities of the servers' certificates, as PEM.
    pub authorities_pem: String,
    /// The client's certificate with its chain, as PEM.
    pub certificate_pem: String,
    /// Its private key, as PEM.
    pub key_pem: SecretString,
}

impl EtcdCredentials {
    /// Errors: Credentials.
    pub(super) fn client_config(&self) -> Result<ClientConfig, EtcdError> {
        let identity = ClientIdentity {
            certificate: &self.certificate_pem,
            key: &self.key_pem,
        };
        let config = client_tls::client_config(&self.authorities_pem, Some(identity));
        let mut config = config
            .map_err(|CredentialError { part, reason }| EtcdError::Credentials { part, reason })?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

/// A channel to `address`, which connects at the first call and again after a failure.
pub(super) fn channel(
    address: &EtcdAddress,
    tls: Arc<ClientConfig>,
    resolver: Resolver,
) -> Result<Channel, EtcdError> {
    // TLS is the connector's; the URI names the authority of requests.
    let uri = address.to_string().replacen("https://", "http://", 1);
    let endpoint = Endpoint::from_shared(uri).map_err(|error| EtcdAddressError {
        url: address.to_string(),
        reason: error.to_string(),
    })?;
    let endpoint = endpoint
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    let address = address.clone();
    let connector = service_fn(move |_: http::Uri| {
        let (address, tls, resolver) = (address.clone(), Arc::clone(&tls), resolver.clone());
        async move {
            let connected = connect(&address, tls, &resolver).await;
            connected.map(TokioIo::new)
        }
    });
    Ok(endpoint.connect_with_connector_lazy(connector))
}

async fn connect(
    address: &EtcdAddress,
    tls: Arc<ClientConfig>,
    resolver: &Resolver,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
    let addresses = resolver.lookup(&address.host).await;
    let addresses = addresses.map_err(io::Error::other)?;
    let connector = TlsConnector::from(tls);
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for ip in addresses {
        let attempt = async {
            let socket = TcpStream::connect((ip, address.port)).await?;
            socket.set_nodelay(true)?;
            connector.connect(name.clone(), socket).await
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, attempt).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    Err(last)
}

/// The reason for which a server closes connections. It refuses a client's certificate after the handshake, and the
/// HTTP/2 client reports a closed connection then, without the alert.
pub(super) async fn closing_alert(
    address: &EtcdAddress,
    tls: Arc<ClientConfig>,
    resolver: &Resolver,
) -> Option<io::Error> {
    let mut stream = connect(address, tls, resolver).await.ok()?;
    // Servers that accept the client send their settings, or wait for its.
    let read = tokio::time::timeout(ALERT_TIMEOUT, stream.read_u8()).await;
    read.ok()?.err()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_key_is_not_printed() {
        let credentials = EtcdCredentials {
            authorities_pem: String::new(),
            certificate_pem: String::new(),
            key_pem: "SECRET".into(),
        };
        assert!(!format!("{credentials:?}").contains("SECRET"));
    }
}
