//! TLS trust of the client, with real handshakes.

use std::net::SocketAddr;
use std::sync::Arc;

use net::trust;
use oci_client::{Client, ClientOptions};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{
    CertificateError, Error, ServerConfig, SupportedProtocolVersion, version,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const NAME: &str = "registry.lab.test";
const AUTHORITY: IsCa = IsCa::Ca(BasicConstraints::Unconstrained);
const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 34\r\nContent-Type: \
    application/vnd.oci.image.index.v1+json\r\nConnection: close\r\n\r\n\
    {\"schemaVersion\":2,\"manifests\":[]}";

fn params(is_ca: IsCa, years: [i32; 2]) -> CertificateParams {
    let names = vec![NAME.to_owned(), "127.0.0.1".to_owned()];
    let mut params = CertificateParams::new(names).unwrap();
    params.is_ca = is_ca;
    params.not_before = date_time_ymd(years[0], 1, 1);
    params.not_after = date_time_ymd(years[1], 1, 1);
    params
}

/// A certificate as `openssl req -x509` creates it.
pub(crate) fn self_signed(years: [i32; 2]) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    (params(AUTHORITY, years).self_signed(&key).unwrap(), key)
}

pub(crate) const LONG: [i32; 2] = [2020, 4000];

pub(crate) struct Server(pub(crate) SocketAddr);

impl Server {
    /// A server with `certificate`, whether or not `key` fits it.
    async fn start(
        certificate: &rcgen::Certificate,
        key: &KeyPair,
        version: &'static SupportedProtocolVersion,
    ) -> Self {
        Self::answering(ANSWER.to_owned(), certificate, key, version).await
    }

    /// A server that answers `answer` to every request.
    pub(crate) async fn answering(
        answer: String,
        certificate: &rcgen::Certificate,
        key: &KeyPair,
        version: &'static SupportedProtocolVersion,
    ) -> Self {
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let key = ring::sign::any_supported_type(&key).unwrap();
        let presented = CertifiedKey::new(vec![certificate.der().clone()], key);
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(presented)));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut head = [0; 4096];
                if stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    stream.write_all(answer.as_bytes()).await.ok();
                    stream.shutdown().await.ok();
                }
            }
        });
        Self(address)
    }

    /// The result of a handshake with the server under `name`.
    async fn greet(&self, name: &'static str, given: Option<&str>) -> Result<(), Error> {
        let config = trust::client_config(given.map(str::as_bytes), false).unwrap();
        let stream = TcpStream::connect(self.0).await.unwrap();
        let name = ServerName::try_from(name).unwrap();
        let greeted = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await;
        greeted.map(drop).map_err(|error| {
            let cause = error.into_inner().unwrap();
            *cause.downcast::<Error>().unwrap()
        })
    }
}

async fn server(certificate: &rcgen::Certificate, key: &KeyPair) -> Server {
    Server::start(certificate, key, &version::TLS13).await
}

#[tokio::test]
async fn a_given_certificate_is_accepted_although_it_is_an_authority() {
    let (certificate, key) = self_signed(LONG);
    let server = server(&certificate, &key).await;
    let client = Client::new(ClientOptions {
        ca_pem: Some(certificate.pem().into_bytes()),
        ..ClientOptions::default()
    })
    .unwrap();
    for host in ["127.0.0.1", NAME] {
        server.greet(host, Some(&certificate.pem())).await.unwrap();
    }
    let reference = format!("{}/a/b:c", server.0).parse().unwrap();
    client.pull_manifest(&reference).await.unwrap();
}

#[tokio::test]
async fn another_name_is_refused() {
    let (certificate, key) = self_signed(LONG);
    let server = server(&certificate, &key).await;
    for name in ["other.lab.test", "127.0.0.2"] {
        let refused = server.greet(name, Some(&certificate.pem())).await;
        assert!(
            matches!(
                refused,
                Err(Error::InvalidCertificate(
                    CertificateError::NotValidForNameContext { .. }
                ))
            ),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn validity_dates_are_checked() {
    for is_ca in [AUTHORITY, IsCa::ExplicitNoCa, IsCa::NoCa] {
        let greet = async |years| {
            let key = KeyPair::generate().unwrap();
            let certificate = params(is_ca, years).self_signed(&key).unwrap();
            let server = server(&certificate, &key).await;
            server.greet(NAME, Some(&certificate.pem())).await
        };
        greet(LONG).await.unwrap();
        let expired = greet([2020, 2021]).await;
        assert!(
            matches!(
                expired,
                Err(Error::InvalidCertificate(
                    CertificateError::ExpiredContext { .. }
                ))
            ),
            "{expired:?}"
        );
        let early = greet([3999, 4000]).await;
        assert!(
            matches!(
                early,
                Err(Error::InvalidCertificate(
                    CertificateError::NotValidYetContext { .. }
                ))
            ),
            "{early:?}"
        );
    }
}

#[tokio::test]
async fn another_certificate_of_the_same_name_is_refused() {
    let (trusted, _) = self_signed(LONG);
    let (certificate, key) = self_signed(LONG);
    let server = server(&certificate, &key).await;
    for given in [None, Some(trusted.pem())] {
        let refused = server.greet(NAME, given.as_deref()).await;
        assert!(
            matches!(refused, Err(Error::InvalidCertificate(_))),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_certificate_without_its_key_is_refused() {
    let (certificate, _) = self_signed(LONG);
    let (_, key) = self_signed(LONG);
    for version in [&version::TLS12, &version::TLS13] {
        let server = Server::start(&certificate, &key, version).await;
        let refused = server.greet(NAME, Some(&certificate.pem())).await;
        assert!(
            matches!(
                refused,
                Err(Error::InvalidCertificate(CertificateError::BadSignature))
            ),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn certificates_of_a_given_authority_are_trusted_but_not_sub_authorities() {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = params(AUTHORITY, LONG);
    authority.subject_alt_names.clear();
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    for (is_ca, trusted) in [(IsCa::NoCa, true), (AUTHORITY, false)] {
        let key = KeyPair::generate().unwrap();
        let certificate = params(is_ca, LONG).signed_by(&key, &issuer).unwrap();
        let server = server(&certificate, &key).await;
        let outcome = server.greet(NAME, Some(&pem)).await;
        assert_eq!(outcome.is_ok(), trusted, "{outcome:?}");
    }
}
