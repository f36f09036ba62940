//! The users and their passwords.
//!
//! Right passwords are remembered, since one check costs up to 300 ms; wrong ones and unknown users cost the
//! same time, so that no client learns which names exist.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use ring::hmac;
use sha2::{Digest as _, Sha256};

use concurrency::{BoxError, WatchedFile};

use super::checks::Slot;
use super::credentials::Login;
use crate::htpasswd;

/// Remembered passwords, each of one user at one network: about 2 MiB.
pub(super) const REMEMBERED_LIMIT: u64 = 8192;
/// How long a right password is remembered without use.
pub(super) const REMEMBERED_IDLE: Duration = Duration::from_mins(10);
/// How long a token counts: less than its password is remembered.
pub(super) const TOKEN_LIFETIME: Duration = Duration::from_mins(5);
/// Hash for unknown users when the file has none: cost 10, of an unknown text.
const UNKNOWN_USER_HASH: &str = "$2b$10$CwTycUXWue0Thq9StjUM0uJ8nzFkH1lP6p4Yf4b4h1mZ3E4xN5u3K";

/// A password file, and which passwords are known to be right.
#[derive(Debug)]
pub(super) struct Passwords {
    users: WatchedFile<Users>,
    remembered: Cache<Mark, Arc<Known>>,
    key: [u8; 32],
    /// Signs tokens.
    token_key: hmac::Key,
    /// The ends of tokens are counted from here: the machine's date may be changed.
    started: Instant,
}

/// Keyed hash of network, user, password and stored hash: a changed file makes it worthless by itself. It names the
/// network, so that a remembered password can be guessed without delay only from where its user logged in.
type Mark = [u8; MARK_BYTES];

const MARK_BYTES: usize = 32;
/// Of a token: mark, then the end in seconds since the start, big-endian, then the signature of both.
const SIGNED_BYTES: usize = MARK_BYTES + size_of::<u64>();

/// A user whose password was right.
#[derive(Debug)]
struct Known {
    user: Arc<str>,
    hash: String,
}

/// A login and the hash that it is compared with.
#[derive(Debug)]
pub(super) struct Claim {
    login: Login,
    hash: String,
    is_known: bool,
    mark: Mark,
}

/// A user who has logged in.
#[derive(Debug, Clone)]
pub(super) struct User {
    pub(super) name: Arc<str>,
    mark: Mark,
}

#[derive(Debug)]
struct Users {
    hashes: HashMap<String, String>,
    /// A hash that costs as much as the dearest one.
    unknown_user_hash: String,
}

impl Passwords {
    /// Every login fails until the file exists.
    ///
    /// Errors: the file cannot be read; a line is no `user:hash`.
    pub(super) async fn open(path: &Path) -> Result<Self, BoxError> {
        let (key, token_key): ([u8; 32], [u8; 32]) = rand::random();
        let parse = |bytes: &[u8]| Users::parse(std::str::from_utf8(bytes)?);
        let users = if path.exists() {
            WatchedFile::open(path, parse).await?
        } else {
            let remedy = "`atoll registry htpasswd` makes one";
            tracing::warn!(path = %path.display(), remedy, "no password file: every login fails");
            WatchedFile::awaiting(path, parse, Users::parse("")?)
        };
        Ok(Self {
            users,
            remembered: Cache::builder()
                .max_capacity(REMEMBERED_LIMIT)
                .time_to_idle(REMEMBERED_IDLE)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            key,
            token_key: hmac::Key::new(hmac::HMAC_SHA256, &token_key),
            started: Instant::now(),
        })
    }

    pub(super) async fn claim(&self, login: Login, network: IpAddr) -> Claim {
        let users = self.users.get().await;
        let (hash, is_known) = match users.hashes.get(&login.user) {
            Some(hash) => (hash.clone(), true),
            None => (users.unknown_user_hash.clone(), false),
        };
        let mark = self.mark(&login, network, &hash);
        Claim {
            login,
            hash,
            is_known,
            mark,
        }
    }

    /// The user of a password that is remembered as right.
    pub(super) fn recall(&self, claim: &Claim) -> Option<User> {
        let known = self
            .remembered
            .get(&claim.mark)
            .filter(|_| claim.is_known)?;
        Some(User {
            name: known.user.clone(),
            mark: claim.mark,
        })
    }

    /// Checks the password, at a price. `slot` is kept until the check has ended, also when the client disconnects.
    pub(super) async fn verify(&self, claim: Claim, slot: Slot) -> Option<User> {
        let Claim {
            login: Login { user, password },
            hash,
            is_known,
            mark,
        } = claim;
        let check = move || {
            let _slot = slot;
            let is_right = htpasswd::is_password(&password)
                & bcrypt::verify(&password, &hash).unwrap_or(false);
            (is_right, hash)
        };
        let (is_right, hash) = tokio::task::spawn_blocking(check).await.ok()?;
        if !(is_right && is_known) {
            return None;
        }
        let name: Arc<str> = user.into();
        let known = Known {
            user: name.clone(),
            hash,
        };
        self.remembered.insert(mark, Arc::new(known));
        Some(User { name, mark })
    }

