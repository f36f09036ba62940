//! Certificate reload: changed files are served at once, unusable ones leave the old certificate in force.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::certificate_list::{self, ListEntry, NamePattern};
use super::certified_name::{CertifiedName, certificates};
use super::clients::Verifier;
use super::control::{CertificateControl, CertificateState, CertificateStates};
use super::served::{ServedCertificate, ServedCertificates};
use super::{CertificateFiles, Certificates, TlsConfig, TlsVersion, suites};
use crate::{Error, clock};

/// Loads the files of `config` and reloads them when they change or SIGHUP comes, until `shutdown`; `control` can make
/// it follow others.
pub(crate) async fn reloading(
    config: TlsConfig,
    speaks_http2: bool,
    control: &CertificateControl,
    shutdown: CancellationToken,
) -> Result<ServedCertificates, Error> {
    let doing = || format!("loading {}", config.certificates);
    let files = TlsFiles::read(&config).await;
    let files = files.map_err(|reason| Error::new(doing(), reason))?;
    let loader = Loader {
        config: config.clone(),
        speaks_http2,
    };
    let (loaded, failures) = loader.load(&files, None);
    if loaded.is_empty() {
        let reasons: Vec<_> = failures.into_iter().map(|one| one.reason).collect();
        return Err(Error::new(doing(), reasons.join("; ")));
    }
    for Failure { path, reason } in &failures {
        tracing::warn!(cert = %path.display(), reason, "certificate not loaded, the others are served");
    }
    let served = ServedCertificates::new(loaded);
    let reload = Reload {
        loader,
        seen: files,
        failures,
        last_error: None,
        served: served.clone(),
    };
    let reload = Arc::new(Mutex::new(reload));
    control.set(reload.clone());
    let doing = doing();
    let mut hangup = signal(SignalKind::hangup()).map_err(|e| Error::new(doing, e))?;
    tokio::spawn(shutdown.run_until_cancelled_owned(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(config.reload_interval) => {}
                _ = hangup.recv() => {}
            }
            reload.lock().await.pass().await;
        }
    }));
    Ok(served)
}

/// Client identity with the server's own certificate.
///
/// Errors: files that cannot be read, or do not belong together.
pub(crate) async fn own_identity(files: &CertificateFiles) -> Result<Arc<SingleCertAndKey>, Error> {
    let load = async {
        let (cert, key) = (content(&files.cert).await?, content(&files.key).await?);
        let provider = ring::default_provider();
        CertifiedName::load((&files.cert, &cert), (&files.key, &key), &provider)
    };
    let own = load
        .await
        .map_err(|reason| Error::new("loading the certificate", reason))?;
    Ok(Arc::new(SingleCertAndKey::from(own.key)))
}

/// Contents of the files of a configuration.
#[derive(PartialEq, Eq)]
struct TlsFiles {
    entries: Vec<EntryFiles>,
    authorities: Vec<Vec<u8>>,
}

/// Contents of the files of one certificate.
#[derive(PartialEq, Eq)]
struct EntryFiles {
    entry: ListEntry,
    key: PathBuf,
    /// Of the certificate and of the key.
    contents: Result<(Vec<u8>, Vec<u8>), String>,
}

impl TlsFiles {
    /// Errors: a list or an authority that cannot be read; certificates are read as far as they can be.
    async fn read(config: &TlsConfig) -> Result<Self, String> {
        let mut authorities = Vec::new();
        for path in authority_paths(config) {
            authorities.push(content(path).await?);
        }
        let entries = match &config.certificates {
            Certificates::Files(CertificateFiles { cert, key }) => {
                let entry = ListEntry {
                    bundle: cert.clone(),
                    ..ListEntry::default()
                };
                vec![EntryFiles::read(entry, key.clone()).await]
            }
            Certificates::List(path) => {
                let text = content(path).await?;
                let text = String::from_utf8(text)
                    .map_err(|_| format!("{}: it is not UTF-8", path.display()))?;
                let mut entries = Vec::new();
                for entry in certificate_list::parse(path, &text)? {
                    let key = entry.bundle.clone();
                    entries.push(EntryFiles::read(entry, key).await);
                }
                entries
            }
        };
        Ok(Self {
            entries,
            authorities,
        })
    }

