//! Logins for registries, from a pull secret or from credential helpers.

mod helper;
mod login;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::sync::Mutex;

use oci::Repository;

pub use login::Login;

/// Limit of cached logins of helpers; beyond it, helpers are run again.
const ASKED_LIMIT: usize = 1024;
const DOCKER: &str = "docker.io";
const DOCKER_HOSTS: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];

/// Logins by registry host, or by host and a path below it.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    logins: BTreeMap<String, Login>,
    /// Registries whose entries cannot be read.
    unreadable: BTreeSet<String>,
    /// Credential helpers by registry.
    helpers: BTreeMap<String, String>,
    /// Credential helper of all other registries.
    store: Option<String>,
    /// In the place of all others.
    everywhere: Option<Everywhere>,
    /// Cached logins of helpers, by registry. The lock is held while a helper runs.
    asked: Arc<Mutex<BTreeMap<String, Option<Login>>>>,
}

/// Access to all registries.
#[derive(Debug, Clone)]
enum Everywhere {
    Login(Login),
    Token(SecretString),
}

#[derive(Deserialize)]
struct PullSecret {
    auths: BTreeMap<String, AuthEntry>,
}

#[derive(Deserialize)]
struct AuthEntry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
}

impl Credentials {
    /// No logins.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// One login for all registries.
    pub fn everywhere(login: Login) -> Self {
        Self {
            everywhere: Some(Everywhere::Login(login)),
            ..Self::default()
        }
    }

    /// One bearer token for all registries.
    pub fn token_everywhere(token: SecretString) -> Self {
        Self {
            everywhere: Some(Everywhere::Token(token)),
            ..Self::default()
        }
    }

    /// The bearer token for all registries, if there is one.
    pub(crate) fn token(&self) -> Option<&SecretString> {
        match &self.everywhere {
            Some(Everywhere::Token(token)) => Some(token),
            Some(Everywhere::Login(_)) | None => None,
        }
    }

    /// Adds `login` for `registry` (`host[:port]`, or with a path).
    #[must_use]
    pub fn with(mut self, registry: impl Into<String>, login: Login) -> Self {
        self.logins.insert(registry.into(), login);
        self
    }

    /// Reads `{"auths":{"host":{"auth":"base64 of user:password"}}}`.
    ///
    /// Errors: Invalid – no such JSON, or an entry without a readable login. The text never repeats a secret.
    pub fn from_pull_secret(text: &str) -> Result<Self, Error> {
        let wrong = |reason: String| Error::invalid("pull_secret", reason);
        // serde's own message may quote the offending value.
        let secret: PullSecret = serde_json::from_str(text).map_err(|e| {
            wrong(format!(
                "expected JSON with the member auths, failed at line {} column {}",
                e.line(),
                e.column()
            ))
        })?;
        secret
            .auths
            .into_iter()
            .map(|(registry, entry)| {
                let login = entry.login().ok_or_else(|| {
                    wrong(format!(
                        "the entry of {registry} has no auth of the form base64(user:password)"
                    ))
                })?;
                Ok((normalized(&registry).to_owned(), login))
            })
            .collect::<Result<_, _>>()
            .map(|logins| Self {
                logins,
                ..Self::default()
            })
    }

    /// Parses an authentication file of container tools: a pull secret that may have no logins, and may name credential
    /// helpers. An entry that cannot be read stops only requests to its registry.
    ///
    /// Errors: Invalid – not such a file.
    pub fn from_auth_file(text: &str) -> Result<Self, Error> {
        let file: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let Some(file) = file.as_object() else {
            return Self::from_pull_secret(text);
        };
        let mut auths = match file.get("auths") {
            Some(serde_json::Value::Object(auths)) => auths.clone(),
            Some(_) => return Self::from_pull_secret(text),
            None => serde_json::Map::new(),
        };
        auths.retain(|_, entry| !has_no_secret(entry));
        let (mut logins, mut unreadable) = (BTreeMap::new(), BTreeSet::new());
        for (registry, entry) in auths {
            let registry = normalized(&registry).to_owned();
            let entry: Option<AuthEntry> = serde_json::from_value(entry).ok();
            match entry.and_then(AuthEntry::login) {
                Some(login) => drop(logins.insert(registry, login)),
                None => drop(unreadable.insert(registry)),
            }
        }
        let wrong = |member| {
            let reason = format!("expected names of programs in the member {member}");
            Error::invalid("pull_secret", reason)
        };
        let helpers = match file.get("credHelpers") {
            Some(helpers) => serde_json::from_value::<BTreeMap<String, String>>(helpers.clone())
                .map_err(|_| wrong("credHelpers"))?,
            None => BTreeMap::new(),
        };
        let store = match file.get("credsStore") {
            Some(serde_json::Value::String(store)) => Some(store.clone()),
            Some(_) => return Err(wrong("credsStore")),
            None => None,
        };
        let helpers = helpers.into_iter();
        Ok(Self {
            helpers: helpers
                .map(|(registry, name)| (normalized(&registry).to_owned(), name))
                .collect(),
            store: store.filter(|name| !name.is_empty()),
            logins,
            unreadable,
            everywhere: None,
            asked: Arc::default(),
        })
    }