    /// A token that replaces the password of `user` for [`TOKEN_LIFETIME`].
    pub(super) fn token(&self, user: &User, now: Instant) -> String {
        let end = self.seconds(now + TOKEN_LIFETIME);
        let mut token = Vec::with_capacity(2 * SIGNED_BYTES);
        token.extend_from_slice(&user.mark);
        token.extend_from_slice(&end.to_be_bytes());
        let signature = hmac::sign(&self.token_key, &token);
        token.extend_from_slice(signature.as_ref());
        URL_SAFE_NO_PAD.encode(token)
    }

    /// The user of `token`, until it expires, and as long as its password is the user's. Use does not
    /// prolong it.
    pub(super) async fn by_token(&self, token: &str, now: Instant) -> Option<User> {
        let token = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (signed, signature) = token.split_at_checked(SIGNED_BYTES)?;
        hmac::verify(&self.token_key, signed, signature).ok()?;
        let (mark, end) = signed.split_first_chunk::<MARK_BYTES>()?;
        let end = u64::from_be_bytes(end.try_into().ok()?);
        if self.seconds(now) >= end {
            return None;
        }
        let known = self.remembered.get(mark)?;
        let users = self.users.get().await;
        let is_current = users.hashes.get(&*known.user) == Some(&known.hash);
        is_current.then(|| User {
            name: known.user.clone(),
            mark: *mark,
        })
    }

    /// Whole seconds since the start.
    fn seconds(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.started).as_secs()
    }

    fn mark(&self, login: &Login, network: IpAddr, hash: &str) -> Mark {
        let mut hasher = Sha256::new();
        hasher.update(self.key);
        let network = network.to_string();
        for part in [&network, &login.user, &login.password, hash] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}

impl Claim {
    pub(super) fn user(&self) -> &str {
        &self.login.user
    }
}

impl Users {
    fn parse(text: &str) -> Result<Self, BoxError> {
        let hashes = htpasswd::parse(text)?;
        for (user, _) in hashes.iter().filter(|(_, hash)| cost(hash).is_none()) {
            tracing::warn!(
                user,
                "this user's hash is not bcrypt: the user cannot log in"
            );
        }
        let dearest = hashes
            .values()
            .filter(|hash| cost(hash).is_some())
            .max_by_key(|hash| cost(hash));
        let unknown_user_hash = dearest.map_or(UNKNOWN_USER_HASH, String::as_str).to_owned();
        Ok(Self {
            hashes,
            unknown_user_hash,
        })
    }
}