    fn of(&self, path: &Path) -> Option<&EntryFiles> {
        self.entries.iter().find(|files| files.entry.bundle == path)
    }
}

impl EntryFiles {
    async fn read(entry: ListEntry, key: PathBuf) -> Self {
        let contents = async {
            let cert = content(&entry.bundle).await?;
            let key = if key == entry.bundle {
                cert.clone()
            } else {
                content(&key).await?
            };
            Ok((cert, key))
        };
        let contents = contents.await;
        Self {
            entry,
            key,
            contents,
        }
    }
}

/// A certificate that cannot be used.
struct Failure {
    path: PathBuf,
    reason: String,
}

struct Loader {
    config: TlsConfig,
    speaks_http2: bool,
}

impl Loader {
    /// Loads every certificate that has changed since `before`, or all. One that cannot be used stays as it was.
    fn load(
        &self,
        files: &TlsFiles,
        before: Option<(&TlsFiles, &[ServedCertificate])>,
    ) -> (Vec<ServedCertificate>, Vec<Failure>) {
        let (mut loaded, mut failures) = (Vec::new(), Vec::new());
        for entry in &files.entries {
            let path = &entry.entry.bundle;
            let is_same = |seen: &TlsFiles| {
                seen.of(path) == Some(entry) && seen.authorities == files.authorities
            };
            let old = before.and_then(|(_, old)| old.iter().find(|old| old.path == *path));
            if before.is_some_and(|(seen, _)| is_same(seen)) {
                loaded.extend(old.cloned());
                continue;
            }
            match self.certificate(entry, &files.authorities) {
                Ok(certificate) => {
                    if before.is_some() {
                        tracing::info!(cert = %path.display(), "certificate reloaded");
                    }
                    loaded.push(certificate);
                }
                Err(reason) => {
                    loaded.extend(old.cloned());
                    let path = path.clone();
                    failures.push(Failure { path, reason });
                }
            }
        }
        (loaded, failures)
    }

    fn certificate(
        &self,
        files: &EntryFiles,
        authorities: &[Vec<u8>],
    ) -> Result<ServedCertificate, String> {
        let entry = &files.entry;
        let (cert, key) = files.contents.as_ref().map_err(String::clone)?;
        let provider = Arc::new(suites::provider(&self.config.suites));
        let own = CertifiedName::load((&entry.bundle, cert), (&files.key, key), &provider)?;
        report(entry, &own);
        let versions: &[&SupportedProtocolVersion] = match self.config.minimum {
            TlsVersion::Tls12 => &[&TLS13, &TLS12],
            TlsVersion::Tls13 => &[&TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|e| e.to_string())?;
        let builder = match &self.config.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let roots = self.roots(authorities)?;
                let leaf = own.key.cert[0].clone();
                let verifier = Verifier::new(clients.demand, leaf, roots, provider)
                    .map_err(|e| e.to_string())?;
                builder.with_client_cert_verifier(Arc::new(verifier))
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(own.key)));
        config.alpn_protocols = self.protocols(entry);
        config.ignore_client_order = true;
        // Clients that resume use one; each costs a handshake's time.
        config.send_tls13_tickets = 1;
        let names = if entry.names.is_empty() {
            own.names
                .iter()
                .map(|name| NamePattern::new(name))
                .collect()
        } else {
            entry.names.clone()
        };
        Ok(ServedCertificate {
            path: entry.bundle.clone(),
            names,
            excluded: entry.excluded.clone(),
            not_after: own.not_after,
            config: Arc::new(config),
        })
    }

    fn protocols(&self, entry: &ListEntry) -> Vec<Vec<u8>> {
        let own = ["h2", "http/1.1"].map(str::to_owned);
        let offered = entry.alpn.as_deref().unwrap_or(&own).iter();
        offered
            .filter(|name| self.speaks_http2 || *name != "h2")
            .map(|name| name.clone().into_bytes())
            .collect()
    }

    fn roots(&self, authorities: &[Vec<u8>]) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        for (path, text) in authority_paths(&self.config).iter().zip(authorities) {
            for authority in certificates(path, text)? {
                roots
                    .add(authority)
                    .map_err(|e| format!("{}: {e}", path.display()))?;
            }
        }
        Ok(roots)
    }
}

