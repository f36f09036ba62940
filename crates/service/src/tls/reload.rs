//! Certificate reload: changed files are served at once, unusable ones leave the old certificate in force.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio_util::sync::CancellationToken;

use super::clients::Verifier;
use super::{CertificateFiles, TlsConfig, TlsVersion, suites};
use crate::Error;

/// Loads the files of `config` and reloads them when they change, until `shutdown`.
pub(crate) async fn reloading(
    config: TlsConfig,
    speaks_http2: bool,
    shutdown: CancellationToken,
) -> Result<RustlsConfig, Error> {
    let CertificateFiles { cert, key } = &config.files;
    let doing = format!(
        "loading certificate {} and key {}",
        cert.display(),
        key.display()
    );
    // Contents are compared, not times: files that are copied or mounted may bring old ones.
    let mut seen = CertificateContents::read(&config).await;
    let served = seen
        .as_ref()
        .map_err(String::clone)
        .and_then(|contents| contents.load(&config, speaks_http2))
        .map_err(|reason| Error::new(doing, reason))?;
    let served = RustlsConfig::from_config(served);
    let serving = served.clone();
    tokio::spawn(async move {
        while shutdown
            .run_until_cancelled(tokio::time::sleep(config.reload_interval))
            .await
            .is_some()
        {
            let found = CertificateContents::read(&config).await;
            if found == seen {
                continue;
            }
            let cert = config.files.cert.display();
            match found
                .as_ref()
                .map_err(String::clone)
                .and_then(|contents| contents.load(&config, speaks_http2))
            {
                Ok(new) => {
                    serving.reload_from_config(new);
                    tracing::info!(%cert, "certificate reloaded");
                }
                // Half-written pairs are ordinary. Logged once for each change.
                Err(reason) => {
                    tracing::warn!(%cert, reason, "certificate not reloaded, the old one stays in force");
                }
            }
            seen = found;
        }
    });
    Ok(served)
}

/// Client identity with the server's own certificate.
///
/// Errors: files that cannot be read, or do not belong together.
pub(crate) async fn own_identity(files: &CertificateFiles) -> Result<Arc<SingleCertAndKey>, Error> {
    let config = TlsConfig::from(files.clone());
    let own = CertificateContents::read(&config)
        .await
        .and_then(|contents| contents.certified_key(&config, &ring::default_provider()))
        .map_err(|reason| Error::new("loading the certificate", reason))?;
    Ok(Arc::new(SingleCertAndKey::from(own)))
}

/// Contents of the files of a configuration.
#[derive(PartialEq, Eq)]
struct CertificateContents {
    cert: Vec<u8>,
    key: Vec<u8>,
    authorities: Vec<Vec<u8>>,
}

impl CertificateContents {
    async fn read(config: &TlsConfig) -> Result<Self, String> {
        let mut authorities = Vec::new();
        for path in authority_paths(config) {
            authorities.push(content(path).await?);
        }
        Ok(Self {
            cert: content(&config.files.cert).await?,
            key: content(&config.files.key).await?,
            authorities,
        })
    }

    fn load(&self, config: &TlsConfig, speaks_http2: bool) -> Result<Arc<ServerConfig>, String> {
        let provider = Arc::new(suites::provider(&config.suites));
        let own = self.certified_key(config, &provider)?;
        let versions: &[&SupportedProtocolVersion] = match config.minimum {
            TlsVersion::Tls12 => &[&TLS13, &TLS12],
            TlsVersion::Tls13 => &[&TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|e| e.to_string())?;
        let builder = match &config.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let roots = self.roots(config)?;
                let verifier = Verifier::new(clients.demand, own.cert[0].clone(), roots, provider)
                    .map_err(|e| e.to_string())?;
                builder.with_client_cert_verifier(Arc::new(verifier))
            }
        };
        let mut loaded = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(own)));
        let protocols: &[&[u8]] = if speaks_http2 {
            &[b"h2", b"http/1.1"]
        } else {
            &[b"http/1.1"]
        };
        loaded.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(loaded))
    }

    /// Never without a certificate.
    fn certified_key(
        &self,
        config: &TlsConfig,
        provider: &CryptoProvider,
    ) -> Result<CertifiedKey, String> {
        let CertificateFiles { cert, key } = &config.files;
        let chain = certificates(cert, &self.cert)?;
        let private = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|e| format!("{}: {e}", key.display()))?;
        CertifiedKey::from_der(chain, private, provider).map_err(|e| e.to_string())
    }

    fn roots(&self, config: &TlsConfig) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        for (path, text) in authority_paths(config).iter().zip(&self.authorities) {
            for authority in certificates(path, text)? {
                roots
                    .add(authority)
                    .map_err(|e| format!("{}: {e}", path.display()))?;
            }
        }
        Ok(roots)
    }
}

