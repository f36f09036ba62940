//! Certificates of simulated BMCs: one authority, and a certificate for each address.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::Error;

/// The authority of a rack.
pub(super) struct BmcAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// Of all BMCs: a key for each would take longer.
    key: KeyPair,
    /// Its certificate as PEM.
    pub(super) certificate: String,
}

impl BmcAuthority {
    pub(super) fn new() -> Result<Self, Error> {
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let name = "simulated BMCs";
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).map_err(failed)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            key: KeyPair::generate().map_err(failed)?,
            certificate,
        })
    }

    /// The TLS configuration of the BMC at an address.
    pub(super) fn config(&self, address: Ipv4Addr) -> Result<Arc<ServerConfig>, Error> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(address))];
        let certificate = params.signed_by(&self.key, &self.issuer).map_err(failed)?;
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key))
            });
        config.map(Arc::new).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::invalid("the certificate of a simulated BMC", error.to_string())
}
