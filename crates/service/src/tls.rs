//! Certificates: files that may be renewed while they are in use, and those of clients.

mod certificate_list;
mod certified_name;
mod check;
mod cipher_list;
mod clients;
mod control;
mod files;
pub(crate) mod hello;
mod line_options;
mod loader;
mod passthrough;
pub(crate) mod plain_http;
mod reload;
mod served;
mod signatures;
mod suites;
mod tls_config;

pub use check::CertificateSetting;
pub(crate) use check::check;
pub use clients::{Clients, Demand};
pub use control::CertificateControl;
pub(crate) use control::reloading;
pub(crate) use passthrough::PassthroughTarget;
pub use passthrough::{Passthrough, PassthroughStatus};
pub(crate) use reload::own_identity;
pub use reload::{CertificateState, CertificateStates};
pub use served::HostAdmission;
pub(crate) use served::ServedCertificates;
pub use suites::speaks;
pub use tls_config::{CertificateFiles, Certificates, TlsConfig, TlsVersion};

/// Installs ring as the process's TLS provider; idempotent.
pub fn install_provider() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
}
