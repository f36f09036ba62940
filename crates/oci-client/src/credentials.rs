//! Logins for registries, from a pull secret or from credential helpers.

mod entries;
mod helper;
mod login;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Error;
use secrecy::SecretString;
use tokio::sync::Mutex;

use oci::Repository;

use entries::{Entries, normalized};

pub use login::Login;
pub(crate) use login::RegistrySecret;

/// Limit of cached answers of helpers; beyond it, helpers are run again.
const ASKED_LIMIT: usize = 1024;

/// Logins by registry host, or by host and a path below it.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// Authentication files: of those with a login for a registry, the first counts.
    files: Vec<AuthFile>,
    /// In the place of all others.
    everywhere: Option<Everywhere>,
    /// Cached answers of helpers, by helper and registry. The lock is held while a helper runs.
    asked: Arc<Mutex<BTreeMap<(String, String), HelperAnswer>>>,
}

/// The secret of a helper, or the text of its failure.
type HelperAnswer = Result<Option<RegistrySecret>, String>;

/// An authentication file.
#[derive(Debug, Clone)]
enum AuthFile {
    Read(Box<Entries>),
    /// The reason why it cannot be read.
    Unreadable(String),
}

/// Access to all registries.
#[derive(Debug, Clone)]
enum Everywhere {
    Login(Login),
    Token(SecretString),
}

/// Result of the search for a login.
#[derive(Debug, Default)]
pub(crate) struct FoundSecret {
    pub(crate) secret: Option<RegistrySecret>,
    /// Reasons of entries, files and helpers that were passed over.
    pub(crate) passed_over: Vec<String>,
    /// Entries without a secret, where there is no secret.
    empty: Vec<String>,
}

