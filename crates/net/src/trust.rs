//! TLS trust: the system's roots, given certificates, or no verification.
//!
//! A given certificate is also accepted as the registry's own, even with the CA flag, which `openssl req -x509` sets
//! and most offline registries have. Its names, its dates and the server's possession of the key are verified.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::pem;

/// Hosts whose certificates are not verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unchecked {
    Everybody,
    /// These hosts, without their ports; an empty set verifies all.
    Hosts(BTreeSet<String>),
}

impl From<bool> for Unchecked {
    fn from(is_everybody: bool) -> Self {
        if is_everybody {
            Self::Everybody
        } else {
            Self::Hosts(BTreeSet::new())
        }
    }
}

impl Unchecked {
    fn has(&self, server: &ServerName<'_>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Hosts(hosts) => hosts.contains(&*server.to_str()),
        }
    }
}

/// A TLS configuration that trusts the system's roots and the certificates in `ca_pem`, except `unchecked` hosts.
///
/// Errors: Invalid – `ca_pem` holds no certificate; Internal – ring lacks a protocol version (it does not).
pub fn client_config(
    ca_pem: Option<&[u8]>,
    unchecked: impl Into<Unchecked>,
) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let given = ca_pem.map(authorities).transpose();
    let given = given.map_err(|reason| Error::invalid("CA certificates", reason))?;
    let given = given.unwrap_or_default();
    let trust = Trust {
        roots: roots(&given, &provider)?,
        given,
        unchecked: unchecked.into(),
        provider: Arc::clone(&provider),
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::internal("preparing TLS", e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The authorities of a PEM text.
///
/// Errors: the reason, for the path of the file: no certificate, broken PEM or DER.
pub fn authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = pem::certificates(pem)?;
    let mut roots = RootCertStore::empty();
    for authority in &found {
        roots
            .add(authority.clone())
            .map_err(|error| format!("one of its certificates cannot be read: {error}"))?;
    }
    Ok(found)
}

/// The authorities of the system.
pub fn system_authorities() -> Vec<CertificateDer<'static>> {
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::debug!(%error, "some of the system's certificates cannot be read");
    }
    system.certs
}

/// A verifier for the roots; `None` without any, as in a container made from scratch.
fn roots(
    given: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system_authorities());
    roots.add_parsable_certificates(given.iter().cloned());
    if roots.is_empty() {
        return Ok(None);
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map(Some)
        .map_err(|e| Error::internal("preparing TLS", e))
}

#[derive(Debug)]
struct Trust {
    given: Vec<CertificateDer<'static>>,
    roots: Option<Arc<WebPkiServerVerifier>>,
    unchecked: Unchecked,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.unchecked.has(server_name) {
            return Ok(ServerCertVerified::assertion());
        }
        // Its trust was decided by the user; webpki would refuse a certificate authority as a server's certificate.
        if self.given.contains(end_entity) {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            verify_server_name(&certificate, server_name)?;
            verify_dates(&certificate, now)?;
            return Ok(ServerCertVerified::assertion());
        }
        match &self.roots {
            Some(roots) => {
                roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Errors: `now` is outside the validity period of `certificate`.
fn verify_dates(certificate: &ParsedCertificate<'_>, now: UnixTime) -> Result<(), rustls::Error> {
    use CertificateError::{InvalidPurpose, InvalidPurposeContext, Other, UnknownIssuer};
    // webpki compares the dates first. Then it refuses an authority or another purpose, and last every certificate,
    // since no root is trusted here.
    let roots = RootCertStore::empty();
    match verify_server_cert_signed_by_trust_anchor(certificate, &roots, &[], now, &[]) {
        Err(rustls::Error::InvalidCertificate(
            UnknownIssuer | InvalidPurpose | InvalidPurposeContext { .. } | Other(_),
        )) => Ok(()),
        verified => verified,
    }
}
