//! Certificates of servers: self-signed ones, and those that an authority of the site signs.

mod authority;

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use service::Error;

pub use authority::SiteAuthority;

/// A certificate and its key as PEM text.
#[derive(Debug, Clone)]
pub struct Pem {
    /// The certificate.
    pub cert: String,
    /// The private key.
    pub key: String,
}

/// Default validity of a certificate, as in the specification's sample registry certificate. Units: days.
pub const VALIDITY_DAYS: u32 = 365;
const DAY: Duration = Duration::from_hours(24);
/// Clocks of disconnected sites differ: certificates are valid before the present.
const BACKDATED: Duration = DAY;
/// Units: bytes. Source: RFC 5280, ub-common-name.
const MAX_COMMON_NAME: usize = 64;

/// A self-signed P-256 certificate for `names` (DNS names and IP addresses), valid 365 days from now.
///
/// Errors: when a name cannot stand in a certificate.
pub fn self_signed(names: &[String]) -> Result<Pem, Error> {
    // Not an authority: rustls refuses a server that presents one, even when it is trusted itself.
    make_self_signed(names, VALIDITY_DAYS, None, |params| {
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
pub fn trust_anchor(names: &[String], days: u32, key: Option<&str>) -> Result<Pem, Error> {
    make_self_signed(names, days, key, |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
        ];
    })
}

fn make_self_signed(
    names: &[String],
    days: u32,
    key: Option<&str>,
    shape: impl FnOnce(&mut CertificateParams),
) -> Result<Pem, Error> {
    let made = || {
        let key = key.map_or_else(KeyPair::generate, KeyPair::from_pem)?;
        let mut params = server(names, SystemTime::now() + DAY * days)?;
        shape(&mut params);
        Ok(Pem {
            cert: params.self_signed(&key)?.pem(),
            key: key.serialize_pem(),
        })
    };
    made().map_err(|e| failed(names, e))
}

/// A server's certificate for `names`, valid from yesterday until `end`.
fn server(names: &[String], end: SystemTime) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.not_before = (SystemTime::now() - BACKDATED).into();
    params.not_after = end.into();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.distinguished_name = DistinguishedName::new();
    if let Some(name) = names.iter().find(|name| name.len() <= MAX_COMMON_NAME) {
        params
            .distinguished_name
            .push(DnType::CommonName, name.as_str());
    }
    Ok(params)
}

fn failed(names: &[String], error: rcgen::Error) -> Error {
    Error::new(
        format!("making a certificate for {}", names.join(", ")),
        error,
    )
}
