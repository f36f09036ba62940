//! Connections by mutual TLS. Only the given authorities are trusted, never those of the system.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use net::resolve::Resolver;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::address::EtcdAddress;
use super::error::EtcdError;

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
        let wrong = |part: &'static str| {
            move |error: &dyn std::fmt::Display| EtcdError::Credentials {
                part,
                reason: error.to_string(),
            }
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authorities_pem, "authorities")? {
            roots
                .add(certificate)
                .map_err(|error| wrong("authorities")(&error))?;
        }
        let chain = certificates(&self.certificate_pem, "client certificate")?;
        // The error of a wrong key does not contain it.
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.expose_secret().as_bytes())
            .map_err(|error| wrong("client key")(&error))?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("TLS versions")(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| wrong("client key")(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

fn certificates(pem: &str, part: &'static str) -> Result<Vec<CertificateDer<'static>>, EtcdError> {
    let wrong = |reason: String| EtcdError::Credentials { part, reason };
    let found = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(format!("expected PEM: {error}")))?;
    if found.is_empty() {
        return Err(wrong("expected PEM with a certificate".to_owned()));
    }
    Ok(found)
}

/// A channel to `address`, which connects at the first call and again after a failure.
pub(super) fn channel(
    address: &EtcdAddress,
    tls: Arc<ClientConfig>,
    resolver: Resolver,
) -> Result<Channel, EtcdError> {
    // TLS is the connector's; the URI names the authority of requests.
    let uri = address.to_string().replacen("https://", "http://", 1);
    let endpoint = Endpoint::from_shared(uri).map_err(|error| EtcdError::Address {
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
    use testkit::certificates::Authority;

    fn credentials() -> EtcdCredentials {
        let authority = Authority::new("etcd").unwrap();
        let (certificate_pem, key) = authority.sign(&["127.0.0.1"]).unwrap();
        EtcdCredentials {
            authorities_pem: authority.certificate,
            certificate_pem,
            key_pem: key.into(),
        }
    }

    #[test]
    fn the_wrong_part_is_named_without_its_content() {
        let part = |change: fn(&mut EtcdCredentials)| {
            let mut credentials = credentials();
            change(&mut credentials);
            match credentials.client_config().unwrap_err() {
                EtcdError::Credentials { part, reason } => {
                    assert!(!reason.contains("SECRET"), "{reason}");
                    part
                }
                other => panic!("{other}"),
            }
        };
        credentials().client_config().unwrap();
        assert_eq!(part(|it| it.authorities_pem.clear()), "authorities");
        assert_eq!(
            part(|it| it.certificate_pem = "SECRET".to_owned()),
            "client certificate"
        );
        assert_eq!(part(|it| it.key_pem = "SECRET".into()), "client key");
        // A key of another certificate.
        assert_eq!(
            part(|it| it.key_pem = super::tests::credentials().key_pem),
            "client key"
        );
    }

    #[test]
    fn the_key_is_not_printed() {
        let mut credentials = credentials();
        credentials.key_pem = "SECRET".into();
        assert!(!format!("{credentials:?}").contains("SECRET"));
    }
}
