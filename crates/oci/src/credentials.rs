//! Logins for registries, out of a pull secret.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use secrecy::SecretString;
use serde::Deserialize;

use crate::Repository;

/// A user of a registry.
#[derive(Debug, Clone)]
pub struct Login {
    /// Name.
    pub user: String,
    /// Password or token.
    pub password: SecretString,
}

/// Logins by registry host, or by host and a path below it.
#[derive(Debug, Clone, Default)]
pub struct Credentials(BTreeMap<String, Login>);

#[derive(Deserialize)]
struct PullSecret {
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
}

impl Credentials {
    /// Nobody is known anywhere.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Adds `login` for `registry` (`host[:port]`, or with a path).
    #[must_use]
    pub fn with(mut self, registry: impl Into<String>, login: Login) -> Self {
        self.0.insert(registry.into(), login);
        self
    }

    /// Reads `{"auths":{"host":{"auth":"base64 of user:password"}}}`.
    ///
    /// Errors: Invalid – no such JSON, or an entry without a readable login. The text never repeats a secret.
    pub fn from_pull_secret(text: &str) -> Result<Self, Error> {
        let wrong = |reason: String| Error::invalid("pull_secret", reason);
        // serde's own message may quote the value it stumbled over.
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
            .map(Self)
    }

    /// Reads a file of logins as container tools keep it: a pull secret that may have no logins at all, or hosts
    /// whose logins are kept elsewhere.
    ///
    /// Errors: as [`Self::from_pull_secret`].
    pub fn from_auth_file(text: &str) -> Result<Self, Error> {
        let file: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let Some(file) = file.as_object() else {
            return Self::from_pull_secret(text);
        };
        let mut auths = match file.get("auths") {
            Some(serde_json::Value::Object(auths)) => auths.clone(),
            Some(_) => return Self::from_pull_secret(text),
            None => return Ok(Self::anonymous()),
        };
        auths.retain(|_, entry| entry.as_object().is_none_or(|entry| !entry.is_empty()));
        Self::from_pull_secret(&serde_json::json!({ "auths": auths }).to_string())
    }

    /// The login for `repository` of `registry`: the entry with the longest path wins.
    pub fn lookup(&self, registry: &str, repository: Option<&Repository>) -> Option<&Login> {
        let mut path =
            repository.map_or_else(|| registry.to_owned(), |name| format!("{registry}/{name}"));
        loop {
            if let Some(login) = self.0.get(&path) {
                return Some(login);
            }
            let parent = path.rfind('/')?;
            path.truncate(parent);
        }
    }
}

impl Entry {
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
        // Docker's own tool may append NUL bytes to the password.
        let password = password.trim_end_matches('\0');
        known.then(|| Login {
            user: user.to_owned(),
            password: password.into(),
        })
    }
}

/// Old tools write the key as a URL.
fn normalized(registry: &str) -> &str {
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
        ]);
        let credentials = Credentials::from_pull_secret(&text).unwrap();
        assert_eq!(user(&credentials, "r:5000", "x/y").unwrap(), "host/p:w");
        assert_eq!(user(&credentials, "r:5000", "a").unwrap(), "a/1");
        assert_eq!(user(&credentials, "r:5000", "a/b").unwrap(), "a/1");
        assert_eq!(user(&credentials, "r:5000", "a/b/c/d").unwrap(), "c/2");
        assert_eq!(user(&credentials, "r:5000", "ab").unwrap(), "host/p:w");
        assert_eq!(user(&credentials, "old.io", "z").unwrap(), "o/3");
        assert_eq!(user(&credentials, "r", "a"), None);
        assert_eq!(credentials.lookup("r:5000", None).unwrap().user, "host");
    }

    #[test]
    fn files_of_tools_may_have_no_logins() {
        for text in [
            "{}",
            r#"{"auths":{}}"#,
            r#"{"auths":{"a:1":{}},"credsStore":"desktop"}"#,
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
            r#"{"auths":1}"#,
            r#"{"auths":{"a:1":{"auth":"hunter2"}}}"#,
        ] {
            let refused = Credentials::from_auth_file(wrong).unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
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
