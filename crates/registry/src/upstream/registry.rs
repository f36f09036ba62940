//! One upstream: its client, its circuit breaker, the meaning of its refusals.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use oci::Repository;
use oci_client::{Client, ClientOptions, Credentials, Login};
use service::{Error, ResultExt as _, StateLog};
use tokio::sync::Semaphore;

use crate::error::RegistryError;
use crate::settings::UpstreamConfig;

/// Attempts of a request: one retry, since the caller may have a local copy to serve.
const ATTEMPTS: u32 = 2;
/// Blobs that are fetched at once from one registry: more would only share its bandwidth.
const BLOBS: usize = 8;
/// Lookups at once at one registry.
const LOOKUPS: usize = 16;
/// Interval of probes of a registry that is down.
const AWAY_PAUSE: Duration = Duration::from_secs(5);
/// Between two log lines about the same refusal.
const REFUSAL_REMINDER: Duration = Duration::from_mins(1);
/// Units: bytes of a refusal that are logged; the upstream chooses its text.
const REFUSAL_BYTES: usize = 1 << 10;

#[derive(Debug)]
pub(super) struct Upstream {
    prefix: Option<Repository>,
    /// Host with its port.
    registry: String,
    pub(super) client: Client,
    pub(super) blobs: Semaphore,
    pub(super) lookups: Semaphore,
    /// When it was last tried in vain, since when nothing was heard.
    away: Mutex<Option<Instant>>,
    refusals: Mutex<StateLog>,
}

/// Why nothing comes from an upstream.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    error: RegistryError,
    /// It is no statement about the content: the local copy may be served.
    pub(super) may_be_bridged: bool,
}

impl Upstream {
    /// Errors: a file that cannot be used.
    pub(super) async fn open(config: &UpstreamConfig) -> Result<Self, Error> {
        let failed = |what: &str| format!("reading the {what} of the upstream {}", config.url);
        let (is_tls, registry) = config.address().doing(|| failed("URL"))?;
        let ca_pem = match &config.cafile {
            Some(path) => Some(tokio::fs::read(path).await.doing(|| failed("CAFILE"))?),
            None => None,
        };
        let password = match &config.passwordfile {
            Some(path) => {
                let text = tokio::fs::read_to_string(path).await;
                let text = text.doing(|| failed("PASSWORDFILE"))?;
                Some(text.trim_end_matches(['\r', '\n']).into())
            }
            None => config.password.clone(),
        };
        let mut credentials = Credentials::anonymous();
        if let (Some(user), Some(password)) = (config.username.clone(), password) {
            credentials = credentials.with(registry, Login { user, password });
        }
        let client = Client::new(ClientOptions {
            credentials,
            ca_pem,
            plain_http: !is_tls,
            plain_http_remedy: Some("http:// in its URL"),
            attempts: Some(ATTEMPTS),
            ..ClientOptions::default()
        })
        .doing(|| failed("CAFILE"))?;
        Ok(Self {
            prefix: config.prefix.clone(),
            registry: registry.to_owned(),
            client,
            blobs: Semaphore::new(BLOBS),
            lookups: Semaphore::new(LOOKUPS),
            away: Mutex::default(),
            refusals: Mutex::new(StateLog::new(REFUSAL_REMINDER)),
        })
    }

    pub(super) fn registry(&self) -> &str {
        &self.registry
    }

    pub(super) fn prefix_length(&self) -> usize {
        let prefix = self.prefix.as_ref();
        prefix.map_or(0, |prefix| prefix.as_str().len())
    }

    /// The upstream's name of the local repository `name`; None when it is not a copy of this upstream.
    pub(super) fn remote_name(&self, name: &Repository) -> Option<Repository> {
        let Some(prefix) = &self.prefix else {
            return Some(name.clone());
        };
        let below = name.as_str().strip_prefix(prefix.as_str())?;
        below.strip_prefix('/')?.parse().ok()
    }

