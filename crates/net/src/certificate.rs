//! Certificates as a client sees them: their names and dates, and whether a chain ends at an authority.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use model::Error;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::pem;

/// Label in place of the star of a wildcard name, for its verification.
const ANY_LABEL: &str = "any";

/// Names and dates of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateSummary {
    /// Distinguished name of its owner.
    pub subject: String,
    /// Alternative names: DNS names in lower case, and addresses.
    pub names: Vec<String>,
    /// Start of its validity.
    pub not_before: SystemTime,
    /// End of its validity.
    pub not_after: SystemTime,
    /// Whether it may sign certificates.
    pub is_authority: bool,
    /// Whether subject and issuer are the same, as in roots.
    pub is_self_issued: bool,
}

impl CertificateSummary {
    /// Whether a client that asks for `name` accepts it, also by a wildcard for one label.
    pub fn has_name(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.names.iter().any(|own| {
            *own == name
                || own
                    .strip_prefix("*.")
                    .zip(name.split_once('.'))
                    .is_some_and(|(parent, (_, rest))| parent == rest)
        })
    }
}

/// The certificates of a PEM text, in their order; other sections, as keys, are skipped.
///
/// Errors: Invalid – no certificate, or malformed PEM.
pub fn of_pem(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    pem::certificates(text).map_err(|reason| Error::invalid("certificate", reason))
}

/// Reads names and dates.
///
/// Errors: Invalid – malformed DER, or a date that this machine cannot represent.
pub fn read(der: &CertificateDer<'_>) -> Result<CertificateSummary, Error> {
    let invalid = |reason: String| Error::invalid("certificate", reason);
    let (_, parsed) =
        X509Certificate::from_der(der).map_err(|e| invalid(format!("it cannot be read: {e}")))?;
    let alternative = parsed
        .subject_alternative_name()
        .map_err(|e| invalid(format!("its names cannot be read: {e}")))?;
    let names = alternative.map(|extension| names(&extension.value.general_names));
    let date = |seconds: i64| {
        time(seconds).ok_or_else(|| invalid("its validity cannot be represented".to_owned()))
    };
    Ok(CertificateSummary {
        subject: parsed.subject().to_string(),
        names: names.unwrap_or_default(),
        not_before: date(parsed.validity().not_before.timestamp())?,
        not_after: date(parsed.validity().not_after.timestamp())?,
        is_authority: parsed.is_ca(),
        is_self_issued: parsed.subject().as_raw() == parsed.issuer().as_raw(),
    })
}

fn names(all: &[GeneralName<'_>]) -> Vec<String> {
    all.iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
            _ => None,
        })
        .collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

fn time(seconds: i64) -> Option<SystemTime> {
    let size = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(size)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(size)
    }
}

