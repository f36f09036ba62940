//! Self-signed certificates of the registry.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use service::Error;

/// A certificate and its key as PEM text.
#[derive(Debug, Clone)]
pub(crate) struct Pem {
    /// The certificate.
    pub(crate) cert: String,
    /// The private key.
    pub(crate) key: String,
}

/// Default validity of a certificate, as in the specification's sample registry certificate. Units: days.
pub(crate) const VALIDITY_DAYS: u32 = 365;

/// A self-signed P-256 certificate for `names` (DNS names and IP addresses), valid 365 days from now.
///
/// Errors: when a name cannot stand in a certificate.
pub(crate) fn self_signed(names: &[String]) -> Result<Pem, Error> {
    // Not an authority: rustls refuses a server that presents one, even when it is trusted itself.
    make(names, VALIDITY_DAYS, None, |params| {
        params.is_ca = IsCa::ExplicitNoCa;
    })
}

/// A self-signed certificate for `names` that every trust store takes, valid `days` from now; its key is `key`
/// (PKCS#8 as PEM), or a new P-256 one.
///
/// It is a CA certificate, as those of `openssl req -x509`: `update-ca-trust` skips all others, on RHEL as on the
/// nodes of a cluster.
///
/// Errors: when a name cannot stand in a certificate, when `key` cannot be read.
pub(crate) fn trust_anchor(names: &[String], days: u32, key: Option<&str>) -> Result<Pem, Error> {
    make(names, days, key, |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
        ];
    })
}

fn make(
    names: &[String],
    days: u32,
    key: Option<&str>,
    shape: impl FnOnce(&mut CertificateParams),
) -> Result<Pem, Error> {
    let made = || {
        let key = key.map_or_else(KeyPair::generate, KeyPair::from_pem)?;
        let mut params = CertificateParams::new(names)?;
        let start = SystemTime::now();
        params.not_before = start.into();
        params.not_after = (start + Duration::from_hours(24) * days).into();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.distinguished_name = DistinguishedName::new();
        if let Some(name) = names.first() {
            params
                .distinguished_name
                .push(DnType::CommonName, name.as_str());
        }
        shape(&mut params);
        Ok::<_, rcgen::Error>(Pem {
            cert: params.self_signed(&key)?.pem(),
            key: key.serialize_pem(),
        })
    };
    made().map_err(|e| Error::new(format!("making a certificate for {}", names.join(", ")), e))
}