    /// The local name of `name` in the registry `namespace`, if this upstream is that registry.
    pub(super) fn local_name(&self, name: &Repository, namespace: &str) -> Option<Repository> {
        let prefix = self.prefix.as_ref().map(Repository::as_str);
        if namespace != self.registry && prefix != Some(namespace) {
            return None;
        }
        match prefix {
            Some(prefix) if self.remote_name(name).is_none() => {
                format!("{prefix}/{name}").parse().ok()
            }
            _ => Some(name.clone()),
        }
    }

    /// Whether it could not be reached last time, or wants to be left alone.
    pub(super) fn is_away(&self) -> bool {
        let away = *self.away.lock().unwrap_or_else(PoisonError::into_inner);
        away.is_some() || self.client.rest(&self.registry).is_some()
    }

    /// Whether a probe is due; the first caller is to send it.
    pub(super) fn is_due(&self) -> bool {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = away.is_some_and(|last| last.elapsed() >= AWAY_PAUSE);
        if is_due {
            *away = Some(Instant::now());
        }
        is_due
    }

    /// Errors: it wants to be left alone.
    pub(super) fn may_ask(&self) -> Result<(), Refusal> {
        match self.client.rest(&self.registry) {
            None => Ok(()),
            Some(_) => Err(self.is_away_for("it wants to be left alone")),
        }
    }

    pub(super) fn is_away_for(&self, cause: &str) -> Refusal {
        let error = oci::Error::unavailable("the upstream", cause.to_owned());
        self.refusal(&error, RegistryError::upstream_away(cause.to_owned()))
    }

    /// Records whether it could be reached, and logs each change.
    pub(super) fn heard<T>(&self, answer: Result<T, oci::Error>) -> Result<T, oci::Error> {
        if let Err(error @ oci::Error::Unavailable { .. }) = &answer {
            self.lost(&error.chain());
            return answer;
        }
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away.take().is_some() {
            tracing::info!(upstream = self.registry, "the upstream is back");
        }
        drop(away);
        if answer.is_ok() {
            self.refusals().recovered(Instant::now());
        }
        answer
    }

    /// It cannot be reached.
    pub(super) fn lost(&self, cause: &str) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away.replace(Instant::now()).is_none() {
            tracing::warn!(upstream = self.registry, cause, "the upstream is away");
        }
    }

    fn refusals(&self) -> MutexGuard<'_, StateLog> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It does not give something out: the remedy is the operator's (other credentials, more rights), and the client
    /// learns of neither.
    fn warn_of_refusal(&self, cause: &str, now: Instant) {
        let cause = &cause[..cause.floor_char_boundary(REFUSAL_BYTES)];
        let admitted = self.refusals().admit(cause, now);
        if let Some(suppressed) = admitted {
            let upstream = &self.registry;
            tracing::warn!(upstream, cause, suppressed, "the upstream refuses requests");
        }
    }

    /// The error for our client of an upstream's refusal; `unknown` for content that it does not have.
    pub(super) fn refusal(&self, error: &oci::Error, unknown: RegistryError) -> Refusal {
        let cause = format!("{}: {}", self.registry, error.chain());
        let (error, may_be_bridged) = match error {
            oci::Error::NotFound { .. } => (unknown, false),
            oci::Error::Unauthenticated { .. } | oci::Error::Forbidden { .. } => {
                self.warn_of_refusal(&error.chain(), Instant::now());
                (RegistryError::upstream_refuses(cause), true)
            }
            oci::Error::Unavailable { .. } => {
                let rest = self.client.rest(&self.registry);
                let error = match rest {
                    Some(rest) => RegistryError::upstream_rests(rest.as_secs() + 1, cause),
                    None => RegistryError::upstream_away(cause),
                };
                (error, true)
            }
            _ => (RegistryError::upstream_is_wrong(cause), true),
        };
        Refusal {
            error,
            may_be_bridged,
        }
    }
}

