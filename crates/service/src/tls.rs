//! Certificates: files that may be renewed while they are in use, those of clients, and self-signed ones for the
//! first start.

mod clients;
mod plain_http;
mod reload;
mod suites;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::Error;
use crate::settings::Setting;

pub use clients::{Clients, Demand};
pub(crate) use plain_http::TlsOnlyAcceptor;
pub(crate) use reload::{own_identity, reloading};
pub use suites::speaks;

/// A certificate chain and its key, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Leaf first, then the chain.
    pub cert: PathBuf,
    /// PKCS#8, SEC1 or PKCS#1.
    pub key: PathBuf,
}

/// TLS configuration of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// Certificate of the server.
    pub files: CertificateFiles,
    /// Verification of client certificates; none are requested when absent.
    pub clients: Option<Clients>,
    /// Minimum version.
    pub minimum: TlsVersion,
    /// IANA names of the allowed cipher suites of TLS 1.2; empty: all safe ones.
    pub suites: Vec<String>,
    /// How often the files are read. Polling works on every kind of mount, inotify does not.
    pub reload_interval: Duration,
}

/// Soon enough for a renewed certificate, and cheap to read.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

impl From<CertificateFiles> for TlsConfig {
    fn from(files: CertificateFiles) -> Self {
        Self {
            files,
            clients: None,
            minimum: TlsVersion::default(),
            suites: Vec::new(),
            reload_interval: RELOAD_INTERVAL,
        }
    }
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Setting for TlsVersion {
    const EXPECTED: &'static str = "tls1.2 or tls1.3";

    fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "tls1.2" => Ok(Self::Tls12),
            "tls1.3" => Ok(Self::Tls13),
            "tls1.0" | "tls1.1" => Err("too old to be spoken here".to_owned()),
            _ => Err("no version of TLS".to_owned()),
        }
    }
}

/// A certificate and its key as PEM text.
#[derive(Debug, Clone)]
pub struct Pem {
    /// The certificate.
    pub cert: String,
    /// The private key.
    pub key: String,
}

/// Installs ring as the process's TLS provider; idempotent.
pub fn install_provider() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
}

/// Default validity of a certificate, as in the specification's sample registry certificate. Units: days.
pub const VALIDITY_DAYS: u32 = 365;

/// A self-signed P-256 certificate for `names` (DNS names and IP addresses), valid 365 days from now.
///
/// Errors: when a name cannot stand in a certificate.
pub fn self_signed(names: &[String]) -> Result<Pem, Error> {
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
pub fn trust_anchor(names: &[String], days: u32, key: Option<&str>) -> Result<Pem, Error> {
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
