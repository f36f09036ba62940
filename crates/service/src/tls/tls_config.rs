//! TLS configuration of a listener: its certificates, and the versions that it speaks.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::clients::Clients;
use crate::settings::Setting;

/// A certificate chain and its key, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Leaf first, then the chain.
    pub cert: PathBuf,
    /// PKCS#8, SEC1 or PKCS#1.
    pub key: PathBuf,
}

/// Certificates of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificates {
    /// One.
    Files(CertificateFiles),
    /// Those that a list in HAProxy's format `crt-list` names; the name that the client asks for chooses.
    List(PathBuf),
}

impl fmt::Display for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(CertificateFiles { cert, key }) => {
                write!(
                    f,
                    "certificate {} and key {}",
                    cert.display(),
                    key.display()
                )
            }
            Self::List(path) => write!(f, "the certificates of {}", path.display()),
        }
    }
}

/// TLS configuration of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// Certificates of the server.
    pub certificates: Certificates,
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
        Certificates::Files(files).into()
    }
}

impl From<Certificates> for TlsConfig {
    fn from(certificates: Certificates) -> Self {
        Self {
            certificates,
            clients: None,
            minimum: TlsVersion::default(),
            suites: Vec::new(),
            reload_interval: RELOAD_INTERVAL,
        }
    }
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl TlsVersion {
    /// Absent for versions that are not spoken here.
    pub(crate) fn of(version: rustls::ProtocolVersion) -> Option<Self> {
        match version {
            rustls::ProtocolVersion::TLSv1_2 => Some(Self::Tls12),
            rustls::ProtocolVersion::TLSv1_3 => Some(Self::Tls13),
            _ => None,
        }
    }

    /// As in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "tls1.2",
            Self::Tls13 => "tls1.3",
        }
    }
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
