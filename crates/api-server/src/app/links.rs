//! Signed links to files of clusters, and signing keys.
//!
//! A link is the path and query of a download with its expiry and a signature (HMAC-SHA256) over both. Its key belongs
//! to the cluster and is deleted with it. Not here: the objects of a bucket, whose links the peer gives out.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chrono::TimeDelta;
use model::Error;
use model::ids::ClusterId;
use model::infra_env::PresignedUrl;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use url::form_urlencoded::Serializer;

use crate::db::{Database, clusters, tx};

/// Validity of a link. Source: assisted-service, internal/bminventory/inventory.go, V2GetPresignedForClusterFiles.
const LIFETIME: TimeDelta = TimeDelta::minutes(10);
/// Query parameter with the expiry, in seconds since 1970.
const EXPIRES: &str = "expires";
/// Query parameter with the signature.
const SIGNATURE: &str = "signature";
/// Units: bytes.
const KEY_BYTES: usize = 32;

/// A link as a client sent it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentLink<'a> {
    /// Path of the request.
    pub(crate) path: &'a str,
    /// Decoded query, in its order.
    pub(crate) query: &'a [(String, String)],
}

impl SentLink<'_> {
    fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Why the link is not valid; none for a valid one.
    fn problem(&self, key: &[u8], now_s: i64) -> Option<&'static str> {
        let pairs = self.query.iter().filter(|(name, _)| name != SIGNATURE);
        let text = canonical(self.path, pairs.map(|(name, value)| (&**name, &**value)));
        let signature = BASE64.decode(self.parameter(SIGNATURE).unwrap_or_default());
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let is_signed =
            signature.is_ok_and(|bytes| hmac::verify(&key, text.as_bytes(), &bytes).is_ok());
        if !is_signed {
            return Some("its signature does not fit");
        }
        let expires = self.parameter(EXPIRES).and_then(|text| text.parse().ok());
        (now_s > expires.unwrap_or(i64::MIN)).then_some("it has expired")
    }
}

/// The signed text: path and query.
fn canonical<'a>(path: &str, query: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    Serializer::for_suffix(format!("{path}?"), path.len() + 1)
        .extend_pairs(query)
        .finish()
}

fn signature(key: &[u8], text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    BASE64.encode(hmac::sign(&key, text.as_bytes()))
}

pub(super) fn new_key() -> Result<[u8; KEY_BYTES], Error> {
    let mut key = [0; KEY_BYTES];
    let filled = SystemRandom::new().fill(&mut key);
    filled.map_err(|_| Error::internal("making a key", "the system has no random bytes"))?;
    Ok(key)
}

/// Signed links to downloads of clusters.
#[derive(Debug)]
pub(crate) struct Links {
    db: Database,
    base_url: String,
}

impl Links {
    /// Links below `base_url`, with the keys of the database.
    pub(super) fn new(db: Database, base_url: String) -> Self {
        Self { db, base_url }
    }

    /// A link to a download of a cluster, valid for ten minutes; `below` is its path below the cluster.
    ///
    /// Errors: NotFound.
    pub(crate) async fn sign(
        &self,
        id: ClusterId,
        below: &str,
        query: &[(&str, &str)],
    ) -> Result<PresignedUrl, Error> {
        let expires_at = service::clock::now() + LIFETIME;
        let expires = expires_at.timestamp().to_string();
        let key = self.signing_key(id).await?;
        let path = format!("{}{below}", rules::urls::cluster(id));
        let query = query.iter().copied().chain([(EXPIRES, expires.as_str())]);
        let text = canonical(&path, query);
        let signature = signature(&key, &text);
        Ok(PresignedUrl {
            url: format!("{}{text}&{SIGNATURE}={signature}", self.base_url),
            expires_at: expires_at.into(),
        })
    }

    /// Checks a signed link to a download of a cluster.
    ///
    /// Errors: NotFound; Forbidden – it was changed, or has expired.
    pub(crate) async fn check(&self, id: ClusterId, link: SentLink<'_>) -> Result<(), Error> {
        let key = self.signing_key(id).await?;
        let now_s = service::clock::now().timestamp();
        match link.problem(&key, now_s) {
            Some(problem) => Err(Error::Forbidden {
                reason: format!("this link is not valid: {problem}; request a new one"),
            }),
            None => Ok(()),
        }
    }

    async fn signing_key(&self, id: ClusterId) -> Result<Vec<u8>, Error> {
        let new = new_key()?;
        let key = tx("read signing key", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            clusters::signing_key(&mut connection, &self.db.keys().await, id, &new).await
        })
        .await?;
        key.ok_or_else(|| Error::not_found("cluster", id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = &[7; KEY_BYTES];
    const PATH: &str = "/api/x/downloads/files";

    fn signed(query: &[(&str, &str)]) -> Vec<(String, String)> {
        let signature = signature(KEY, &canonical(PATH, query.iter().copied()));
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut query: Vec<_> = query.iter().map(owned).collect();
        query.push((SIGNATURE.to_owned(), signature));
        query
    }

    fn problem(
        path: &str,
        query: &[(String, String)],
        key: &[u8],
        now_s: i64,
    ) -> Option<&'static str> {
        SentLink { path, query }.problem(key, now_s)
    }

    #[test]
    fn links_are_valid_until_they_expire() {
        let query = signed(&[("file_name", "a b&c.yaml"), (EXPIRES, "100")]);
        assert_eq!(problem(PATH, &query, KEY, 100), None);
        assert_eq!(problem(PATH, &query, KEY, 101), Some("it has expired"));
        let endless = signed(&[("file_name", "a")]);
        assert_eq!(problem(PATH, &endless, KEY, 0), Some("it has expired"));
    }

    #[test]
    fn changed_links_are_refused() {
        let query = signed(&[("file_name", "a"), (EXPIRES, "100")]);
        let changed = |at: usize, value: &str| {
            let mut query = query.clone();
            value.clone_into(&mut query[at].1);
            query
        };
        assert!(problem("/api/y/downloads/files", &query, KEY, 0).is_some());
        assert!(problem(PATH, &query, &[8; KEY_BYTES], 0).is_some());
        for (at, value) in [(0, "b"), (1, "101"), (2, ""), (2, "AAAA"), (2, "ä")] {
            assert!(
                problem(PATH, &changed(at, value), KEY, 0).is_some(),
                "{value}"
            );
        }
    }
}
