//! Certificates that services present in TLS handshakes.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use net::certificate;
use rustls::pki_types::CertificateDer;

use super::certificates::{CheckedChain, check_chain};
use super::clients::handshake;
use super::findings::{SubjectFinding, each};
use super::remote;
use crate::site::{CertificateFile, ServedName, SiteFacts};

const REMEDY: &str = "check that the service runs";

pub(super) async fn served(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let subjects = site.served_names.iter().map(|one| {
        let port = one.address.port();
        (format!("{}:{port}", one.name), one)
    });
    let found = each(subjects.collect(), REMEDY, |subject, served| {
        let mut files = site.certificates.iter();
        let file = files.find(|file| file.service == served.service);
        async move {
            match file {
                Some(file) => check(subject, served, file).await,
                None => SubjectFinding::failed(subject, "its certificate has no file", REMEDY),
            }
        }
    });
    let mut found = found.await;
    found.extend(remote::certificates(&site).await);
    found
}

async fn check(subject: String, served: &ServedName, file: &CertificateFile) -> SubjectFinding {
    let start = format!("start {}, and look at its log", served.listener);
    let chain = match handshake(served.address, &served.name).await {
        Ok(chain) => chain,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            let finding = format!("{} does not run", served.listener);
            return SubjectFinding::warning(subject, finding, start);
        }
        Err(error) => {
            let finding = format!("no TLS at {}: {error}", served.address);
            return SubjectFinding::failed(subject, finding, start);
        }
    };
    let found = check_chain(&CheckedChain {
        chain: &chain,
        shown: "its certificate",
        names: std::slice::from_ref(&served.name),
        authority: file.authority.as_deref(),
        renewal: &file.renewal,
        now: SystemTime::now(),
    });
    // Of the file, if that can be read: a renewed one may not be in use yet.
    if found.is_ok() && leaf_of(&file.path).is_some_and(|leaf| leaf != chain[0]) {
        let finding = format!("presents another certificate than {}", file.path.display());
        let remedy = format!("restart {}", served.service);
        return SubjectFinding::warning(subject, finding, remedy);
    }
    SubjectFinding::of(subject, found)
}

fn leaf_of(path: &Path) -> Option<CertificateDer<'static>> {
    let pem = std::fs::read(path).ok()?;
    certificate::of_pem(&pem).ok()?.into_iter().next()
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::net::SocketAddr;

    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject as _;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::super::certificates::tests::make;
    use super::*;
    use crate::CheckStatus;

    /// A TLS server with the certificate of `file`.
    pub(in crate::checks) async fn server(file: &CertificateFile) -> SocketAddr {
        let chain = certificate::of_pem(&fs::read(&file.path).unwrap()).unwrap();
        let key = PrivateKeyDer::from_pem_file(&file.key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let accepted = TlsAcceptor::from(Arc::new(config.clone())).accept(socket);
                accepted.await.ok();
            }
        });
        address
    }

    async fn found(address: SocketAddr, file: &CertificateFile) -> SubjectFinding {
        let site = SiteFacts {
            served_names: vec![ServedName {
                service: "proxy",
                listener: "proxy",
                name: "api.lab.example".to_owned(),
                address,
            }],
            certificates: vec![file.clone()],
            ..SiteFacts::default()
        };
        served(Arc::new(site)).await.remove(0)
    }

    #[tokio::test]
    async fn presented_certificates_are_verified() {
        let (passed, warning, failed) = (
            CheckStatus::Passed,
            CheckStatus::Warning,
            CheckStatus::Failed,
        );
        for (names, days, status, expected) in [
            (["*.lab.example"], [-1, 60], passed, "59 more days"),
            (["*.lab.example"], [-1, 29], warning, "28 more days"),
            (["*.lab.example"], [-9, -1], failed, "has expired"),
            (
                ["other.example"],
                [-1, 60],
                failed,
                "is not for api.lab.example",
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let file = make(dir.path(), &names, days);
            let one = found(server(&file).await, &file).await;
            assert_eq!(one.status, status, "{one:?}");
            assert!(one.finding.contains(expected), "{one:?}");
            assert_eq!(one.remedy.is_empty(), status == passed, "{one:?}");
        }
    }

    #[tokio::test]
    async fn other_certificates_than_the_files_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = make(dir.path(), &["api.lab.example"], [-1, 60]);
        let address = server(&file).await;
        assert_eq!(found(address, &file).await.status, CheckStatus::Passed);
        // Of another authority.
        let other = tempfile::tempdir().unwrap();
        let foreign = make(other.path(), &["api.lab.example"], [-1, 60]);
        let one = found(address, &foreign).await;
        assert_eq!(one.status, CheckStatus::Failed, "{one:?}");
        assert!(one.finding.contains("refuse its certificate"), "{one:?}");
        // Renewed, and not in use.
        let renewed = CertificateFile {
            path: foreign.path,
            ..file.clone()
        };
        let one = found(address, &renewed).await;
        assert_eq!(one.status, CheckStatus::Warning, "{one:?}");
        assert_eq!(one.remedy, "restart proxy");
    }

    #[tokio::test]
    async fn servers_without_tls_fail() {
        let dir = tempfile::tempdir().unwrap();
        let file = make(dir.path(), &["api.lab.example"], [-1, 60]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                drop(socket);
            }
        });
        let one = found(address, &file).await;
        assert_eq!(one.status, CheckStatus::Failed, "{one:?}");
        assert!(one.finding.contains("no TLS at"), "{one:?}");
        serving.abort();
        serving.await.unwrap_err();
        let one = found(address, &file).await;
        assert_eq!(one.status, CheckStatus::Warning, "{one:?}");
        assert!(one.remedy.contains("start proxy"), "{one:?}");
    }
}
