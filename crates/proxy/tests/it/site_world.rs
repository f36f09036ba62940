//! A site: its certificates, its upstreams, the proxy in front, and its clients.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use http::{HeaderMap, StatusCode};
use net::resolve::Resolver;
use proxy::{Forwards, HostPort, Settings, SiteAddresses, SiteSettings};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use service::CancellationToken;
use service::forward::Upstream;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::world::soon;

pub(crate) const HSTS: &str = "max-age=16000000; includesubdomains; preload;";

/// A certificate with its key, and its PEM bundle.
pub(crate) struct Made {
    pub(crate) der: CertificateDer<'static>,
    pub(crate) bundle: String,
    pub(crate) key: Vec<u8>,
}

pub(crate) fn made(names: &[&str]) -> Made {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    Made {
        der: made.cert.der().clone(),
        bundle: made.cert.pem() + &made.signing_key.serialize_pem(),
        key: made.signing_key.serialize_der(),
    }
}

impl Made {
    pub(crate) fn copy(&self) -> Self {
        Self {
            der: self.der.clone(),
            bundle: self.bundle.clone(),
            key: self.key.clone(),
        }
    }
}

/// A site whose upstreams answer with their name and the request.
pub(crate) struct SiteWorld {
    pub(crate) at: SiteAddresses,
    pub(crate) page: Option<SocketAddr>,
    pub(crate) certs: TempDir,
    pub(crate) wildcard: Made,
    pub(crate) registry: Made,
    shutdown: CancellationToken,
}

impl Drop for SiteWorld {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Answers with `name` and the request.
pub(crate) async fn upstream(name: &'static str) -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(async move |request: Request| {
        let headers = request.headers().iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        let path = request.uri().to_string();
        axum::Json(json!({ "upstream": name, "path": path, "headers": headers }))
    });
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Upstream::parse(&origin).unwrap()
}

/// A registry: it answers each connection with its own certificate and the bytes that it got.
pub(crate) async fn registry(made: &Made) -> HostPort {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.key.clone().into());
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let config = config
        .with_single_cert(vec![made.der.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let (mut reader, mut writer) = tokio::io::split(&mut stream);
                tokio::io::copy(&mut reader, &mut writer).await.ok();
                stream.shutdown().await.ok();
            });
        }
    });
    HostPort {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

impl SiteWorld {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_among(Resolver::system(), change).await
    }

    /// [`Self::start_with`], with the names of `names`.
    pub(crate) async fn start_among(names: Resolver, change: impl FnOnce(&mut Settings)) -> Self {
        let certs = tempfile::tempdir().unwrap();
        let wildcard = made(&["*.site.test", "site.test"]);
        let of_registry = made(&["registry.site.test"]);
        fs::write(certs.path().join("site.pem"), &wildcard.bundle).unwrap();
        fs::write(certs.path().join("crt-list.txt"), "site.pem\n").unwrap();
        let mut settings = Settings {
            listen_address: Ipv4Addr::LOCALHOST.into(),
            forwards: Forwards(Vec::new()),
            proxy_status_port: 0,
            site: SiteSettings {
                network_domain: "site.test".to_owned(),
                proxy_http_port: 0,
                proxy_https_port: 0,
                certificate_list: certs.path().join("crt-list.txt"),
                api_url: upstream("api").await,
                web_url: upstream("web").await,
                registry_address: registry(&of_registry).await,
                ..SiteSettings::default()
            },
            ..Settings::default()
        };
        change(&mut settings);
        let shutdown = CancellationToken::new();
        let started = proxy::start_with(settings, names, shutdown.clone());
        let started = started.await.unwrap();
        let (at, page) = (started.site().unwrap(), started.status_page());
        tokio::spawn(async move { started.wait().await.unwrap() });
        Self {
            at,
            page,
            certs,
            wildcard,
            registry: of_registry,
            shutdown,
        }
    }

    /// A client that trusts `trusted` alone, asks for `sni`, and does ALPN `protocols`.
    pub(crate) async fn connect(
        &self,
        trusted: &Made,
        sni: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        connect(self.at.https, trusted, sni, rustls::ALL_VERSIONS).await
    }

    /// The answer to a request with this Host over a connection for `sni`.
    pub(crate) async fn asked(
        &self,
        sni: &str,
        host: &str,
        rest: &str,
    ) -> (StatusCode, HeaderMap, String) {
        let mut stream = self.connect(&self.wildcard, sni).await.unwrap();
        let request =
            format!("GET /a//b?x=%zz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{rest}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.ok();
        parsed(&answer)
    }
}

pub(crate) async fn connect(
    address: SocketAddr,
    trusted: &Made,
    sni: &str,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let connector = TlsConnector::from(client_config(trusted, versions));
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(sni.to_owned()).unwrap();
    soon(connector.connect(name, stream)).await
}

pub(crate) fn client_config(
    trusted: &Made,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der.clone()).unwrap();
    let config = ClientConfig::builder_with_protocol_versions(versions);
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

pub(crate) fn parsed(answer: &str) -> (StatusCode, HeaderMap, String) {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{answer:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    let headers =
        headers.map(|(name, value)| (name.parse().unwrap(), value.to_lowercase().parse().unwrap()));
    let headers: HeaderMap = headers
        .collect::<Vec<(http::HeaderName, http::HeaderValue)>>()
        .into_iter()
        .collect();
    (status.parse().unwrap(), headers, body.to_owned())
}

pub(crate) fn json_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// A client that sends one request after the other on its connection.
pub(crate) struct KeepAlive {
    stream: TlsStream<TcpStream>,
}

impl KeepAlive {
    /// Connects for `sni`, trusting any of `trusted`.
    pub(crate) async fn connect(
        address: SocketAddr,
        trusted: &[Made],
        sni: &str,
    ) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for made in trusted {
            roots.add(made.der.clone()).unwrap();
        }
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(sni.to_owned()).unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = soon(connector.connect(name, stream)).await?;
        Ok(Self { stream })
    }

    /// The certificate of the server.
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        let certificates = self.stream.get_ref().1.peer_certificates();
        certificates.unwrap()[0].clone().into_owned()
    }

    /// Status and body of the answer to a GET.
    pub(crate) async fn get(&mut self, host: &str, path: &str) -> io::Result<(u16, String)> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await?;
        let mut received = Vec::new();
        loop {
            if let Some(answer) = whole(&received)? {
                return Ok(answer);
            }
            if soon(self.stream.read_buf(&mut received)).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Status and body of an answer with a length, once its last byte is there.
fn whole(received: &[u8]) -> io::Result<Option<(u16, String)>> {
    let text = String::from_utf8_lossy(received);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Ok(None);
    };
    let head = head.to_lowercase();
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, head.clone());
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length
        .and_then(|text| text.parse().ok())
        .ok_or_else(invalid)?;
    let status = status.ok_or_else(invalid)?;
    match body.len() {
        short if short < length => Ok(None),
        same if same == length => Ok(Some((status, body.to_owned()))),
        _ => Err(invalid()),
    }
}