/// The work factor of a bcrypt hash.
fn cost(hash: &str) -> Option<u32> {
    let rest = ["$2a$", "$2b$", "$2y$"]
        .iter()
        .find_map(|kind| hash.strip_prefix(kind))?;
    rest.split_once('$')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::auth::checks::Checks;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Cost 4, the cheapest there is.
    fn entry(user: &str, password: &str) -> String {
        format!("{user}:{}\n", bcrypt::hash(password, 4).unwrap())
    }

    async fn passwords(text: &str) -> (tempfile::TempDir, Passwords) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("htpasswd"), text).unwrap();
        let passwords = Passwords::open(&dir.path().join("htpasswd")).await.unwrap();
        (dir, passwords)
    }

    async fn claim(passwords: &Passwords, user: &str, password: &str) -> Claim {
        let (user, password) = (user.to_owned(), password.to_owned());
        passwords.claim(Login { user, password }, HERE).await
    }

    async fn verify(passwords: &Passwords, user: &str, password: &str) -> Option<User> {
        let slot = Checks::new().slot(HERE, false).await.unwrap();
        let claim = claim(passwords, user, password).await;
        passwords.verify(claim, slot).await
    }

    impl Passwords {
        pub(in crate::auth) fn forget(&self) {
            self.remembered.invalidate_all();
        }
    }

    #[tokio::test]
    async fn right_passwords_are_remembered() {
        let (_dir, passwords) = passwords(&entry("u", "p:w")).await;
        assert!(
            passwords
                .recall(&claim(&passwords, "u", "p:w").await)
                .is_none()
        );
        let user = verify(&passwords, "u", "p:w").await.unwrap();
        assert_eq!(&*user.name, "u");
        assert!(
            passwords
                .recall(&claim(&passwords, "u", "p:w").await)
                .is_some()
        );
        assert!(
            passwords
                .recall(&claim(&passwords, "u", "p").await)
                .is_none()
        );
    }

    #[tokio::test]
    async fn nobody_else_gets_in() {
        let right = "p".repeat(72);
        let (_dir, passwords) = passwords(&format!("{}x:plain\n", entry("u", &right))).await;
        let (long, cut) = (format!("{right}p"), format!("{right}\0"));
        for (user, password) in [
            ("u", "p"),
            ("u", ""),
            ("u", &long),
            ("u", &cut),
            ("nobody", "p"),
            ("nobody", &right),
            ("x", "plain"),
            ("", ""),
        ] {
            let refused = verify(&passwords, user, password).await;
            assert!(refused.is_none(), "{user:?} {password:?}");
        }
        passwords.remembered.run_pending_tasks();
        assert_eq!(passwords.remembered.entry_count(), 0);
        assert!(verify(&passwords, "u", &right).await.is_some());
    }

    #[tokio::test]
    async fn a_changed_file_makes_passwords_and_tokens_worthless() {
        let (dir, passwords) = passwords(&entry("u", "old")).await;
        let now = Instant::now();
        let user = verify(&passwords, "u", "old").await.unwrap();
        let token = passwords.token(&user, now);
        assert_eq!(&*passwords.by_token(&token, now).await.unwrap().name, "u");
        for wrong in [
            "",
            "x",
            &token[1..],
            &format!("{token}A"),
            &"A".repeat(token.len()),
        ] {
            assert!(passwords.by_token(wrong, now).await.is_none(), "{wrong:?}");
        }
        let path = dir.path().join("htpasswd");
        std::fs::write(&path, format!("# changed\n{}", entry("u", "new"))).unwrap();
        assert!(passwords.by_token(&token, now).await.is_none());
        assert!(
            passwords
                .recall(&claim(&passwords, "u", "old").await)
                .is_none()
        );
        assert!(verify(&passwords, "u", "old").await.is_none());
        assert!(verify(&passwords, "u", "new").await.is_some());
        std::fs::write(&path, "garbage").unwrap();
        assert!(verify(&passwords, "u", "new").await.is_some());
    }

    // limit: lifetime of a token for a password
    #[tokio::test]
    async fn tokens_end_when_they_say_however_often_they_are_used() {
        let (_dir, passwords) = passwords(&entry("u", "p")).await;
        let user = verify(&passwords, "u", "p").await.unwrap();
        let given = passwords.started;
        let token = passwords.token(&user, given);
        for second in [0, 100, 200, TOKEN_LIFETIME.as_secs() - 1] {
            let now = given + Duration::from_secs(second);
            assert!(passwords.by_token(&token, now).await.is_some(), "{second}");
        }
        let end = given + TOKEN_LIFETIME;
        assert!(passwords.by_token(&token, end).await.is_none());
        let mut later = URL_SAFE_NO_PAD.decode(&token).unwrap();
        later[SIGNED_BYTES - 1] += 1;
        let forged = URL_SAFE_NO_PAD.encode(later);
        assert!(passwords.by_token(&forged, given).await.is_none());
        assert!(
            passwords
                .by_token(&passwords.token(&user, end), end)
                .await
                .is_some()
        );
    }

    #[tokio::test]
    async fn a_remembered_password_is_unknown_elsewhere() {
        let (_dir, passwords) = passwords(&entry("u", "p")).await;
        verify(&passwords, "u", "p").await.unwrap();
        let login = Login {
            user: "u".to_owned(),
            password: "p".to_owned(),
        };
        let elsewhere = passwords.claim(login, Ipv4Addr::new(10, 0, 0, 1).into());
        assert!(passwords.recall(&elsewhere.await).is_none());
    }

    // limit: remembered passwords
    #[tokio::test]
    async fn no_more_passwords_are_remembered_than_the_bound() {
        let (_dir, passwords) = passwords("").await;
        let known = Arc::new(Known {
            user: "u".into(),
            hash: String::new(),
        });
        for number in 0..=REMEMBERED_LIMIT {
            let mut mark = [0; MARK_BYTES];
            mark[..size_of::<u64>()].copy_from_slice(&number.to_be_bytes());
            passwords.remembered.insert(mark, known.clone());
            if number + 1 == REMEMBERED_LIMIT {
                passwords.remembered.run_pending_tasks();
                assert_eq!(passwords.remembered.entry_count(), REMEMBERED_LIMIT);
            }
        }
        passwords.remembered.run_pending_tasks();
        assert_eq!(passwords.remembered.entry_count(), REMEMBERED_LIMIT);
    }

    #[tokio::test]
    async fn unknown_users_cost_as_much_as_the_dearest() {
        let dear = htpasswd::line("dear", "p").unwrap();
        let (_dir, passwords) = passwords(&format!("{}{dear}", entry("cheap", "p"))).await;
        let unknown = claim(&passwords, "unknown", "p").await;
        assert_eq!(cost(&unknown.hash), Some(10));
        assert!(
            bcrypt::verify("x", UNKNOWN_USER_HASH).is_ok(),
            "the text has to be a hash, or it costs nothing"
        );
    }
}