    /// The login for `repository` of `registry`: that of its credential helper, else [`Self::lookup`], else that of the
    /// default credential helper. Each helper runs once.
    ///
    /// Errors: Invalid – a helper that fails, is missing, or exceeds its timeout; an entry that cannot be read.
    pub async fn login(
        &self,
        registry: &str,
        repository: Option<&Repository>,
    ) -> Result<Option<Login>, Error> {
        if let Some(everywhere) = &self.everywhere {
            return Ok(match everywhere {
                Everywhere::Login(login) => Some(login.clone()),
                Everywhere::Token(_) => None,
            });
        }
        let registry = normalized(registry);
        if let Some(name) = self.helpers.get(registry) {
            return self.ask(name, registry).await;
        }
        if let Some(entry) = self.unreadable_entry(registry, repository) {
            let reason =
                format!("the entry of {entry} has no auth of the form base64(user:password)");
            return Err(Error::invalid("the registry logins", reason));
        }
        match (self.lookup(registry, repository), &self.store) {
            (Some(login), _) => Ok(Some(login.clone())),
            (None, Some(name)) => self.ask(name, registry).await,
            (None, None) => Ok(None),
        }
    }

    async fn ask(&self, name: &str, registry: &str) -> Result<Option<Login>, Error> {
        let mut asked = self.asked.lock().await;
        if let Some(login) = asked.get(registry) {
            return Ok(login.clone());
        }
        let login = helper::ask(name, registry).await?;
        if asked.len() >= ASKED_LIMIT {
            asked.clear();
        }
        asked.insert(registry.to_owned(), login.clone());
        Ok(login)
    }

    /// The login for `repository` of `registry`: the entry with the longest path wins.
    pub fn lookup(&self, registry: &str, repository: Option<&Repository>) -> Option<&Login> {
        let mut paths = paths(normalized(registry), repository);
        paths.find_map(|path| self.logins.get(&path))
    }

    /// The unreadable entry that is closer to a repository than every login.
    fn unreadable_entry(&self, registry: &str, repository: Option<&Repository>) -> Option<String> {
        let is_known =
            |path: &String| self.logins.contains_key(path) || self.unreadable.contains(path);
        let closest = paths(registry, repository).find(is_known)?;
        self.unreadable.contains(&closest).then_some(closest)
    }
}

impl AuthEntry {
    fn login(self) -> Option<Login> {
        if self.auth.is_empty() {
            let known = !self.username.is_empty();
            return known.then(|| Login {
                user: self.username,
                password: self.password.into(),
            });
        }
        let text = String::from_utf8(STANDARD.decode(self.auth.trim()).ok()?).ok()?;
        let (user, password) = text.split_once(':')?;
        let known = !user.is_empty();
        // Docker's own tool may pad the password with NUL bytes.
        let password = password.trim_end_matches('\0');
        known.then(|| Login {
            user: user.to_owned(),
            password: password.into(),
        })
    }
}

/// The names of entries for a repository, the longest first.
fn paths(registry: &str, repository: Option<&Repository>) -> impl Iterator<Item = String> {
    let longest =
        repository.map_or_else(|| registry.to_owned(), |name| format!("{registry}/{name}"));
    std::iter::successors(Some(longest), |path| {
        path.rfind('/').map(|parent| path[..parent].to_owned())
    })
}

/// Whether an entry is the placeholder of a registry whose login is in a credential helper, or that had a login once.
fn has_no_secret(entry: &serde_json::Value) -> bool {
    let is_empty = |name: &&str| {
        let value = &entry[*name];
        value.is_null() || value == ""
    };
    (entry.is_null() || entry.is_object()) && ["auth", "username"].iter().all(is_empty)
}

/// Whether a name is that of Docker Hub, the only registry whose name is not its host.
pub(crate) fn is_docker_hub(registry: &str) -> bool {
    registry == DOCKER || DOCKER_HOSTS.contains(&registry)
}

/// The host of a key: old tools write it as a URL, and docker's tools that of their own registry.
fn normalized(registry: &str) -> &str {
    let name = without_scheme(registry);
    if is_docker_hub(name) { DOCKER } else { name }
}

