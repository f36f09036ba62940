//! Entries of an authentication file.
//!
//! Source: containers-auth.json(5); containers/image, `pkg/docker/config`; docker's `config.json`. An entry that cannot be
//! used is passed over, and a refusal of its registry names it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use model::Error;
use oci::{Repository, is_docker_hub};
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::login::{Login, RegistrySecret};

const DOCKER_HUB: &str = "docker.io";
/// As Go decodes it, whose tools write these files; also without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The entries of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries {
    /// Whether the file has the member `auths`.
    pub(super) has_auths: bool,
    /// By registry host, or by host and a path below it.
    secrets: BTreeMap<String, RegistrySecret>,
    /// Reasons of entries that cannot be used.
    unusable: BTreeMap<String, String>,
    /// Keys of entries without any secret: placeholders of registries whose login is in a credential helper.
    empty: Vec<String>,
    /// Credential helpers by registry.
    pub(super) helpers: BTreeMap<String, String>,
    /// Credential helper of all other registries.
    pub(super) store: Option<String>,
}

/// An entry as it was read.
enum ReadEntry {
    Secret(RegistrySecret),
    Empty,
    Unusable(&'static str),
}

impl Entries {
    /// Parses the file. The text of an error never repeats a secret.
    ///
    /// Errors: Invalid – not such a file.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |reason: String| Error::invalid("pull_secret", reason);
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            let reason = r#"the file is empty; one without logins is {"auths": {}}"#;
            return Err(wrong(reason.to_owned()));
        }
        // serde's own message may quote the offending value.
        let file: Value = serde_json::from_str(text).map_err(|e| {
            wrong(format!(
                "expected JSON with the member auths, failed at line {} column {}",
                e.line(),
                e.column()
            ))
        })?;
        let object = |value: Option<&Value>, place: &str| match value {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members.clone()),
            Some(_) => Err(wrong(format!("expected an object {place}"))),
        };
        let file = object(Some(&file), "with the member auths")?;
        let mut entries = Self {
            has_auths: file.get("auths").is_some_and(Value::is_object),
            ..Self::default()
        };
        let auths = object(file.get("auths"), "in the member auths")?;
        entries.add_all(&auths);
        for (registry, name) in object(file.get("credHelpers"), "in the member credHelpers")? {
            let key = canonical_registry(&registry.to_lowercase()).to_owned();
            match name.as_str() {
                Some(name) => drop(entries.helpers.insert(key, name.to_owned())),
                None => entries.refuse(&key, "in credHelpers is no name of a program"),
            }
        }
        entries.store = match file.get("credsStore") {
            None | Some(Value::Null) => None,
            Some(Value::String(store)) => Some(store.clone()).filter(|it| !it.is_empty()),
            Some(_) => {
                let reason = "expected the name of a program in the member credsStore";
                return Err(wrong(reason.to_owned()));
            }
        };
        Ok(entries)
    }

    /// One login.
    pub(super) fn insert(&mut self, registry: String, login: Login) {
        self.secrets.insert(registry, RegistrySecret::Login(login));
    }

    /// The secret for a repository: that of the entry with the longest path wins.
    pub(super) fn secret(
        &self,
        registry: &str,
        repository: Option<&Repository>,
    ) -> Option<&RegistrySecret> {
        paths(registry, repository).find_map(|path| self.secrets.get(&path))
    }

    /// Reasons of the entries for a repository that cannot be used.
    pub(super) fn unusable(
        &self,
        registry: &str,
        repository: Option<&Repository>,
    ) -> impl Iterator<Item = String> {
        paths(registry, repository).filter_map(|path| self.unusable.get(&path).cloned())
    }

    /// Names of the entries for a repository that have no secret.
    pub(super) fn empty(
        &self,
        registry: &str,
        repository: Option<&Repository>,
    ) -> impl Iterator<Item = String> {
        let named = paths(registry, repository).filter(|path| self.empty.contains(path));
        named.map(|path| no_login(&path, "is empty"))
    }

    /// The first entry, by name, that has no login.
    pub(super) fn without_login(&self) -> Option<String> {
        let empty = self.empty.iter().map(|key| no_login(key, NO_AUTH));
        self.unusable.values().cloned().chain(empty).next()
    }

    fn add_all(&mut self, auths: &Map<String, Value>) {
        let mut read: Vec<_> = auths
            .iter()
            .map(|(written, value)| (EntryKeys::of(written), ReadEntry::of(value)))
            .collect();
        // Keys that are written as their registry is named win over those in older forms.
        read.sort_by_key(|(keys, _)| keys.is_older_form);
        for (EntryKeys { names, .. }, entry) in read {
            let Some(first) = names.first() else { continue };
            match entry {
                ReadEntry::Empty => self.empty.push(first.clone()),
                ReadEntry::Unusable(reason) => self.refuse(first, reason),
                ReadEntry::Secret(secret) => {
                    for name in names {
                        self.secrets.entry(name).or_insert_with(|| secret.clone());
                    }
                }
            }
        }
    }

    fn refuse(&mut self, key: &str, reason: &str) {
        self.unusable.insert(key.to_owned(), no_login(key, reason));
    }
}

