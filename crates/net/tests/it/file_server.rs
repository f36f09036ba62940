//! A web server by TLS: its certificate, and logins that stay with it.

use std::sync::{Arc, Mutex};

use net::web::FileServer;
use reqwest::Url;
use reqwest::header::HeaderValue;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use testkit::certificates::{Pem, self_signed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const LOGIN: &str = "Basic bWU6c2VjcmV0";
const CONTENT: &str = "0123456789";

/// A server of one file below any name; `/elsewhere` is a redirect.
struct TlsServer {
    url: Url,
    /// Heads of requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl TlsServer {
    async fn start(certificate: &Pem, elsewhere: &str) -> Self {
        let chain = CertificateDer::from_pem_slice(certificate.cert.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let (seen, elsewhere) = (Arc::clone(&heads), elsewhere.to_owned());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
                while !head.ends_with(b"\r\n\r\n") {
                    let count = stream.read(&mut buffer).await.unwrap();
                    head.extend_from_slice(&buffer[..count]);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                let answer = answer(&head, &elsewhere);
                seen.lock().unwrap().push(head);
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.shutdown().await.ok();
            }
        });
        Self {
            url: format!("https://{address}/file").parse().unwrap(),
            heads,
        }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn answer(head: &str, elsewhere: &str) -> String {
    if head.starts_with("get /elsewhere") {
        return format!(
            "HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    }
    let range = head.split_once("range: bytes=").unwrap().1;
    let range = range.lines().next().unwrap();
    let (first, last) = range.split_once('-').unwrap();
    let (first, last) = (
        first.parse::<usize>().unwrap(),
        last.parse::<usize>().unwrap(),
    );
    let part = &CONTENT[first..=last];
    format!(
        "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Range: bytes {range}/{}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{part}",
        CONTENT.len(),
        part.len()
    )
}

fn client(ca: Option<&Pem>, login: Option<&'static str>) -> FileServer {
    let ca = ca.map(|it| it.cert.as_bytes());
    FileServer::new(ca, false, login.map(HeaderValue::from_static)).unwrap()
}

#[tokio::test]
async fn a_login_goes_to_its_server_alone() {
    let certificate = self_signed("127.0.0.1").unwrap();
    let other = TlsServer::start(&certificate, "").await;
    let server = TlsServer::start(&certificate, other.url.as_str()).await;
    let web = client(Some(&certificate), Some(LOGIN));
    let file = web.file(&server.url).await.unwrap();
    assert_eq!(file.size(), 10);
    let mut range = file.range(3, 4);
    let mut read = Vec::new();
    while let Some(chunk) = range.next().await.unwrap() {
        read.extend_from_slice(&chunk);
    }
    assert_eq!(read, b"3456");
    let heads = server.heads();
    assert_eq!(heads.len(), 2);
    let login = format!("authorization: {}", LOGIN.to_lowercase());
    assert!(heads.iter().all(|head| head.contains(&login)), "{heads:?}");
    let elsewhere = server.url.join("/elsewhere").unwrap();
    let error = web.file(&elsewhere).await.unwrap_err().chain();
    assert!(error.contains("redirects to another server"), "{error}");
    assert!(error.contains(other.url.as_str()), "{error}");
    assert_eq!(other.heads(), Vec::<String>::new());
    assert!(!format!("{web:?}").contains("bWU6"), "{web:?}");
}

#[tokio::test]
async fn an_untrusted_certificate_is_named_with_its_remedy() {
    let certificate = self_signed("127.0.0.1").unwrap();
    let server = TlsServer::start(&certificate, "").await;
    let error = client(None, Some(LOGIN)).file(&server.url).await;
    let error = error.unwrap_err().to_string();
    let is_explained = error.contains("its certificate is not trusted: invalid peer certificate")
        && error.contains("authority (CA)");
    assert!(is_explained, "{error}");
    assert_eq!(server.heads(), Vec::<String>::new());
    let other = self_signed("127.0.0.2").unwrap();
    assert!(client(Some(&other), None).file(&server.url).await.is_err());
}
