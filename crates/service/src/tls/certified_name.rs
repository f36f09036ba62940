//! A certificate chain with its key, its names and its time of validity.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use net::pem;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::sign::{CertifiedKey, SigningKey};
use webpki::{EndEntityCert, KeyUsage};

use super::certificate_list::NamePattern;
use super::files::of_file;

/// The proof of a server's name.
#[derive(Debug)]
pub(super) struct CertifiedName {
    pub(super) key: CertifiedKey,
    /// Names of the leaf, in lower case.
    pub(super) names: Vec<String>,
    pub(super) not_before: DateTime<Utc>,
    pub(super) not_after: DateTime<Utc>,
}

impl CertifiedName {
    /// Loads the PEM texts of a chain and of a key; both may be the same. The leaf is the certificate that the key fits,
    /// wherever it is in the text, and each other one follows the one that it has signed.
    ///
    /// Errors: no certificate, no key, a key of another certificate, DER that cannot be parsed.
    pub(super) fn load(
        (cert_path, cert): (&Path, &[u8]),
        (key_path, key): (&Path, &[u8]),
        provider: &CryptoProvider,
    ) -> Result<Self, String> {
        let found = pem::certificates(cert).map_err(|reason| of_file(cert_path, &reason))?;
        let private = pem::private_key(key).map_err(|reason| of_file(key_path, &reason))?;
        let signing = provider
            .key_provider
            .load_private_key(private)
            .map_err(|_| {
                let kinds =
                    "RSA from 2048 bits, ECDSA on P-256 or P-384, and Ed25519 are supported: make such a key and a certificate for it";
                of_file(
                    key_path,
                    &format_args!("its private key cannot be used: {kinds}"),
                )
            })?;
        let chain = ordered(found, &signing, key_path).map_err(|e| of_file(cert_path, &e))?;
        let leaf = EndEntityCert::try_from(&chain[0]).map_err(|e| of_file(cert_path, &e))?;
        Ok(Self {
            not_before: not_before(&leaf),
            not_after: not_after(&leaf),
            names: names_of(&leaf),
            key: CertifiedKey::new(chain, signing),
        })
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

/// The certificates of a chain, leaf first, each before its issuer; those of no known place are last.
///
/// Errors: no certificate that the key fits.
fn ordered(
    mut found: Vec<CertificateDer<'static>>,
    key: &Arc<dyn SigningKey>,
    key_path: &Path,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let fits = |one: &CertificateDer<'static>| {
        let pair = CertifiedKey::new(vec![one.clone()], Arc::clone(key));
        pair.keys_match().is_ok()
    };
    let leaf = found.iter().position(fits);
    let leaf = leaf.ok_or_else(|| unfit(&found, key_path))?;
    let mut chain = vec![found.remove(leaf)];
    while let Some(next) = issuer_of(chain.last(), &found) {
        chain.push(found.remove(next));
    }
    chain.append(&mut found);
    Ok(chain)
}

/// The reason why the key at `key_path` fits none of `found`.
fn unfit(found: &[CertificateDer<'static>], key_path: &Path) -> String {
    let malformed = found
        .iter()
        .find_map(|one| EndEntityCert::try_from(one).err());
    match malformed {
        None => {
            let key = key_path.display();
            format!("the private key is that of another certificate: {key}")
        }
        Some(webpki::Error::UnsupportedCertVersion) => {
            "it has a certificate of version 1, without alternative names, which clients refuse: sign its request again by `openssl x509 -req -copy_extensions copy` or with `-extfile`"
                .to_owned()
        }
        Some(error) => format!("a certificate in it cannot be read: {error}"),
    }
}

/// Index of the certificate in `others` that issued `one`.
fn issuer_of(
    one: Option<&CertificateDer<'static>>,
    others: &[CertificateDer<'static>],
) -> Option<usize> {
    let one = EndEntityCert::try_from(one?).ok()?;
    others.iter().position(|other| {
        EndEntityCert::try_from(other).is_ok_and(|other| other.subject() == one.issuer())
    })
}

/// The names that a certificate is for, in lower case: the alternative ones, and the common name, as in HAProxy.
///
/// Errors: malformed DER.
pub(super) fn names(der: &CertificateDer<'_>) -> Result<Vec<String>, webpki::Error> {
    EndEntityCert::try_from(der).map(|read| names_of(&read))
}

/// The time until which a certificate is valid; absent when it cannot be read.
pub(super) fn expiry(der: &CertificateDer<'_>) -> Option<DateTime<Utc>> {
    EndEntityCert::try_from(der)
        .ok()
        .map(|read| not_after(&read))
}

fn names_of(read: &EndEntityCert<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let alternative = read.valid_dns_names().map(str::to_owned);
    for name in alternative.chain(common_names(read.subject())) {
        let name = name.to_ascii_lowercase();
        if is_server_name(&name) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The common names of a subject in DER: texts that follow their object identifier, 2.5.4.3.
fn common_names(subject: &[u8]) -> impl Iterator<Item = String> {
    const COMMON_NAME: &[u8] = &[6, 3, 0x55, 4, 3];
    subject
        .windows(COMMON_NAME.len())
        .enumerate()
        .filter_map(|(start, found)| {
            let rest = (found == COMMON_NAME).then(|| &subject[start + COMMON_NAME.len()..])?;
            // A type of text, and a length of one byte: a name is shorter than 128.
            let [_, length, text @ ..] = rest else {
                return None;
            };
            let text = text.get(..usize::from(*length))?;
            String::from_utf8(text.to_vec()).ok()
        })
}

/// Whether a client may ask for `name`, or for one that it covers: it is no address and no title.
fn is_server_name(name: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte);
    !name.is_empty() && name.bytes().all(is_of_names) && name.parse::<IpAddr>().is_err()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_names_are_server_names_too() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        for name in ["B.test", "a.test", "a title", "192.0.2.1"] {
            let kind = rcgen::DnType::CustomDnType(vec![2, 5, 4, 3]);
            params.distinguished_name.remove(kind.clone());
            params.distinguished_name.push(kind, name);
            let made = params.self_signed(&key).unwrap();
            let expected: &[&str] = match name {
                "B.test" => &["a.test", "b.test"],
                _ => &["a.test"],
            };
            assert_eq!(names(made.der()).unwrap(), expected, "{name}");
        }
    }
}