const NO_AUTH: &str = "has no auth of the form base64(user:password)";

fn no_login(key: &str, reason: &str) -> String {
    format!("the entry of {key} {reason}")
}

impl ReadEntry {
    fn of(value: &Value) -> Self {
        let members = match value {
            Value::Null => return Self::Empty,
            Value::Object(members) => members,
            _ => return Self::Unusable(NO_AUTH),
        };
        let mut texts =
            ["auth", "username", "password", "identitytoken"].map(|name| match members.get(name) {
                None | Some(Value::Null) => Some(""),
                Some(Value::String(text)) => Some(text.trim()),
                Some(_) => None,
            });
        // A password may have blanks at its ends.
        if let Some(Value::String(password)) = members.get("password") {
            texts[2] = Some(password);
        }
        let [Some(auth), Some(user), Some(password), Some(identity)] = texts else {
            return Self::Unusable("has a member that is no text");
        };
        if !identity.is_empty() {
            return Self::Secret(RegistrySecret::IdentityToken(identity.into()));
        }
        match (auth, user) {
            ("", "") => Self::Empty,
            ("", user) => Self::login(user, password),
            (auth, _) => Self::decoded(auth).unwrap_or(Self::Unusable(NO_AUTH)),
        }
    }

    /// Decodes `base64(user:password)`.
    fn decoded(auth: &str) -> Option<Self> {
        let digits: String = auth.split_ascii_whitespace().collect();
        let text = String::from_utf8(BASE64.decode(digits).ok()?).ok()?;
        let (user, password) = text.split_once(':')?;
        // Docker's own tool may pad the password with NUL bytes.
        let password = password.trim_matches('\0');
        Some(match (user, password) {
            ("", "") => Self::Empty,
            ("", _) => Self::Unusable("has no user"),
            _ => Self::login(user, password),
        })
    }

    fn login(user: &str, password: &str) -> Self {
        let user = user.to_owned();
        let password = SecretString::from(password);
        Self::Secret(RegistrySecret::Login(Login { user, password }))
    }
}

/// The names that an entry is for.
struct EntryKeys {
    names: Vec<String>,
    /// A URL, a host with the path of an API, or another name of Docker Hub.
    is_older_form: bool,
}

impl EntryKeys {
    /// Old tools write URLs, and docker's tools that of their own registry: those are for the whole host.
    fn of(written: &str) -> Self {
        let schemes = ["https://", "http://"];
        let named = written.trim();
        let url = schemes.iter().find_map(|it| named.strip_prefix(it));
        let name = url.unwrap_or(named).trim_end_matches('/');
        let (host, path) = match name.split_once('/') {
            Some((host, path)) => (host.to_lowercase(), path),
            None => (name.to_lowercase(), ""),
        };
        let registry = canonical_registry(&host).to_owned();
        let is_api = ["v1", "v2"].contains(&path);
        let is_older_form = url.is_some() || is_api || registry != host;
        let mut names = Vec::new();
        if !path.is_empty() {
            names.push(format!("{registry}/{path}"));
        }
        if path.is_empty() || is_api || url.is_some() {
            names.push(registry);
        }
        Self {
            names,
            is_older_form,
        }
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

/// The name of a registry; Docker Hub has several.
fn canonical_registry(registry: &str) -> &str {
    if is_docker_hub(registry) {
        DOCKER_HUB
    } else {
        registry
    }
}

/// The name by which entries are looked up.
pub(super) fn normalized(registry: &str) -> String {
    canonical_registry(&registry.to_lowercase()).to_owned()
}
