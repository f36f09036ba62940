//! The users and their passwords.
//!
//! Right passwords are remembered, since one check costs up to 300 ms; wrong ones and unknown users cost the
//! same time, so that nobody learns which names exist.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use moka::sync::Cache;
use rand::RngCore as _;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::credentials::Login;
use crate::htpasswd;
use crate::watched::{BoxError, Watched};

/// Remembered passwords.
const REMEMBERED_LIMIT: u64 = 1024;
/// How long a right password is remembered without use.
pub(super) const REMEMBERED_IDLE: Duration = Duration::from_mins(10);
/// What unknown users are checked against when the file has no user: cost 10, of a text nobody knows.
const NOBODY: &str = "$2b$10$CwTycUXWue0Thq9StjUM0uJ8nzFkH1lP6p4Yf4b4h1mZ3E4xN5u3K";

/// A password file, and which passwords are known to be right.
#[derive(Debug)]
pub(super) struct Passwords {
    users: Watched<Users>,
    remembered: Cache<Mark, Arc<Known>>,
    key: [u8; 32],
    /// Checks at one time, so that guessing does not take the whole machine.
    checks: Arc<Semaphore>,
}

/// Keyed hash of user, password and stored hash: a changed file makes it worthless by itself. Nobody can guess it,
/// so it is also the token that stands for the password.
type Mark = [u8; 32];

/// A user whose password was right.
#[derive(Debug)]
struct Known {
    user: Arc<str>,
    hash: String,
}

/// A login and what it is measured by.
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
    nobody: String,
}

impl Passwords {
    /// Nobody can log in before the file is there.
    ///
    /// Errors: the file cannot be read; a line is no `user:hash`.
    pub(super) async fn open(path: &Path) -> Result<Self, BoxError> {
        let mut key = [0; 32];
        rand::rng().fill_bytes(&mut key);
        let checks = std::thread::available_parallelism().map_or(1, usize::from);
        let users = if path.exists() {
            Watched::open(path, Users::parse).await?
        } else {
            let remedy = "`atoll registry htpasswd` makes one";
            tracing::warn!(path = %path.display(), remedy, "no password file: nobody can log in");
            Watched::awaiting(path, Users::parse, Users::parse("")?)
        };
        Ok(Self {
            users,
            remembered: Cache::builder()
                .max_capacity(REMEMBERED_LIMIT)
                .time_to_idle(REMEMBERED_IDLE)
                .build(),
            key,
            checks: Arc::new(Semaphore::new(checks)),
        })
    }

    pub(super) async fn claim(&self, login: Login) -> Claim {
        let users = self.users.get().await;
        let (hash, is_known) = match users.hashes.get(&login.user) {
            Some(hash) => (hash.clone(), true),
            None => (users.nobody.clone(), false),
        };
        let mark = self.mark(&login, &hash);
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

    /// The right to check one password. It is kept until the check has ended, though the client be gone.
    pub(super) async fn turn(&self) -> OwnedSemaphorePermit {
        let turn = self.checks.clone().acquire_owned().await;
        turn.expect("the semaphore is never closed")
    }

    /// Checks the password, at a price.
    pub(super) async fn verify(&self, claim: Claim, turn: OwnedSemaphorePermit) -> Option<User> {
        let Claim {
            login: Login { user, password },
            hash,
            is_known,
            mark,
        } = claim;
        let check = move || {
            let _turn = turn;
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

    /// The user to whom `token` was given, as long as the password is remembered and still the user's.
    pub(super) async fn by_token(&self, token: &str) -> Option<User> {
        let mark: Mark = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
        let known = self.remembered.get(&mark)?;
        let users = self.users.get().await;
        let is_current = users.hashes.get(&*known.user) == Some(&known.hash);
        is_current.then(|| User {
            name: known.user.clone(),
            mark,
        })
    }

    fn mark(&self, login: &Login, hash: &str) -> Mark {
        let mut hasher = Sha256::new();
        hasher.update(self.key);
        for part in [&login.user, &login.password, hash] {
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

impl User {
    /// What stands for the password until it is forgotten.
    pub(super) fn token(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.mark)
    }
}

impl Users {
    fn parse(text: &str) -> Result<Self, BoxError> {
        let hashes = htpasswd::parse(text)?;
        for (user, _) in hashes.iter().filter(|(_, hash)| cost(hash).is_none()) {
            tracing::warn!(
                user,
                "this user's hash is not bcrypt: nobody gets in with it"
            );
        }
        let dearest = hashes
            .values()
            .filter(|hash| cost(hash).is_some())
            .max_by_key(|hash| cost(hash));
        let nobody = dearest.map_or(NOBODY, String::as_str).to_owned();
        Ok(Self { hashes, nobody })
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
    use super::*;

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
        passwords.claim(Login { user, password }).await
    }

    async fn verify(passwords: &Passwords, user: &str, password: &str) -> Option<User> {
        let turn = passwords.turn().await;
        let claim = claim(passwords, user, password).await;
        passwords.verify(claim, turn).await
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
        let token = verify(&passwords, "u", "old").await.unwrap().token();
        assert_eq!(&*passwords.by_token(&token).await.unwrap().name, "u");
        for wrong in [
            "",
            "x",
            &token[1..],
            &format!("{token}A"),
            &"A".repeat(token.len()),
        ] {
            assert!(passwords.by_token(wrong).await.is_none(), "{wrong:?}");
        }
        let path = dir.path().join("htpasswd");
        std::fs::write(&path, format!("# changed\n{}", entry("u", "new"))).unwrap();
        assert!(passwords.by_token(&token).await.is_none());
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

    #[tokio::test]
    async fn unknown_users_cost_as_much_as_the_dearest() {
        let dear = htpasswd::line("dear", "p").unwrap();
        let (_dir, passwords) = passwords(&format!("{}{dear}", entry("cheap", "p"))).await;
        let unknown = claim(&passwords, "unknown", "p").await;
        assert_eq!(cost(&unknown.hash), Some(10));
        assert!(
            bcrypt::verify("x", NOBODY).is_ok(),
            "the text has to be a hash, or it costs nothing"
        );
    }
}