impl Refusal {
    /// Something here failed.
    pub(super) fn own(error: impl Into<RegistryError>) -> Self {
        Self {
            error: error.into(),
            may_be_bridged: false,
        }
    }
}

impl From<Refusal> for RegistryError {
    fn from(refusal: Refusal) -> Self {
        refusal.error
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// Lines that were logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Log {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    async fn upstream(prefix: Option<&str>) -> Upstream {
        let config = UpstreamConfig {
            prefix: prefix.map(|prefix| prefix.parse().unwrap()),
            url: "https://registry.example:5000".to_owned(),
            ..UpstreamConfig::default()
        };
        Upstream::open(&config).await.unwrap()
    }

    #[tokio::test]
    async fn names_here_and_there() {
        let name = |text: &str| text.parse::<Repository>().unwrap();
        let all = upstream(None).await;
        assert_eq!(all.remote_name(&name("a/b")), Some(name("a/b")));
        let below = upstream(Some("docker.io")).await;
        assert_eq!(below.remote_name(&name("docker.io/a/b")), Some(name("a/b")));
        for other in ["docker.io", "docker.iox/a", "a/docker.io/b"] {
            assert_eq!(below.remote_name(&name(other)), None, "{other}");
        }
        for namespace in ["docker.io", "registry.example:5000"] {
            let local = below.local_name(&name("a"), namespace);
            assert_eq!(local, Some(name("docker.io/a")));
            let local = below.local_name(&name("docker.io/a"), namespace);
            assert_eq!(local, Some(name("docker.io/a")));
        }
        assert_eq!(below.local_name(&name("a"), "quay.io"), None);
        let long = name(&"a".repeat(250));
        assert_eq!(below.local_name(&long, "docker.io"), None);
    }

    #[tokio::test]
    async fn who_is_away_is_remembered_until_an_answer_comes() {
        let upstream = upstream(None).await;
        assert!(!upstream.is_away());
        let lost = oci::Error::unavailable("the registry", "no route".to_owned());
        upstream.heard::<()>(Err(lost)).unwrap_err();
        assert!(upstream.is_away() && !upstream.is_due());
        let long_ago = Instant::now().checked_sub(AWAY_PAUSE);
        *upstream.away.lock().unwrap() = long_ago;
        assert!(upstream.is_due() && !upstream.is_due() && upstream.is_away());
        upstream.heard(Ok(())).unwrap();
        assert!(!upstream.is_away());
    }

    #[tokio::test]
    async fn a_refusal_is_a_warning_once_within_a_minute() {
        let upstream = upstream(None).await;
        let log = Log::default();
        let logged = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(log).finish();
        let lines = tracing::subscriber::with_default(subscriber, || {
            let refuse = |reason: &str| {
                let reason = reason.to_owned();
                let unknown = RegistryError::upstream_away(String::new());
                upstream.refusal(&oci::Error::Forbidden { reason }, unknown)
            };
            for _ in 0..3 {
                refuse("403 to manifest a");
            }
            refuse(&format!("403 to manifest b{}", "x".repeat(1 << 20)));
            let later = Instant::now() + REFUSAL_REMINDER;
            upstream.warn_of_refusal("403 to manifest a", later);
            String::from_utf8(logged.0.lock().unwrap().clone()).unwrap()
        });
        assert!(lines.len() < 4 << 10, "{} bytes", lines.len());
        let warnings: Vec<_> = lines.lines().filter(|it| it.contains("WARN")).collect();
        let of_a = |suppressed| {
            let shown = format!("suppressed={suppressed}");
            let is_one = |it: &&&str| it.contains("manifest a") && it.contains(&shown);
            warnings.iter().filter(is_one).count()
        };
        assert_eq!((of_a(0), of_a(2), warnings.len()), (1, 1, 3), "{lines}");
        assert!(warnings[0].contains("registry.example:5000"), "{lines}");
    }
}
