//! Users with passwords.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use metrics::Counter;
use service::{Error, ResultExt as _};

use concurrency::WatchedFile;

use super::access::Access;
use super::backoff::{self, Backoff};
use super::checks::Checks;
use super::credentials::{Credentials, Login};
use super::passwords::{Passwords, TOKEN_LIFETIME, User};
use super::policy::Policy;
use crate::error::RegistryError;
use crate::observe;
use crate::settings::Settings;

/// The token of anonymous clients.
const ANONYMOUS: &str = "anonymous";
/// Units: seconds. How long a token counts.
pub(crate) const TOKEN_LIFETIME_S: u64 = TOKEN_LIFETIME.as_secs();
/// How long clients are asked to wait while too many passwords wait to be checked.
const CHECKS_FULL_WAIT: Duration = Duration::from_secs(1);

/// Authenticates by passwords and our own tokens. Clones share their caches.
#[derive(Debug, Clone)]
pub(crate) struct Users(Arc<UsersInner>);

#[derive(Debug)]
struct UsersInner {
    passwords: Passwords,
    policy: Rules,
    backoff: Backoff,
    checks: Checks,
    basic: HeaderValue,
    /// Passwords that were shown, and those that were remembered.
    logins: (Counter, Counter),
}

#[derive(Debug)]
enum Rules {
    Fixed(Arc<Policy>),
    File(WatchedFile<Policy>),
}

impl Users {
    /// Those of the password file, if there is one. The files are read again whenever they change.
    ///
    /// Errors: a file that cannot be used, by its variable; a realm that cannot stand in a header.
    pub(crate) async fn open(settings: &Settings) -> Result<Option<Self>, Error> {
        let Some(path) = &settings.password_file() else {
            return Ok(None);
        };
        let reading =
            |variable: &str, path: &Path| format!("reading {variable} {}", path.display());
        let passwords = Passwords::open(path)
            .await
            .doing(|| reading("REGISTRY_AUTH_HTPASSWD_PATH", path))?;
        let policy = match &settings.registry_auth_policy_path {
            Some(path) => Rules::File(
                WatchedFile::open(path, |bytes| Policy::parse(std::str::from_utf8(bytes)?))
                    .await
                    .doing(|| reading("REGISTRY_AUTH_POLICY_PATH", path))?,
            ),
            None => Rules::Fixed(Arc::new(Policy::of_users(
                settings.registry_auth_anonymouspull,
            ))),
        };
        let realm = settings
            .registry_auth_htpasswd_realm
            .replace(['"', '\\'], "");
        let basic = HeaderValue::from_str(&format!("Basic realm=\"{realm}\""))
            .doing("reading REGISTRY_AUTH_HTPASSWD_REALM")?;
        Ok(Some(Self(Arc::new(UsersInner {
            passwords,
            policy,
            backoff: Backoff::new(),
            checks: Checks::new(),
            basic,
            logins: observe::count_logins(),
        }))))
    }

    /// The challenge to clients that have to send a password.
    pub(crate) fn basic(&self) -> HeaderValue {
        self.0.basic.clone()
    }

    /// Whether there is anything to do without a password.
    pub(crate) async fn lets_in_anonymous(&self) -> bool {
        self.policy().await.lets_in_anonymous()
    }

    /// Whether the policy grants writes without a password.
    pub(crate) async fn lets_in_anonymous_writers(&self) -> bool {
        self.policy().await.lets_in_anonymous_writers()
    }

    /// Authenticates a request; the policy decides on its access.
    ///
    /// Errors: wrong credentials, none where there have to be some, too many wrong ones before.
    pub(crate) async fn admit(
        &self,
        credentials: Credentials,
        address: IpAddr,
    ) -> Result<Access, RegistryError> {
        let user = match credentials {
            Credentials::None => None,
            Credentials::Bearer(token) if token == ANONYMOUS => None,
            Credentials::Bearer(token) => Some(
                self.0
                    .passwords
                    .by_token(&token, Instant::now())
                    .await
                    .ok_or_else(RegistryError::unauthorized)?,
            ),
            Credentials::Basic(login) => Some(self.log_in(login, address).await?),
            Credentials::Unreadable => return Err(RegistryError::unauthorized()),
        };
        let policy = self.policy().await;
        if user.is_none() && !policy.lets_in_anonymous() {
            return Err(RegistryError::unauthorized());
        }
        let user = user.map(|user| user.name);
        Ok(Access::by_policy(user, policy))
    }

    /// A token for a password, or for nothing.
    ///
    /// Errors: as [`Self::admit`].
    pub(crate) async fn token(
        &self,
        credentials: Credentials,
        address: IpAddr,
    ) -> Result<String, RegistryError> {
        match credentials {
            Credentials::None if self.lets_in_anonymous().await => Ok(ANONYMOUS.to_owned()),
            Credentials::Basic(login) => {
                let user = self.log_in(login, address).await?;
                Ok(self.0.passwords.token(&user, Instant::now()))
            }
            _ => Err(RegistryError::unauthorized()),
        }
    }