/// Verifies, as clients do, that `chain` (leaf first) ends at one of `roots` and is for `name`, at `now`. A wildcard name
/// is verified with one of the names that it covers.
///
/// Errors: the reason of the refusal, for people.
pub fn verify(
    chain: &[CertificateDer<'_>],
    roots: &[CertificateDer<'static>],
    name: &str,
    now: SystemTime,
) -> Result<(), String> {
    let (leaf, intermediates) = chain.split_first().ok_or("there is no certificate")?;
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(roots.iter().cloned());
    let verifier = WebPkiServerVerifier::builder_with_provider(
        Arc::new(store),
        Arc::new(ring::default_provider()),
    )
    .build()
    .map_err(|e| e.to_string())?;
    let concrete = name
        .strip_prefix('*')
        .map_or_else(|| name.to_owned(), |rest| format!("{ANY_LABEL}{rest}"));
    let server = ServerName::try_from(concrete).map_err(|e| e.to_string())?;
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_err(|e| e.to_string())?;
    verifier
        .verify_server_cert(
            leaf,
            intermediates,
            &server,
            &[],
            UnixTime::since_unix_epoch(now),
        )
        .map(drop)
        .map_err(|e| reason(&e))
}

/// Checks that the first private key in a PEM text is that of the chain's leaf.
///
/// Errors: the reason, without content of the key.
pub fn check_key(chain: &[CertificateDer<'static>], text: &[u8]) -> Result<(), String> {
    let key = pem::private_key(text)?;
    match CertifiedKey::from_der(chain.to_vec(), key, &ring::default_provider()) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err("it is the key of another certificate".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn reason(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "no trusted authority has signed it".to_owned()
        }
        rustls::Error::InvalidCertificate(CertificateError::BadSignature) => {
            "it is signed by another key than the authority's".to_owned()
        }
        // webpki's own error, which rustls wraps.
        rustls::Error::InvalidCertificate(CertificateError::Other(other))
            if format!("{other:?}").contains("NameConstraint") =>
        {
            "its authority may not sign for this name".to_owned()
        }
        rustls::Error::InvalidCertificate(e) => e.to_string(),
        e => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, CidrSubnet, GeneralSubtree, IsCa, Issuer, KeyPair, NameConstraints,
    };

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn authority(constraints: Option<NameConstraints>) -> (Issuer<'static, KeyPair>, Vec<u8>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.name_constraints = constraints;
        let name = "authority";
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap().pem();
        (Issuer::new(params, key), certificate.into_bytes())
    }

    fn leaf(issuer: &Issuer<'static, KeyPair>, names: &[&str]) -> Vec<CertificateDer<'static>> {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        let now = SystemTime::now();
        params.not_before = (now - DAY).into();
        params.not_after = (now + DAY * 2).into();
        let pem = params.signed_by(&key, issuer).unwrap().pem();
        of_pem(format!("{pem}{}", key.serialize_pem()).as_bytes()).unwrap()
    }

    #[test]
    fn names_and_dates_are_read() {
        let (issuer, _) = authority(None);
        let names = ["*.Lab.example", "lab.example", "192.0.2.1", "2001:db8::1"];
        let chain = leaf(&issuer, &names);
        let read = read(&chain[0]).unwrap();
        assert_eq!(
            read.names,
            ["*.lab.example", "lab.example", "192.0.2.1", "2001:db8::1"]
        );
        assert!(!read.is_authority && !read.is_self_issued);
        let span = read.not_after.duration_since(read.not_before).unwrap();
        assert_eq!(span, DAY * 3);
        for known in ["lab.example", "API.lab.example", "2001:db8::1"] {
            assert!(read.has_name(known), "{known}");
        }
        for unknown in ["a.b.lab.example", "example", "192.0.2.2", ".lab.example.x"] {
            assert!(!read.has_name(unknown), "{unknown}");
        }
    }

    #[test]
    fn refusals_name_their_reason() {
        let (issuer, root) = authority(None);
        let (_, other) = authority(None);
        let chain = leaf(&issuer, &["*.lab.example"]);
        let verify =
            |root: &[u8], name: &str, now| super::verify(&chain, &of_pem(root).unwrap(), name, now);
        let now = SystemTime::now();
        verify(&root, "api.lab.example", now).unwrap();
        verify(&root, "*.lab.example", now).unwrap();
        for (root, name, now, expected) in [
            (&root, "lab.example", now, "not valid for name"),
            (&root, "a.lab.example", now + DAY * 3, "expired"),
            (&root, "a.lab.example", now - DAY * 3, "not valid yet"),
            (&other, "a.lab.example", now, "signed by another key"),
        ] {
            let reason = verify(root, name, now).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }

    #[test]
    fn constraints_of_the_authority_hold() {
        let (issuer, root) = authority(Some(NameConstraints {
            permitted_subtrees: vec![
                GeneralSubtree::DnsName("lab.example".to_owned()),
                GeneralSubtree::IpAddress(CidrSubnet::V4([192, 0, 2, 1], [255; 4])),
            ],
            excluded_subtrees: Vec::new(),
        }));
        let roots = of_pem(&root).unwrap();
        let reason = |name: &str| {
            let chain = leaf(&issuer, &[name]);
            verify(&chain, &roots, name, SystemTime::now())
        };
        for permitted in ["*.lab.example", "lab.example", "192.0.2.1"] {
            assert_eq!(reason(permitted), Ok(()), "{permitted}");
        }
        for refused in ["other.example", "xlab.example", "192.0.2.2"] {
            let reason = reason(refused).unwrap_err();
            assert!(
                reason.contains("may not sign for this name"),
                "{refused}: {reason}"
            );
        }
    }

    #[test]
    fn keys_of_other_certificates_are_refused() {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["lab.example".to_owned()]).unwrap();
        let chain = of_pem(params.self_signed(&key).unwrap().pem().as_bytes()).unwrap();
        check_key(&chain, key.serialize_pem().as_bytes()).unwrap();
        let other = KeyPair::generate().unwrap().serialize_pem();
        let reason = check_key(&chain, other.as_bytes()).unwrap_err();
        assert!(reason.contains("another certificate"), "{reason}");
        for text in [
            "",
            "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n",
        ] {
            let reason = check_key(&chain, text.as_bytes()).unwrap_err();
            assert!(!reason.contains("c2VjcmV0"), "{reason}");
        }
    }

    #[test]
    fn malformed_certificates_are_refused() {
        let (_, root) = authority(None);
        for text in ["", "-----BEGIN CERTIFICATE-----\nAA"] {
            of_pem(text.as_bytes()).unwrap_err();
        }
        let der = &of_pem(&root).unwrap()[0];
        for end in 0..der.len() {
            read(&CertificateDer::from(&der[..end])).unwrap_err();
        }
    }
}