impl FoundSecret {
    /// The reasons, as the end of a sentence.
    pub(crate) fn remarks(&self) -> String {
        let reasons = self.passed_over.iter().chain(&self.empty);
        reasons.fold(String::new(), |all, reason| all + "; " + reason)
    }
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
        if !matches!(self.files.last(), Some(AuthFile::Read(_))) {
            self.files.push(AuthFile::Read(Box::default()));
        }
        if let Some(AuthFile::Read(entries)) = self.files.last_mut() {
            entries.insert(registry.into(), login);
        }
        self
    }

    /// Reads `{"auths":{"host":{"auth":"base64 of user:password"}}}`.
    ///
    /// Errors: Invalid – no such JSON, or an entry without a readable login. The text never repeats a secret.
    pub fn from_pull_secret(text: &str) -> Result<Self, Error> {
        let wrong = |reason: String| Error::invalid("pull_secret", reason);
        let entries = Entries::parse(text)?;
        if !entries.has_auths {
            return Err(wrong("expected JSON with the member auths".to_owned()));
        }
        match entries.without_login() {
            Some(reason) => Err(wrong(reason)),
            None => Ok(Self::of(entries)),
        }
    }

    /// Parses an authentication file of container tools: a pull secret that may have no logins, and may name credential
    /// helpers. An entry that cannot be read is passed over.
    ///
    /// Errors: Invalid – not such a file.
    pub fn from_auth_file(text: &str) -> Result<Self, Error> {
        Entries::parse(text).map(Self::of)
    }

    fn of(entries: Entries) -> Self {
        Self {
            files: vec![AuthFile::Read(Box::new(entries))],
            ..Self::default()
        }
    }

    /// Adds the logins of a further file, for registries without one so far.
    #[must_use]
    pub(crate) fn then(mut self, further: Self) -> Self {
        self.files.extend(further.files);
        self
    }

    /// Adds a further file that cannot be read, which refusals of registries without a login name.
    #[must_use]
    pub(crate) fn then_unreadable(mut self, reason: String) -> Self {
        self.files.push(AuthFile::Unreadable(reason));
        self
    }

    /// The login for `repository` of `registry`: in each file, that of its credential helper, else [`Self::lookup`], else
    /// that of the default credential helper. Each helper runs once.
    ///
    /// Errors: Invalid – none was found, and an entry cannot be read, or a helper fails, is missing, or exceeds its
    /// timeout; an identity token, which is for registries alone.
    pub async fn login(
        &self,
        registry: &str,
        repository: Option<&Repository>,
    ) -> Result<Option<Login>, Error> {
        let found = self.find(registry, repository).await;
        let wrong = |reason: String| Error::invalid("the registry logins", reason);
        match found.secret {
            Some(RegistrySecret::Login(login)) => Ok(Some(login)),
            Some(RegistrySecret::IdentityToken(_)) => Err(wrong(format!(
                "{registry} has an identity token: log in with a password"
            ))),
            None if found.passed_over.is_empty() => Ok(None),
            None => Err(wrong(found.passed_over.join("; "))),
        }
    }

    /// As [`Self::login`]; entries that cannot be used are passed over.
    pub(crate) async fn find(
        &self,
        registry: &str,
        repository: Option<&Repository>,
    ) -> FoundSecret {
        let mut found = FoundSecret::default();
        if let Some(everywhere) = &self.everywhere {
            if let Everywhere::Login(login) = everywhere {
                found.secret = Some(RegistrySecret::Login(login.clone()));
            }
            return found;
        }
        let registry = normalized(registry);
        let registry = registry.as_str();
        for file in &self.files {
            let entries = match file {
                AuthFile::Read(entries) => entries,
                AuthFile::Unreadable(reason) => {
                    found.passed_over.push(reason.clone());
                    continue;
                }
            };
            let unusable = entries.unusable(registry, repository);
            found.passed_over.extend(unusable);
            found.empty.extend(entries.empty(registry, repository));
            let helper = entries.helpers.get(registry);
            let own = entries.secret(registry, repository).cloned();
            let helper = helper.or(entries.store.as_ref().filter(|_| own.is_none()));
            let answer = match helper {
                Some(name) => self.ask(name, registry).await,
                None => Ok(own),
            };
            match answer {
                Ok(Some(secret)) => {
                    found.secret = Some(secret);
                    found.empty.clear();
                    break;
                }
                Ok(None) => {}
                Err(reason) => found.passed_over.push(reason),
            }
        }
        found
    }

    async fn ask(&self, name: &str, registry: &str) -> HelperAnswer {
        let mut asked = self.asked.lock().await;
        let key = (name.to_owned(), registry.to_owned());
        if let Some(answer) = asked.get(&key) {
            return answer.clone();
        }
        let answer = helper::ask(name, registry).await.map_err(|e| e.chain());
        if asked.len() >= ASKED_LIMIT {
            asked.clear();
        }
        asked.insert(key, answer.clone());
        answer
    }

    /// The login for `repository` of `registry` that a file has: the entry with the longest path wins.
    pub fn lookup(&self, registry: &str, repository: Option<&Repository>) -> Option<&Login> {
        let registry = normalized(registry);
        let mut secrets = self.files.iter().filter_map(|file| match file {
            AuthFile::Read(entries) => entries.secret(&registry, repository),
            AuthFile::Unreadable(_) => None,
        });
        match secrets.next()? {
            RegistrySecret::Login(login) => Some(login),
            RegistrySecret::IdentityToken(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
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
        for wrong in ["", "[]", r#"{"credsStore":["hunter2"]}"#, r#"{"auths":1}"#] {
            let refused = Credentials::from_auth_file(wrong).unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    async fn find(credentials: &Credentials, registry: &str, repository: &str) -> FoundSecret {
        let repository = repository.parse().unwrap();
        credentials.find(registry, Some(&repository)).await
    }

    /// User and password, or `token` and the identity token.
    fn shown(secret: Option<&RegistrySecret>) -> String {
        match secret {
            Some(RegistrySecret::Login(login)) => {
                format!("{} {}", login.user, login.password.expose_secret())
            }
            Some(RegistrySecret::IdentityToken(token)) => {
                format!("token {}", token.expose_secret())
            }
            None => String::new(),
        }
    }

    #[tokio::test]
    async fn unusable_entries_are_passed_over_and_named() {
        for (entry, reason) in [
            (r#"{"auth":"hunter2!"}"#, "base64(user:password)"),
            (r#"{"auth":"aHVudGVyMg=="}"#, "base64(user:password)"),
            (r#"{"auth":"/////w=="}"#, "base64(user:password)"),
            (r#"{"auth":7}"#, "no text"),
            (r#"{"auth":["hunter2"]}"#, "no text"),
            (r#"{"username":{},"password":"hunter2"}"#, "no text"),
            (r#""hunter2""#, "base64(user:password)"),
            ("[]", "base64(user:password)"),
            (r#"{"auth":"Omh1bnRlcjI="}"#, "no user"),
        ] {
            let text = format!(
                r#"{{"auths":{{"bad:1":{entry},"bad:1/open":{{"auth":"dTpw"}},"good:1":{{"auth":"dTpw"}}}}}}"#
            );
            let credentials = Credentials::from_auth_file(&text).unwrap();
            for (registry, repository) in [("good:1", "a"), ("bad:1", "open/a")] {
                let found = find(&credentials, registry, repository).await;
                assert_eq!(shown(found.secret.as_ref()), "u p", "{entry}");
            }
            let login = credentials.login("good:1", None).await.unwrap();
            assert_eq!(login.unwrap().user, "u", "{entry}");
            let found = find(&credentials, "bad:1", "a").await;
            assert!(found.secret.is_none(), "{entry}");
            let remarks = found.remarks();
            assert!(
                remarks.contains("the entry of bad:1") && remarks.contains(reason),
                "{entry}: {remarks}"
            );
            assert!(!remarks.contains("hunter2"), "{remarks}");
            let refused = credentials.login("bad:1", None).await.unwrap_err();
            assert!(refused.to_string().contains("bad:1"), "{refused}");
        }
    }

    #[tokio::test]
    async fn entries_are_read_as_container_tools_write_them() {
        for (entry, expected) in [
            (r#"{"auth":"dTpw"}"#, "u p"),
            (r#"{"auth":" dT\npw "}"#, "u p"),
            (r#"{"auth":"dTpwcA"}"#, "u pp"),
            (r#"{"auth":"dTpwcHA="}"#, "u ppp"),
            (r#"{"auth":"dTpwAA=="}"#, "u p"),
            (r#"{"username":"u","password":" p:w "}"#, "u  p:w "),
            (r#"{"auth":"","username":"u","password":null}"#, "u "),
            (r#"{"auth":"dTo=","identitytoken":"t"}"#, "token t"),
            (r#"{"identitytoken":"t"}"#, "token t"),
            ("{}", ""),
            ("null", ""),
            (r#"{"auth":""}"#, ""),
            (r#"{"auth":null}"#, ""),
            (r#"{"auth":"Og=="}"#, ""),
            (r#"{"email":"a@b"}"#, ""),
        ] {
            let text = format!(r#"{{"auths":{{"r:1":{entry}}}}}"#);
            let credentials = Credentials::from_auth_file(&text).unwrap();
            let found = find(&credentials, "r:1", "a").await;
            assert_eq!(shown(found.secret.as_ref()), expected, "{entry}");
            let is_named = found.remarks() == "; the entry of r:1 is empty";
            assert_eq!(is_named, expected.is_empty(), "{entry}");
        }
    }

    #[test]
    fn keys_are_read_in_all_forms() {
        for (key, registry, repository, is_found) in [
            ("r.io", "r.io", "a", true),
            ("r.io/", "r.io", "a", true),
            ("R.IO", "r.io", "a", true),
            ("r.io", "R.io", "a", true),
            ("https://r.io", "r.io", "a", true),
            ("http://r.io/", "r.io", "a", true),
            ("https://r.io/v1/", "r.io", "a", true),
            ("https://r.io/v2/", "r.io", "a", true),
            ("https://r.io/v2/auth", "r.io", "a", true),
            ("r.io/v1/", "r.io", "a", true),
            ("r.io/v2", "r.io", "a", true),
            ("https://r.io:5000/v2/", "r.io:5000", "a", true),
            ("r.io:5000", "r.io", "a", false),
            ("r.io", "r.io:5000", "a", false),
            ("r.io/ns", "r.io", "ns/a", true),
            ("r.io/ns/", "r.io", "ns/a", true),
            ("r.io/ns", "r.io", "nsx/a", false),
            ("r.io/ns/a", "r.io", "ns", false),
            ("docker.io", "index.docker.io", "library/a", true),
            ("index.docker.io/v1/", "docker.io", "library/a", true),
            (
                "https://index.docker.io/v1/",
                "docker.io",
                "library/a",
                true,
            ),
            ("registry-1.docker.io", "docker.io", "library/a", true),
            ("docker.io/acme", "docker.io", "acme/a", true),
            ("docker.io/acme", "docker.io", "library/a", false),
            ("", "r.io", "a", false),
        ] {
            let credentials = Credentials::from_auth_file(&secret(&[(key, "u:p")])).unwrap();
            let found = user(&credentials, registry, repository);
            assert_eq!(found.is_some(), is_found, "{key} {registry}/{repository}");
        }
        // The registry's own name wins, whichever comes first.
        for host in ["a.io", "z.io"] {
            let url = format!("https://{host}/v1/");
            let text = secret(&[(host, "own:1"), (&url, "old:2")]);
            let credentials = Credentials::from_auth_file(&text).unwrap();
            assert_eq!(user(&credentials, host, "a").unwrap(), "own/1");
        }
    }

    #[tokio::test]
    async fn the_first_file_with_a_login_counts() {
        let file = |text: &str| Credentials::from_auth_file(text).unwrap();
        let credentials = file(r#"{"auths":{"a:1":{"auth":"dTpw"},"b:1":{},"c:1":{"auth":7}}}"#)
            .then_unreadable("home.json: broken".to_owned())
            .then(file(&secret(&[
                ("a:1", "x:1"),
                ("b:1", "b:2"),
                ("c:1", "c:3"),
            ])));
        for (registry, expected) in [("a:1", "u p"), ("b:1", "b 2"), ("c:1", "c 3"), ("d:1", "")] {
            let found = find(&credentials, registry, "a").await;
            assert_eq!(shown(found.secret.as_ref()), expected);
            if expected.is_empty() {
                assert_eq!(found.remarks(), "; home.json: broken");
            }
        }
        assert_eq!(user(&credentials, "b:1", "a").unwrap(), "b/2");
    }

    #[test]
    fn members_without_a_value_are_absent() {
        for text in [
            r#"{"auths":null,"credHelpers":null,"credsStore":null}"#,
            r#"{"auths":{},"credsStore":""}"#,
            "\u{feff}{\"auths\":{}}",
            r#"{"credHelpers":{"a:1":{"hunter2":1}}}"#,
            r#"{"auths":{"a:1":{}},"detachKeys":"ctrl-e,e","proxies":{}}"#,
        ] {
            let credentials = Credentials::from_auth_file(text).unwrap();
            assert!(credentials.lookup("a:1", None).is_none(), "{text}");
        }
        let empty = Credentials::from_auth_file(" \n").unwrap_err().to_string();
        assert!(empty.contains("the file is empty"), "{empty}");
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
