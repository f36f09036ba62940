//! Client certificates, in the four modes of Go's `tls.ClientAuthType`.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

use crate::settings::Setting;

/// Verification of client certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clients {
    /// PEM files with the authorities' certificates.
    pub authorities: Vec<PathBuf>,
    /// Mode of verification.
    pub demand: Demand,
}

/// Mode of verification. Source: Go, `crypto/tls`, `ClientAuthType`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Demand {
    /// A certificate of any issuer, or none.
    Request,
    /// A certificate of any issuer.
    RequireAny,
    /// A certificate of an authority, or none.
    VerifyIfGiven,
    /// A certificate of an authority.
    #[default]
    RequireAndVerify,
}

impl Demand {
    /// Whether it takes authorities.
    pub fn verifies(self) -> bool {
        matches!(self, Self::VerifyIfGiven | Self::RequireAndVerify)
    }

    fn requires(self) -> bool {
        matches!(self, Self::RequireAny | Self::RequireAndVerify)
    }
}

impl Setting for Demand {
    const EXPECTED: &'static str = "request-client-cert, require-any-client-cert, \
        verify-client-cert-if-given or require-and-verify-client-cert";

    fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "request-client-cert" => Ok(Self::Request),
            "require-any-client-cert" => Ok(Self::RequireAny),
            "verify-client-cert-if-given" => Ok(Self::VerifyIfGiven),
            "require-and-verify-client-cert" => Ok(Self::RequireAndVerify),
            _ => Err("no demand on clients".to_owned()),
        }
    }
}

/// Verifies client certificates. Possession of the key is always proved.
#[derive(Debug)]
pub(super) struct Verifier {
    demand: Demand,
    /// The server's own certificate is let in: only `health` has its key.
    own: CertificateDer<'static>,
    /// Nothing is verified when absent.
    authorities: Option<Arc<dyn ClientCertVerifier>>,
    /// For clients that have several certificates to choose from.
    hints: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    /// Errors: a demand that takes authorities without one.
    pub(super) fn new(
        demand: Demand,
        own: CertificateDer<'static>,
        authorities: RootCertStore,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let hints = authorities.subjects();
        let authorities = demand
            .verifies()
            .then(|| {
                let provider = Arc::clone(&provider);
                WebPkiClientVerifier::builder_with_provider(authorities.into(), provider).build()
            })
            .transpose()?;
        Ok(Self {
            demand,
            own,
            authorities,
            hints,
            provider,
        })
    }
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.demand.requires()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        match &self.authorities {
            Some(authorities) if *end_entity != self.own => {
                authorities.verify_client_cert(end_entity, intermediates, now)
            }
            _ => Ok(ClientCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
