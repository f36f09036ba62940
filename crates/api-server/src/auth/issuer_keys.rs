//! Keys of a token issuer: from a text, a file or a URL. Source: RFC 7517.
//!
//! Invariant: requests fetch a URL at most once per [`FETCH_INTERVAL`], all together.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use concurrency::{BoxError, WatchedFile};
use model::Error;
use net::web::Web;
use oci::jws::{Jwk, PublicKey};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use super::unauthenticated;
use crate::settings::Settings;

/// Largest set. Units: bytes.
const SET_BYTES: u64 = 256 << 10;
/// Keys of a set; further ones are ignored.
pub(crate) const KEYS: usize = 64;
/// Least interval of two fetches. A token may name any key, so unknown ones must not cause more.
const FETCH_INTERVAL: Duration = Duration::from_secs(30);
/// Age at which a set is fetched again: withdrawn keys are not accepted longer.
const FRESH: Duration = Duration::from_hours(1);
/// Timeout of a fetch: requests wait for it.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
const ISSUER: &str = "the key set of the token issuer";

/// Public keys by id.
#[derive(Debug, Default)]
pub(super) struct KeySet(HashMap<String, PublicKey>);

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<JwksEntry>,
}

#[derive(Deserialize)]
struct JwksEntry {
    #[serde(flatten)]
    key: Jwk,
    #[serde(rename = "use")]
    usage: Option<String>,
}

/// Keys of a token issuer.
pub(super) enum IssuerKeys {
    Text(KeySet),
    File(WatchedFile<KeySet>),
    Remote(RemoteKeys),
}

/// A key set behind a URL.
pub(super) struct RemoteKeys {
    web: Web,
    url: Url,
    current: RwLock<FetchedKeys>,
    /// Time of the last attempt; held while one runs.
    attempt: Mutex<Option<Instant>>,
}

#[derive(Clone, Default)]
struct FetchedKeys {
    keys: Arc<KeySet>,
    /// None before the first success.
    at: Option<Instant>,
}

impl KeySet {
    /// Errors: malformed, or without a key for signatures.
    fn parse(json: &[u8]) -> Result<Self, BoxError> {
        let jwks: Jwks = serde_json::from_slice(json)?;
        let signing = |entry: &JwksEntry| entry.usage.as_deref().is_none_or(|usage| usage == "sig");
        let entries = jwks.keys.into_iter().filter(signing).take(KEYS);
        let keys = entries.filter_map(|entry| Some((PublicKey::parse(&entry.key).ok()?, entry)));
        let keys: HashMap<_, _> = keys.map(|(key, entry)| (entry.key.kid, key)).collect();
        if keys.is_empty() {
            return Err("it has no key of a supported kind".into());
        }
        Ok(Self(keys))
    }

    fn find(&self, id: &str) -> Option<PublicKey> {
        self.0.get(id).cloned()
    }
}

impl IssuerKeys {
    /// Errors: Invalid – names the variable.
    pub(super) async fn open(settings: &Settings) -> Result<Self, Error> {
        if !settings.jwks_cert.is_empty() {
            let keys = KeySet::parse(settings.jwks_cert.as_bytes());
            return keys
                .map(Self::Text)
                .map_err(|error| Error::invalid("JWKS_CERT", error.to_string()));
        }
        if let Some(path) = &settings.jwks_file {
            let file = WatchedFile::open(path, KeySet::parse).await;
            return file
                .map(Self::File)
                .map_err(|error| Error::invalid("JWKS_FILE", error.to_string()));
        }
        let url = settings
            .jwks_url
            .as_ref()
            .and_then(|url| Url::parse(&url.0).ok());
        let url = url.ok_or_else(|| Error::invalid("JWKS_URL", "is empty"))?;
        let authorities = settings
            .jwks_ca_file
            .as_ref()
            .map(std::fs::read)
            .transpose();
        let authorities =
            authorities.map_err(|error| Error::invalid("JWKS_CA_FILE", error.to_string()))?;
        Ok(Self::Remote(RemoteKeys {
            web: Web::new(authorities.as_deref())?,
            url,
            current: RwLock::default(),
            attempt: Mutex::default(),
        }))
    }

    /// Errors: Unauthenticated – unknown key; Unavailable – never loaded.
    pub(super) async fn find(&self, id: &str) -> Result<PublicKey, Error> {
        let found = match self {
            Self::Text(keys) => keys.find(id),
            Self::File(file) => file.get().await.find(id),
            Self::Remote(remote) => remote.find(id).await?,
        };
        found.ok_or_else(|| unauthenticated("the token is not valid: its key is unknown"))
    }
}

impl RemoteKeys {
    async fn find(&self, id: &str) -> Result<Option<PublicKey>, Error> {
        let known = self.current();
        let found = known.keys.find(id);
        let is_fresh = known.at.is_some_and(|at| at.elapsed() < FRESH);
        if found.is_some() && is_fresh {
            return Ok(found);
        }
        let mut attempt = match found {
            None => self.attempt.lock().await,
            // Another request fetches already: the known key is good until then.
            Some(key) => match self.attempt.try_lock() {
                Ok(attempt) => attempt,
                Err(_) => return Ok(Some(key)),
            },
        };
        if attempt.is_none_or(|last| last.elapsed() >= FETCH_INTERVAL) {
            *attempt = Some(Instant::now());
            self.fetch().await;
        }
        drop(attempt);
        let current = self.current();
        match current.at {
            Some(_) => Ok(current.keys.find(id)),
            None => Err(Error::Unavailable {
                what: ISSUER,
                source: None,
            }),
        }
    }

    async fn fetch(&self) {
        let get = self.web.get(&self.url, "application/json", SET_BYTES);
        let fetched = match tokio::time::timeout(FETCH_TIMEOUT, get).await {
            Ok(Ok(json)) => KeySet::parse(&json),
            Ok(Err(error)) => Err(error.into()),
            Err(timeout) => Err(timeout.into()),
        };
        match fetched {
            Ok(keys) => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = FetchedKeys {
                    keys: keys.into(),
                    at: Some(Instant::now()),
                };
            }
            Err(error) => {
                let error = model::error::chain(&*error);
                tracing::warn!(
                    error,
                    "keys of the token issuer not fetched, known ones remain"
                );
            }
        }
    }

    fn current(&self) -> FetchedKeys {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }
}

impl fmt::Debug for IssuerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text",
            Self::File(_) => "File",
            Self::Remote(_) => "Remote",
        })
    }
}
