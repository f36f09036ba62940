//! The keys by which tokens are signed.

use oci::jws::{Certificates, Jwk, PublicKey};
use serde::Deserialize;

use super::jwt::Header;
use concurrency::BoxError;

/// Keys with the names by which tokens call them.
#[derive(Debug)]
pub(super) struct Keys {
    keys: Vec<(PublicKey, Vec<String>)>,
    certificates: Option<Certificates>,
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

impl Keys {
    /// Keys of a PEM bundle, and of the certificates that it signs.
    ///
    /// Errors: none in it, or one that is not known here.
    pub(super) fn of_certificates(pem: &str) -> Result<Self, BoxError> {
        let certificates = Certificates::parse(pem)?;
        let keys = certificates.keys()?.into_iter();
        Ok(Self {
            keys: keys.map(|(key, ids)| (key, ids.to_vec())).collect(),
            certificates: Some(certificates),
        })
    }

    /// Those of a JSON Web Key Set. Source: RFC 7517, 5: others than one knows are passed over.
    ///
    /// Errors: none that is known here.
    pub(super) fn of_jwks(text: &str) -> Result<Self, BoxError> {
        let jwks: Jwks = serde_json::from_str(text)?;
        let mut keys = Vec::new();
        for jwk in jwks.keys {
            match PublicKey::parse(&jwk) {
                Ok(key) => {
                    let ids = vec![key.thumbprint(), jwk.kid];
                    keys.push((key, ids));
                }
                Err(error) => tracing::warn!(%error, kid = jwk.kid, "a key is passed over"),
            }
        }
        if keys.is_empty() {
            return Err("there is no key in it that is known here".into());
        }
        Ok(Self {
            keys,
            certificates: None,
        })
    }

    /// Those that may have signed a token, at a time in seconds since 1970: its own certificates or key if they are
    /// trusted, else the key that it names, else any.
    ///
    /// Errors: its certificates are not trusted.
    pub(super) fn candidates(
        &self,
        header: &Header,
        now: u64,
    ) -> Result<Vec<PublicKey>, model::Error> {
        if !header.x5c.is_empty()
            && let Some(certificates) = &self.certificates
        {
            return Ok(vec![certificates.vouched(&header.x5c, now)?]);
        }
        let brought = header.jwk.as_ref().map(PublicKey::parse).transpose()?;
        let fits = |(key, ids): &&(PublicKey, Vec<String>)| match (&brought, &header.kid) {
            (Some(brought), _) => key == brought,
            (None, Some(kid)) => ids.contains(kid),
            (None, None) => true,
        };
        let fitting = self.keys.iter().filter(fits);
        Ok(fitting.map(|(key, _)| key.clone()).collect())
    }
}
