//! Who may come in: basic authentication against a password file.
//!
//! Right passwords are remembered, since one check costs up to 300 ms; wrong ones and unknown users cost the
//! same time, so that nobody learns which names exist.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moka::sync::Cache;
use rand::RngCore as _;
use service::Error;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::htpasswd;
use crate::http::RegistryError;

/// Remembered passwords.
const REMEMBERED_LIMIT: u64 = 1024;
/// How long a right password is remembered without use.
const REMEMBERED_IDLE: Duration = Duration::from_mins(10);
/// Units: bytes. Largest password file.
const FILE_LIMIT_BYTES: u64 = 4 << 20;
/// What unknown users are checked against when the file has no user: cost 10, of a text nobody knows.
const NOBODY: &str = "$2b$10$CwTycUXWue0Thq9StjUM0uJ8nzFkH1lP6p4Yf4b4h1mZ3E4xN5u3K";

/// The door in front of `/v2/`. Clones share what is remembered.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    challenge: HeaderValue,
    users: RwLock<Users>,
    /// Keyed hashes of user, password and stored hash: a changed file makes them worthless by itself.
    remembered: Cache<[u8; 32], ()>,
    key: [u8; 32],
    /// Checks at one time, so that guessing does not take the whole machine.
    checks: Semaphore,
}

#[derive(Debug)]
struct Users {
    hashes: HashMap<String, String>,
    /// A hash that costs as much as the dearest one.
    nobody: String,
    changed_at: Option<SystemTime>,
}

impl Gate {
    /// Reads the password file, which is read again whenever it changes.
    ///
    /// Errors: the file cannot be read; a line is no `user:hash`; the realm cannot stand in a header.
    pub(crate) async fn open(path: &Path, realm: &str) -> Result<Self, Error> {
        let doing = || format!("reading REGISTRY_AUTH_HTPASSWD_PATH {}", path.display());
        let changed_at = changed_at(path).await;
        let users = read(path, changed_at)
            .await
            .map_err(|e| Error::new(doing(), e))?;
        let realm = realm.replace(['"', '\\'], "");
        let challenge = HeaderValue::from_str(&format!("Basic realm=\"{realm}\""))
            .map_err(|e| Error::new("reading REGISTRY_AUTH_HTPASSWD_REALM", e))?;
        let mut key = [0; 32];
        rand::rng().fill_bytes(&mut key);
        let checks = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            challenge,
            users: RwLock::new(users),
            remembered: Cache::builder()
                .max_capacity(REMEMBERED_LIMIT)
                .time_to_idle(REMEMBERED_IDLE)
                .build(),
            key,
            checks: Semaphore::new(checks),
        })))
    }

    /// Whether the request carries the password of a user.
    async fn admits(&self, headers: &HeaderMap) -> bool {
        self.reload().await;
        let Some((user, password)) = credentials(headers) else {
            return false;
        };
        let (hash, is_known) = {
            let users = self.0.users.read().unwrap_or_else(PoisonError::into_inner);
            match users.hashes.get(&user) {
                Some(hash) => (hash.clone(), true),
                None => (users.nobody.clone(), false),
            }
        };
        let mark = self.mark(&user, &password, &hash);
        if is_known && self.0.remembered.contains_key(&mark) {
            // Counts as use, which `contains_key` does not.
            self.0.remembered.get(&mark);
            return true;
        }
        let Ok(_permit) = self.0.checks.acquire().await else {
            return false;
        };
        let check = move || {
            htpasswd::is_password(&password) & bcrypt::verify(&password, &hash).unwrap_or(false)
        };
        let is_right = tokio::task::spawn_blocking(check).await.unwrap_or(false) && is_known;
        if is_right {
            self.0.remembered.insert(mark, ());
        }
        is_right
    }

    fn mark(&self, user: &str, password: &str, hash: &str) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.0.key);
        for part in [user, password, hash] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }

    /// Takes a changed file over; one that cannot be used leaves the old users in force.
    async fn reload(&self) {
        let changed_at = changed_at(&self.0.path).await;
        let seen = |users: &Users| users.changed_at == changed_at;
        if seen(&self.0.users.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        {
            let mut users = self.0.users.write().unwrap_or_else(PoisonError::into_inner);
            if seen(&users) {
                return;
            }
            // Told once for each change, not with each request.
            users.changed_at = changed_at;
        }
        let path = self.0.path.display();
        match read(&self.0.path, changed_at).await {
            Ok(users) => {
                tracing::info!(%path, users = users.hashes.len(), "password file reloaded");
                *self.0.users.write().unwrap_or_else(PoisonError::into_inner) = users;
            }
            Err(error) => {
                tracing::error!(%path, %error, "password file not reloaded, the old users stay in force");
            }
        }
    }
}

