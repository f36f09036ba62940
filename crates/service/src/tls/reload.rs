//! Certificate reload: changed files are served at once, unusable ones leave the old certificate in force.

use std::path::PathBuf;
use std::sync::Arc;

use model::time::Timestamp;
use rustls::crypto::ring;
use rustls::sign::SingleCertAndKey;
use serde::Serialize;

use super::certified_name::CertifiedName;
use super::files::{EntryFiles, TlsFiles, content};
use super::loader::{Failure, LoadedCertificates, Loader};
use super::served::{ServedCertificate, ServedCertificates};
use super::tls_config::{CertificateFiles, Certificates, TlsConfig};
use crate::Error;
use crate::error::ResultExt as _;

/// Client identity with the server's own certificate.
///
/// Errors: files that cannot be read, or do not belong together.
pub(crate) async fn own_identity(files: &CertificateFiles) -> Result<Arc<SingleCertAndKey>, Error> {
    let load = async {
        let (cert, key) = (content(&files.cert).await?, content(&files.key).await?);
        let provider = ring::default_provider();
        CertifiedName::load((&files.cert, &cert), (&files.key, &key), &provider)
    };
    let own = load.await.doing("loading the certificate")?;
    Ok(Arc::new(SingleCertAndKey::from(own.key)))
}

/// State of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CertificateState {
    /// File with the chain.
    pub file: PathBuf,
    /// Server names that it is served for; empty when none of its versions is in force.
    pub names: Vec<String>,
    /// Absent when none of its versions is in force.
    pub expires: Option<Timestamp>,
    /// Whether a version of it is served.
    pub is_in_force: bool,
    /// Reason why the file, as it is now, is not served.
    pub problem: Option<String>,
}

/// State of the certificates of a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CertificateStates {
    /// The list that names them, or their files.
    pub source: String,
    /// Reason why the list, as it is now, is not followed.
    pub problem: Option<String>,
    /// In the order of the list.
    pub certificates: Vec<CertificateState>,
}

/// Keeps certificates equal to their files.
pub(super) struct Reload {
    loader: Loader,
    seen: TlsFiles,
    /// Files that, as they were seen last, cannot be used.
    failures: Vec<Failure>,
    /// Of the last pass, if it could not use the list.
    last_error: Option<String>,
    /// Files of a list that cannot be used as it is.
    rejected: Option<TlsFiles>,
    served: ServedCertificates,
}

impl Reload {
    /// Loads the files of `config`.
    ///
    /// Errors: a list that cannot be read; none of its certificates can be used.
    pub(super) async fn start(config: TlsConfig, speaks_http2: bool) -> Result<Self, Error> {
        let doing = || format!("loading {}", config.certificates);
        let files = TlsFiles::read(&config).await;
        let files = files.doing(doing)?;
        let loader = Loader {
            config: config.clone(),
            speaks_http2,
        };
        let loaded = loader.load_first(&files);
        let loaded = loaded.doing(doing)?;
        let LoadedCertificates { served, failures } = loaded;
        Ok(Self {
            loader,
            seen: files,
            failures,
            last_error: None,
            rejected: None,
            served: ServedCertificates::new(served),
        })
    }

    /// The certificates in force.
    pub(super) fn served(&self) -> ServedCertificates {
        self.served.clone()
    }

    /// Serves `certificates`, and follows their files from now on.
    ///
    /// Errors: none of them can be used; the old ones stay in force.
    pub(super) async fn follow(&mut self, certificates: Certificates) -> Result<(), String> {
        let config = TlsConfig {
            certificates,
            ..self.loader.config.clone()
        };
        let files = TlsFiles::read(&config).await?;
        let loader = Loader {
            config,
            speaks_http2: self.loader.speaks_http2,
        };
        let LoadedCertificates { served, failures } = loader.load_first(&files)?;
        self.served.replace(served);
        (self.loader, self.seen) = (loader, files);
        (self.last_error, self.rejected) = (None, None);
        self.failures = failures;
        Ok(())
    }

    /// The certificates of the list, with the reasons of those that are not in force.
    pub(super) fn states(&self) -> CertificateStates {
        let in_force = self.served.all();
        let state = |files: &EntryFiles| {
            let entry = &files.entry;
            let served = in_force.iter().find(|served| served.entry == *entry);
            let names = served.map(|served| served.names.iter().map(ToString::to_string).collect());
            let identity = served.and_then(|served| served.identity.as_ref());
            let mut failures = self.failures.iter();
            let failure = failures.find(|failure| failure.entry == *entry);
            CertificateState {
                file: entry.bundle.clone(),
                names: names.unwrap_or_default(),
                expires: identity.map(|it| it.not_after),
                is_in_force: identity.is_some(),
                problem: failure.map(|failure| failure.reason.clone()),
            }
        };
        CertificateStates {
            source: self.loader.config.certificates.to_string(),
            problem: self.last_error.clone(),
            certificates: self.seen.entries.iter().map(state).collect(),
        }
    }

    // Contents are compared, not times: files that are copied or mounted may bring old ones.
    pub(super) async fn pass(&mut self) {
        let reloaded = match TlsFiles::read(&self.loader.config).await {
            Ok(found) => self.reload(found),
            Err(reason) => Err(reason),
        };
        let reason = reloaded.err();
        if reason.is_some() && reason != self.last_error {
            let certificates = &self.loader.config.certificates;
            tracing::warn!(%certificates, reason, "certificates not reloaded, the old ones stay in force");
        }
        self.last_error = reason;
    }

    fn reload(&mut self, found: TlsFiles) -> Result<(), String> {
        if found == self.seen {
            self.rejected = None;
            return Ok(());
        }
        if let (Some(rejected), Some(reason)) = (&self.rejected, &self.last_error)
            && *rejected == found
        {
            return Err(reason.clone());
        }
        let in_force = self.served.all();
        let loaded = self.loader.load(&found, Some((&self.seen, &in_force)));
        let LoadedCertificates { served, failures } = match loaded {
            Ok(loaded) => loaded,
            Err(reason) => {
                self.rejected = Some(found);
                return Err(reason);
            }
        };
        self.rejected = None;
        if !served.is_empty() {
            self.served.replace(served.clone());
        }
        let is_old = |one: &ServedCertificate| in_force.iter().any(|old| old.is_same(one));
        for one in served.iter().filter(|one| !is_old(one)) {
            if one.identity.is_some() && !failures.iter().any(|it| it.entry == one.entry) {
                let cert = one.entry.bundle.display();
                tracing::info!(%cert, "certificate reloaded");
            }
        }
        // Half-written pairs are ordinary. Logged once for each change.
        for failure in &failures {
            let entry = &failure.entry;
            let is_kept = served
                .iter()
                .any(|one| one.entry == *entry && one.identity.is_some());
            let message = if is_kept {
                "the old one stays in force"
            } else {
                "its line is out of force"
            };
            let (cert, reason) = (failure.path(), &failure.reason);
            tracing::warn!(%cert, reason, "certificate not reloaded, {message}");
        }
        let stays = |failure: &Failure| {
            let file = found.of(&failure.entry);
            file.is_some() && file == self.seen.of(&failure.entry)
        };
        self.failures.retain(stays);
        self.failures.extend(failures);
        self.seen = found;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::SocketAddr;
    use std::path::Path;
    use std::sync::PoisonError;
    use std::time::{Duration, Instant};

    use tokio_util::sync::CancellationToken;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;
    use crate::server::{self, Listen, Running};
    use crate::tls::{Clients, Demand};

    /// Captured log.
    #[derive(Clone, Default)]
    struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

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