/// Logs the reasons for which clients will refuse a certificate that can be loaded.
fn report(entry: &ListEntry, own: &CertifiedName) {
    let cert = entry.bundle.display();
    for option in &entry.ignored {
        tracing::warn!(%cert, option, "option of the certificate list has no effect");
    }
    if !own.is_valid(clock::now()) {
        let (from, until) = (own.not_before, own.not_after);
        tracing::warn!(%cert, %from, %until, "certificate is not valid now: clients will refuse it");
    }
    if let Some(name) = own.lacks(&entry.names) {
        tracing::warn!(%cert, ?name, "certificate lacks a name that the list gives it: clients will refuse it");
    }
}

/// Keeps certificates equal to their files.
pub(super) struct Reload {
    loader: Loader,
    seen: TlsFiles,
    /// Files that, as they were seen last, cannot be used.
    failures: Vec<Failure>,
    /// Of the last pass, if it could not read the list.
    last_error: Option<String>,
    served: ServedCertificates,
}

impl Reload {
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
        let (loaded, failures) = loader.load(&files, None);
        if loaded.is_empty() {
            let reasons: Vec<_> = failures.into_iter().map(|one| one.reason).collect();
            return Err(reasons.join("; "));
        }
        for Failure { path, reason } in &failures {
            tracing::warn!(cert = %path.display(), reason, "certificate not loaded, the others are served");
        }
        self.served.replace(loaded);
        (self.loader, self.seen, self.last_error) = (loader, files, None);
        self.failures = failures;
        Ok(())
    }

    /// The certificates of the list, with the reasons of those that are not in force.
    pub(super) fn states(&self) -> CertificateStates {
        let in_force = self.served.all();
        let state = |files: &EntryFiles| {
            let file = &files.entry.bundle;
            let served = in_force.iter().find(|served| served.path == *file);
            let names = served.map(|served| served.names.iter().map(ToString::to_string).collect());
            let failure = self.failures.iter().find(|failure| failure.path == *file);
            CertificateState {
                file: file.clone(),
                names: names.unwrap_or_default(),
                expires: served.map(|served| served.not_after),
                is_in_force: served.is_some(),
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
    async fn pass(&mut self) {
        let found = match TlsFiles::read(&self.loader.config).await {
            Ok(found) => found,
            Err(reason) => {
                let certificates = &self.loader.config.certificates;
                if self.last_error.as_ref() != Some(&reason) {
                    tracing::warn!(%certificates, reason, "certificates not reloaded, the old ones stay in force");
                }
                self.last_error = Some(reason);
                return;
            }
        };
        self.last_error = None;
        if found == self.seen {
            return;
        }
        let in_force = self.served.all();
        let (loaded, failures) = self.loader.load(&found, Some((&self.seen, &in_force)));
        // Half-written pairs are ordinary. Logged once for each change.
        for Failure { path, reason } in &failures {
            tracing::warn!(cert = %path.display(), reason, "certificate not reloaded, the old one stays in force");
        }
        let stays = |failure: &Failure| {
            let file = found.of(&failure.path);
            file.is_some() && file == self.seen.of(&failure.path)
        };
        self.failures.retain(stays);
        self.failures.extend(failures);
        if !loaded.is_empty() {
            self.served.replace(loaded);
        }
        self.seen = found;
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::SocketAddr;
    use std::sync::PoisonError;
    use std::time::{Duration, Instant};

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
