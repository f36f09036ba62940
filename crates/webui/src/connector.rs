//! Connections to servers by URL, with TLS for https.

use std::sync::Arc;

use concurrency::BoxError;
use net::resolve::Resolver;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;
use url::Url;

/// A plain connection, or one with TLS.
pub(crate) type ServerStream = Either<TcpStream, TlsStream<TcpStream>>;

/// The configuration for HTTP/1.1.
pub(crate) fn http1(mut tls: ClientConfig) -> Arc<ClientConfig> {
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(tls)
}

/// Opens connections for HTTP/1.1.
pub(crate) struct Connector {
    names: Resolver,
    tls: Arc<ClientConfig>,
}

impl Connector {
    /// `tls` is of [`http1`].
    pub(crate) fn new(tls: Arc<ClientConfig>, names: Resolver) -> Self {
        Self { names, tls }
    }

    /// A connection to the host of `url`.
    ///
    /// Errors: unknown name, no route, refused, another certificate.
    pub(crate) async fn open(&self, url: &Url) -> Result<ServerStream, BoxError> {
        let stream = self.connect(url).await?;
        if url.scheme() != "https" {
            return Ok(Either::Left(stream));
        }
        let host = url.host_str().unwrap_or_default();
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let tls = TlsConnector::from(Arc::clone(&self.tls));
        Ok(Either::Right(tls.connect(name, stream).await?))
    }

    async fn connect(&self, url: &Url) -> Result<TcpStream, BoxError> {
        let host = url.host_str().ok_or("the URL has no host")?;
        let port = url.port_or_known_default().ok_or("the URL has no port")?;
        let mut last = None;
        for address in self.names.lookup(host).await? {
            match TcpStream::connect((address, port)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| "the name has no address".into(), Into::into))
    }
}