fn without_scheme(registry: &str) -> &str {
    let host = registry
        .strip_prefix("https://")
        .or_else(|| registry.strip_prefix("http://"));
    match host {
        Some(host) => host
            .trim_end_matches('/')
            .trim_end_matches("/v1")
            .trim_end_matches("/v2"),
        None => registry.trim_end_matches('/'),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::ExposeSecret as _;

    use super::*;

    fn secret(entries: &[(&str, &str)]) -> String {
        let auths: serde_json::Map<_, _> = entries
            .iter()
            .map(|(host, login)| {
                (
                    (*host).to_owned(),
                    serde_json::json!({"auth": STANDARD.encode(login), "email": "a@b"}),
                )
            })
            .collect();
        serde_json::json!({ "auths": auths }).to_string()
    }

    fn user(credentials: &Credentials, registry: &str, repository: &str) -> Option<String> {
        let repository = repository.parse().unwrap();
        credentials
            .lookup(registry, Some(&repository))
            .map(|login| format!("{}/{}", login.user, login.password.expose_secret()))
    }

    #[test]
    fn the_longest_path_wins() {
        let text = secret(&[
            ("r:5000", "host:p:w"),
            ("r:5000/a", "a:1"),
            ("r:5000/a/b/c", "c:2"),
            ("https://old.io/v1/", "o:3"),
            ("https://index.docker.io/v1/", "d:4"),
        ]);
        let credentials = Credentials::from_pull_secret(&text).unwrap();
        assert_eq!(user(&credentials, "r:5000", "x/y").unwrap(), "host/p:w");
        assert_eq!(user(&credentials, "r:5000", "a").unwrap(), "a/1");
        assert_eq!(user(&credentials, "r:5000", "a/b").unwrap(), "a/1");
        assert_eq!(user(&credentials, "r:5000", "a/b/c/d").unwrap(), "c/2");
        assert_eq!(user(&credentials, "r:5000", "ab").unwrap(), "host/p:w");
        assert_eq!(user(&credentials, "old.io", "z").unwrap(), "o/3");
        assert_eq!(user(&credentials, "docker.io", "library/a").unwrap(), "d/4");
        assert_eq!(user(&credentials, "r", "a"), None);
        assert_eq!(credentials.lookup("r:5000", None).unwrap().user, "host");
    }

    #[test]
    fn authentication_files_may_have_no_logins() {
        for text in [
            "{}",
            r#"{"auths":{}}"#,
            r#"{"auths":{"a:1":{}},"credsStore":"desktop"}"#,
            r#"{"auths":{"a:1":{"auth":""}}}"#,
            r#"{"auths":{"a:1":null,"b:1":{"auth":null}}}"#,
        ] {
            let credentials = Credentials::from_auth_file(text).unwrap();
            assert!(credentials.lookup("a:1", None).is_none(), "{text}");
        }
        let text = secret(&[("r:5000", "u:p")]);
        let credentials = Credentials::from_auth_file(&text).unwrap();
        assert_eq!(credentials.lookup("r:5000", None).unwrap().user, "u");
        for wrong in [
            "",
            "[]",
            r#"{"credsStore":["hunter2"]}"#,
            r#"{"credHelpers":{"a:1":{"hunter2":1}}}"#,
            r#"{"auths":1}"#,
        ] {
            let refused = Credentials::from_auth_file(wrong).unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[tokio::test]
    async fn unreadable_entries_stop_their_registries_alone() {
        for entry in [
            r#"{"auth":"hunter2!"}"#,
            r#"{"auth":"aHVudGVyMg=="}"#,
            r#"{"auth":7}"#,
            r#""hunter2""#,
        ] {
            let text = format!(
                r#"{{"auths":{{"bad:1":{entry},"bad:1/open":{{"auth":"dTpw"}},"good:1":{{"auth":"dTpw"}}}}}}"#
            );
            let credentials = Credentials::from_auth_file(&text).unwrap();
            let name = |text: &str| text.parse::<Repository>().unwrap();
            let login = credentials.login("good:1", None).await.unwrap();
            assert_eq!(login.unwrap().user, "u");
            let login = credentials.login("bad:1", Some(&name("open/a"))).await;
            assert_eq!(login.unwrap().unwrap().user, "u");
            let refused = credentials
                .login("bad:1", Some(&name("a")))
                .await
                .unwrap_err();
            let refused = refused.to_string();
            assert!(
                refused.contains("bad:1") && !refused.contains("hunter2"),
                "{refused}"
            );
        }
    }

    #[test]
    fn wrong_secrets_are_named_but_not_shown() {
        let no_colon = secret(&[("quay.io", "hunter2")]);
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"auths":"hunter2"}"#,
            r#"{"auths":{"quay.io":{"auth":"hunter2!"}}}"#,
            &no_colon,
        ] {
            let error = Credentials::from_pull_secret(wrong)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("pull_secret:"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
            Credentials::from_pull_secret(&text).ok();
        }
    }
}