    async fn log_in(&self, login: Login, address: IpAddr) -> Result<User, RegistryError> {
        let UsersInner {
            passwords,
            backoff,
            checks,
            ..
        } = &*self.0;
        let claim = passwords.claim(login, backoff::network(address)).await;
        let (shown, remembered) = &self.0.logins;
        shown.increment(1);
        if let Some(user) = passwords.recall(&claim) {
            remembered.increment(1);
            return Ok(user);
        }
        let source = backoff.source(address, claim.user());
        let throttled = |wait| {
            observe::auth_failed("throttled");
            RegistryError::too_many_requests(whole_seconds(wait))
        };
        let may_check = || match backoff.wait(source, Instant::now()) {
            Some(wait) => Err(throttled(wait)),
            None => Ok(()),
        };
        may_check()?;
        let slot = checks.slot(source.network, backoff.is_established(source));
        let slot = slot.await.ok_or_else(|| throttled(CHECKS_FULL_WAIT))?;
        // Others may have sent the same meanwhile: a client pushes several blobs at once.
        if let Some(user) = passwords.recall(&claim) {
            return Ok(user);
        }
        may_check()?;
        if let Some(user) = passwords.verify(claim, slot).await {
            backoff.succeeded(source);
            return Ok(user);
        }
        observe::auth_failed("wrong");
        if backoff.failed(source, Instant::now()) {
            tracing::warn!(%address, "failed logins exceed their budget: the next ones have to wait");
        }
        Err(RegistryError::unauthorized())
    }

    async fn policy(&self) -> Arc<Policy> {
        match &self.0.policy {
            Rules::Fixed(policy) => policy.clone(),
            Rules::File(policy) => policy.get().await,
        }
    }
}

/// Rounded up: a client that retries a moment too early would wait once more.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::auth::passwords::REMEMBERED_IDLE;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    async fn gate() -> (tempfile::TempDir, Users) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("htpasswd");
        let hash = |password| bcrypt::hash(password, 4).unwrap();
        std::fs::write(&path, format!("u:{}\nv:{}\n", hash("p"), hash("q"))).unwrap();
        let settings = Settings {
            registry_auth_htpasswd_path: Some(path),
            ..Settings::default()
        };
        let gate = Users::open(&settings).await.unwrap().unwrap();
        (dir, gate)
    }

    async fn status(gate: &Users, user: &str, password: &str) -> u16 {
        let (user, password) = (user.to_owned(), password.to_owned());
        let login = Credentials::Basic(Login { user, password });
        match gate.admit(login, HERE).await {
            Ok(_) => 200,
            Err(refusal) => refusal.answer().status().as_u16(),
        }
    }

    /// Minutes of waiting, at any speed of the machine.
    fn slow_down(gate: &Users, user: &str) {
        let source = gate.0.backoff.source(HERE, user);
        for _ in 0..20 {
            gate.0.backoff.failed(source, Instant::now());
        }
    }

    #[tokio::test]
    async fn guessing_waits_and_who_is_known_does_not() {
        let (_dir, gate) = gate().await;
        assert_eq!(status(&gate, "u", "p").await, 200);
        for _ in 0..4 {
            assert_eq!(status(&gate, "u", "wrong").await, 401);
        }
        for user in ["u", "v"] {
            slow_down(&gate, user);
        }
        assert_eq!(status(&gate, "u", "wrong").await, 429);
        assert_eq!(status(&gate, "u", "p").await, 200, "remembered");
        assert_eq!(status(&gate, "v", "q").await, 429, "not yet checked");
    }

    #[tokio::test]
    async fn an_old_password_holds_up_nobody_else_behind_its_address() {
        let (_dir, gate) = gate().await;
        for _ in 0..10 {
            slow_down(&gate, "robot");
        }
        assert_eq!(status(&gate, "robot", "old").await, 429);
        assert_eq!(status(&gate, "v", "q").await, 200);
    }

    #[tokio::test]
    async fn who_has_logged_in_before_does_not_depend_on_its_neighbours() {
        let (_dir, gate) = gate().await;
        assert_eq!(status(&gate, "u", "p").await, 200);
        for n in 0..20 {
            slow_down(&gate, &format!("robot{n}"));
        }
        gate.0.passwords.forget();
        assert_eq!(status(&gate, "u", "p").await, 200, "established");
        assert_eq!(status(&gate, "v", "q").await, 429, "a stranger");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn guessing_at_once_is_no_way_around() {
        let (_dir, gate) = gate().await;
        // Five are free, and as many as are checked at one time may slip in; the rest has to wait.
        let expected = 5 + std::thread::available_parallelism().unwrap().get();
        let guesses = (0..4 * expected).map(|_| status(&gate, "u", "wrong"));
        let statuses = futures_util::future::join_all(guesses).await;
        let checked = statuses.iter().filter(|&&status| status == 401).count();
        assert!((5..2 * expected).contains(&checked), "{checked}");
    }

    #[tokio::test]
    async fn a_right_password_forgives() {
        let (_dir, gate) = gate().await;
        for _ in 0..3 {
            for _ in 0..4 {
                assert_eq!(status(&gate, "u", "wrong").await, 401);
            }
            gate.0.passwords.forget();
            assert_eq!(status(&gate, "u", "p").await, 200);
        }
    }

    #[tokio::test]
    async fn tokens_stand_for_passwords() {
        let (_dir, gate) = gate().await;
        let login = |password: &str| {
            Credentials::Basic(Login {
                user: "u".to_owned(),
                password: password.to_owned(),
            })
        };
        let token = gate.token(login("p"), HERE).await.unwrap();
        let access = gate.admit(Credentials::Bearer(token), HERE).await.unwrap();
        assert_eq!(access.user(), Some("u"));
        assert!(gate.token(login("wrong"), HERE).await.is_err());
        assert!(gate.token(Credentials::None, HERE).await.is_err());
        for token in ["x", ANONYMOUS] {
            let bearer = Credentials::Bearer(token.to_owned());
            assert!(gate.admit(bearer, HERE).await.is_err(), "{token}");
        }
        assert!(TOKEN_LIFETIME_S < REMEMBERED_IDLE.as_secs());
    }

    #[test]
    fn seconds_are_rounded_up() {
        for (wait_ms, seconds) in [(1, 1), (1000, 1), (1001, 2)] {
            assert_eq!(whole_seconds(Duration::from_millis(wait_ms)), seconds);
        }
    }
}