/// Lets a request through, or answers 401 with the challenge.
pub(crate) async fn check(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    if gate.admits(request.headers()).await {
        return next.run(request).await;
    }
    let mut response = RegistryError::unauthorized().answer();
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, gate.0.challenge.clone());
    response
}

async fn changed_at(path: &Path) -> Option<SystemTime> {
    tokio::fs::metadata(path).await.ok()?.modified().ok()
}

async fn read(
    path: &Path,
    changed_at: Option<SystemTime>,
) -> Result<Users, Box<dyn std::error::Error + Send + Sync>> {
    if tokio::fs::metadata(path).await?.len() > FILE_LIMIT_BYTES {
        return Err(format!("larger than {FILE_LIMIT_BYTES} bytes").into());
    }
    let text = tokio::fs::read_to_string(path).await?;
    let hashes = htpasswd::parse(&text)?;
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
    Ok(Users {
        hashes,
        nobody,
        changed_at,
    })
}

/// The work factor of a bcrypt hash.
fn cost(hash: &str) -> Option<u32> {
    let rest = ["$2a$", "$2b$", "$2y$"]
        .iter()
        .find_map(|kind| hash.strip_prefix(kind))?;
    rest.split_once('$')?.0.parse().ok()
}

fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str) -> HeaderMap {
        let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(text))).unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    async fn gate(text: &str) -> (tempfile::TempDir, Gate) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("htpasswd");
        std::fs::write(&path, text).unwrap();
        let gate = Gate::open(&path, "Registry").await.unwrap();
        (dir, gate)
    }

    /// Cost 4, the cheapest there is.
    fn entry(user: &str, password: &str) -> String {
        format!("{user}:{}\n", bcrypt::hash(password, 4).unwrap())
    }

    fn replace(dir: &tempfile::TempDir, text: &str) {
        let path = dir.path().join("htpasswd");
        let before = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::write(&path, text).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(before + Duration::from_secs(2)).unwrap();
    }

    #[tokio::test]
    async fn right_passwords_are_remembered() {
        let (_dir, gate) = gate(&entry("u", "p:w")).await;
        for _ in 0..3 {
            assert!(gate.admits(&headers("u:p:w")).await);
        }
        gate.0.remembered.run_pending_tasks();
        assert_eq!(gate.0.remembered.entry_count(), 1);
    }

    #[tokio::test]
    async fn nobody_else_gets_in() {
        let (_dir, gate) = gate(&format!("{}x:plain\n", entry("u", &"p".repeat(72)))).await;
        let (long, right) = (format!("u:{}", "p".repeat(73)), "p".repeat(72));
        for wrong in [
            "u:p",
            "u:",
            "nobody:p",
            "x:plain",
            "",
            ":",
            &long,
            &format!("u:{right}\0"),
            &format!("nobody:{right}"),
        ] {
            assert!(!gate.admits(&headers(wrong)).await, "{wrong:?}");
        }
        assert!(!gate.admits(&HeaderMap::new()).await);
        gate.0.remembered.run_pending_tasks();
        assert_eq!(gate.0.remembered.entry_count(), 0);
        assert!(gate.admits(&headers(&format!("u:{right}"))).await);
    }

    #[tokio::test]
    async fn a_changed_file_counts_at_once_and_garbage_does_not() {
        let (dir, gate) = gate(&entry("u", "old")).await;
        assert!(gate.admits(&headers("u:old")).await);
        replace(&dir, &entry("u", "new"));
        assert!(!gate.admits(&headers("u:old")).await);
        assert!(gate.admits(&headers("u:new")).await);
        replace(&dir, "garbage");
        assert!(gate.admits(&headers("u:new")).await);
        std::fs::remove_file(dir.path().join("htpasswd")).unwrap();
        assert!(gate.admits(&headers("u:new")).await);
    }

    #[tokio::test]
    async fn unknown_users_cost_as_much_as_the_dearest() {
        let (_dir, gate) = gate(&format!(
            "{}{}",
            entry("cheap", "p"),
            htpasswd::line("dear", "p").unwrap()
        ))
        .await;
        assert_eq!(cost(&gate.0.users.read().unwrap().nobody), Some(10));
        assert!(
            bcrypt::verify("x", NOBODY).is_ok(),
            "the text has to be a hash, or it costs nothing"
        );
    }
}