fn authority_paths(config: &TlsConfig) -> &[PathBuf] {
    config
        .clients
        .as_ref()
        .map_or(&[], |clients| &clients.authorities)
}

async fn content(path: &Path) -> Result<Vec<u8>, String> {
    tokio::fs::read(path)
        .await
        .map_err(|e| format!("{}: {e}", path.display()))
}

fn certificates(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| format!("{}: {e}", path.display()))?;
    if found.is_empty() {
        return Err(format!("{}: no certificate in it", path.display()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::SocketAddr;
    use std::sync::{Mutex, PoisonError};
    use std::time::{Duration, Instant};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;
    use crate::server::{self, Listen, Running};
    use crate::tls::{Clients, Demand};

    /// Captured log.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Log {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    impl Log {
        fn count(&self, text: &str) -> usize {
            let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8_lossy(&log).matches(text).count()
        }

        async fn until(&self, text: &str, count: usize) {
            let deadline = Instant::now() + Duration::from_mins(1);
            while self.count(text) < count {
                assert!(Instant::now() < deadline, "{text:?} is not logged");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    /// A certificate and its key.
    struct Pem {
        cert: String,
        key: String,
    }

    fn pem() -> Pem {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        Pem {
            cert: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
        }
    }

    fn config(dir: &Path) -> TlsConfig {
        let files = CertificateFiles {
            cert: dir.join("cert"),
            key: dir.join("key"),
        };
        TlsConfig {
            reload_interval: Duration::from_millis(20),
            ..TlsConfig::from(files)
        }
    }

    fn write(dir: &Path, pem: &Pem) {
        std::fs::write(dir.join("cert"), &pem.cert).unwrap();
        std::fs::write(dir.join("key"), &pem.key).unwrap();
    }

    /// Atomic: a file that is half written would be logged as well.
    fn replace(path: &Path, text: &str) {
        let part = path.with_extension("part");
        std::fs::write(&part, text).unwrap();
        std::fs::rename(part, path).unwrap();
    }

    async fn start(config: TlsConfig) -> Result<(Running, SocketAddr), Error> {
        let listen = Listen::new("127.0.0.1:0".parse().unwrap(), Some(config));
        let router = axum::Router::new().route("/", axum::routing::get(|| async { "hello" }));
        let running = server::start(vec![listen], router, CancellationToken::new()).await?;
        let address = running.address();
        Ok((running, address))
    }

    /// Whether a new connection succeeds that trusts `pem` alone.
    async fn serves(address: SocketAddr, pem: &Pem) -> bool {
        let client = crate::http_client(Some(pem.cert.as_bytes()), false).unwrap();
        let answer = client.get(format!("https://{address}/")).send().await;
        answer.is_ok_and(|response| response.status().is_success())
    }

    #[tokio::test]
    async fn the_old_certificate_serves_until_the_new_pair_is_whole() {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (pem(), pem());
        write(dir.path(), &old);
        let (_running, address) = start(config(dir.path())).await.unwrap();
        assert!(serves(address, &old).await && !serves(address, &new).await);

        // Garbage, no file, a pair that does not match: each is logged once, and the old pair stays.
        let (cert, key) = (dir.path().join("cert"), dir.path().join("key"));
        replace(&cert, "garbage");
        log.until("not reloaded", 1).await;
        assert!(serves(address, &old).await);
        std::fs::remove_file(&cert).unwrap();
        log.until("not reloaded", 2).await;
        assert!(serves(address, &old).await);
        replace(&cert, &new.cert);
        log.until("not reloaded", 3).await;
        assert!(serves(address, &old).await && !serves(address, &new).await);
        assert_eq!(log.count("certificate reloaded"), 0);

        replace(&key, &new.key);
        log.until("certificate reloaded", 1).await;
        assert!(serves(address, &new).await && !serves(address, &old).await);
        assert_eq!(log.count("not reloaded"), 3);
    }

    #[tokio::test]
    async fn a_server_does_not_start_on_files_that_cannot_be_used() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &pem());
        let mut without_authority = config(dir.path());
        without_authority.clients = Some(Clients {
            authorities: Vec::new(),
            demand: Demand::RequireAndVerify,
        });
        assert!(start(without_authority).await.is_err());
        let mut no_authority = config(dir.path());
        no_authority.clients = Some(Clients {
            authorities: vec![dir.path().join("key")],
            demand: Demand::Request,
        });
        let error = start(no_authority).await.unwrap_err().to_string();
        assert!(error.contains("no certificate in it"), "{error}");
        std::fs::write(dir.path().join("key"), pem().key).unwrap();
        let error = start(config(dir.path())).await.unwrap_err().to_string();
        assert!(error.contains("loading certificate"), "{error}");
    }
}
