//! A certificate chain with its key, its names and its time of validity.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;
use webpki::{EndEntityCert, KeyUsage};

use super::certificate_list::NamePattern;

/// The proof of a server's name.
#[derive(Debug)]
pub(super) struct CertifiedName {
    pub(super) key: CertifiedKey,
    /// DNS names of the leaf, in lower case.
    pub(super) names: Vec<String>,
    pub(super) not_before: DateTime<Utc>,
    pub(super) not_after: DateTime<Utc>,
}

impl CertifiedName {
    /// Loads the PEM texts of a chain, leaf first, and of a key; both may be the same.
    ///
    /// Errors: no certificate, no key, a key of another certificate, DER that cannot be parsed.
    pub(super) fn load(
        (cert_path, cert): (&Path, &[u8]),
        (key_path, key): (&Path, &[u8]),
        provider: &CryptoProvider,
    ) -> Result<Self, String> {
        let in_cert = |error: &dyn std::fmt::Display| format!("{}: {error}", cert_path.display());
        let chain = certificates(cert_path, cert)?;
        let private = PrivateKeyDer::from_pem_slice(key)
            .map_err(|e| format!("{}: {e}", key_path.display()))?;
        let key =
            CertifiedKey::from_der(chain.clone(), private, provider).map_err(|e| in_cert(&e))?;
        let leaf = EndEntityCert::try_from(&chain[0]).map_err(|e| in_cert(&e))?;
        let names = leaf.valid_dns_names().map(str::to_ascii_lowercase);
        Ok(Self {
            key,
            names: names.collect(),
            not_before: not_before(&leaf),
            not_after: not_after(&leaf),
        })
    }

    /// Whether it is valid at `now`.
    pub(super) fn is_valid(&self, now: DateTime<Utc>) -> bool {
        self.not_before <= now && now < self.not_after
    }

    /// The first of `names` that the certificate does not have.
    pub(super) fn lacks<'a>(&self, names: &'a [NamePattern]) -> Option<&'a NamePattern> {
        let own: Vec<_> = self
            .names
            .iter()
            .map(|name| NamePattern::new(name))
            .collect();
        names.iter().find(|name| {
            let covers = |own: &NamePattern| match name {
                NamePattern::Exact(name) => own.matches(name).is_some(),
                NamePattern::Below(_) => own == *name,
            };
            !own.iter().any(covers)
        })
    }
}

/// webpki gives the times of validity only in its errors.
fn not_after(leaf: &EndEntityCert<'_>) -> DateTime<Utc> {
    match checked_at(leaf, u64::MAX) {
        Some(webpki::Error::CertExpired { not_after, .. }) => date(not_after),
        _ => DateTime::<Utc>::MAX_UTC,
    }
}

fn not_before(leaf: &EndEntityCert<'_>) -> DateTime<Utc> {
    match checked_at(leaf, 0) {
        Some(webpki::Error::CertNotValidYet { not_before, .. }) => date(not_before),
        _ => DateTime::<Utc>::MIN_UTC,
    }
}

/// The result of a check without authorities, of which the time of validity is the first part.
fn checked_at(leaf: &EndEntityCert<'_>, seconds: u64) -> Option<webpki::Error> {
    let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let usage = KeyUsage::server_auth();
    leaf.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &[],
        &[],
        time,
        usage,
        None,
        None,
    )
    .err()
}

fn date(time: UnixTime) -> DateTime<Utc> {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

/// The certificates of a PEM text, at least one.
///
/// Errors: no certificate, broken PEM.
pub(super) fn certificates(
    path: &Path,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| format!("{}: {e}", path.display()))?;
    if found.is_empty() {
        return Err(format!("{}: no certificate in it", path.display()));
    }
    Ok(found)
}
