//! Certificates: files that may be renewed while they are in use, and self-signed ones for the first start.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use axum_server::tls_rustls::RustlsConfig;
use tokio_util::sync::CancellationToken;

use crate::Error;

/// How often certificate files are looked at. Polling works on every kind of mount, inotify does not.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// A certificate chain and its key, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Leaf first, then the chain.
    pub cert: PathBuf,
    /// PKCS#8, SEC1 or PKCS#1.
    pub key: PathBuf,
}

/// A certificate and its key as PEM text.
#[derive(Debug, Clone)]
pub struct Pem {
    /// The certificate.
    pub cert: String,
    /// The private key.
    pub key: String,
}

/// Makes ring the process's TLS provider; once is enough, more does no harm.
pub fn install_provider() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
}

/// Units: days. What the specification's sample registry certificate has.
const VALIDITY_DAYS: i64 = 365;

/// A self-signed P-256 certificate for `names` (DNS names and IP addresses), valid 365 days from now.
///
/// Errors: when a name cannot stand in a certificate.
pub fn self_signed(names: &[String]) -> Result<Pem, Error> {
    let doing = || format!("making a certificate for {}", names.join(", "));
    let mut params =
        rcgen::CertificateParams::new(names.to_vec()).map_err(|e| Error::new(doing(), e))?;
    let start = SystemTime::now();
    params.not_before = start.into();
    params.not_after =
        (start + Duration::from_secs(VALIDITY_DAYS.unsigned_abs() * 24 * 3600)).into();
    // Not an authority: rustls refuses a server that presents one, even when it is trusted itself.
    params.is_ca = rcgen::IsCa::ExplicitNoCa;
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(name) = names.first() {
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name.as_str());
    }
    let key = rcgen::KeyPair::generate().map_err(|e| Error::new(doing(), e))?;
    let certificate = params
        .self_signed(&key)
        .map_err(|e| Error::new(doing(), e))?;
    Ok(Pem {
        cert: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Loads `files` and keeps what is served equal to them until `shutdown`.
pub(crate) async fn reloading(
    files: Files,
    shutdown: CancellationToken,
) -> Result<RustlsConfig, Error> {
    install_provider();
    let config = RustlsConfig::from_pem_file(&files.cert, &files.key)
        .await
        .map_err(|e| {
            Error::new(
                format!(
                    "loading certificate {} and key {}",
                    files.cert.display(),
                    files.key.display()
                ),
                e,
            )
        })?;
    let served = config.clone();
    tokio::spawn(async move {
        let mut loaded = changed_at(&files).await;
        while shutdown
            .run_until_cancelled(tokio::time::sleep(RELOAD_INTERVAL))
            .await
            .is_some()
        {
            let changed = changed_at(&files).await;
            if changed == loaded {
                continue;
            }
            match served.reload_from_pem_file(&files.cert, &files.key).await {
                Ok(()) => {
                    loaded = changed;
                    tracing::info!(cert = %files.cert.display(), "certificate reloaded");
                }
                // Half-written pairs are ordinary: the old certificate stays until both files fit.
                Err(error) => {
                    tracing::warn!(%error, cert = %files.cert.display(), "certificate not reloaded");
                }
            }
        }
    });
    Ok(config)
}

async fn changed_at(files: &Files) -> [Option<SystemTime>; 2] {
    async fn modified(path: &Path) -> Option<SystemTime> {
        tokio::fs::metadata(path).await.ok()?.modified().ok()
    }
    [modified(&files.cert).await, modified(&files.key).await]
}
