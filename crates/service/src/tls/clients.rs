//! Client certificates, in the four modes of Go's `tls.ClientAuthType`.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{
    DigitallySignedStruct, DistinguishedName, PeerMisbehaved, RootCertStore, SignatureScheme,
};

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
    /// The server's own certificate is let in, if given: only `health` has its key.
    own: Option<CertificateDer<'static>>,
    /// Nothing is verified when absent.
    authorities: Option<Arc<dyn ClientCertVerifier>>,
    /// For clients that have several certificates to choose from.
    hints: Vec<DistinguishedName>,
    /// Allowed algorithms of clients' signatures; absent: all that are supported.
    schemes: Option<Vec<SignatureScheme>>,
    provider: Arc<CryptoProvider>,
}

/// Authorities of clients.
#[derive(Debug)]
pub(super) struct ClientTrust {
    pub(super) roots: RootCertStore,
    /// Names of authorities, for clients that have several certificates to choose from.
    pub(super) hints: Vec<DistinguishedName>,
    /// Lists of every authority in a chain; empty: nothing is revoked.
    pub(super) revoked: Vec<CertificateRevocationListDer<'static>>,
    /// Allowed algorithms of clients' signatures; absent: all that are supported.
    pub(super) schemes: Option<Vec<SignatureScheme>>,
}

impl Verifier {
    /// Errors: a demand that takes authorities without one; a malformed list of revoked certificates.
    pub(super) fn new(
        demand: Demand,
        own: Option<CertificateDer<'static>>,
        trust: ClientTrust,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let ClientTrust {
            roots,
            hints,
            revoked,
            schemes,
        } = trust;
        let authorities = demand
            .verifies()
            .then(|| {
                let provider = Arc::clone(&provider);
                WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                    .with_crls(revoked)
                    // As OpenSSL: an outdated list says nothing on those that were revoked since.
                    .enforce_revocation_expiration()
                    .build()
            })
            .transpose()?;
        Ok(Self {
            demand,
            own,
            authorities,
            hints,
            schemes,
            provider,
        })
    }

    fn allows(&self, scheme: SignatureScheme) -> bool {
        let mut schemes = self.schemes.iter().flatten();
        self.schemes.is_none() || schemes.any(|one| *one == scheme)
    }

    /// Errors: a client that signed by an algorithm which it was not offered.
    fn check(&self, signature: &DigitallySignedStruct) -> Result<(), rustls::Error> {
        if self.allows(signature.scheme) {
            return Ok(());
        }
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
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
            Some(authorities) if self.own.as_ref() != Some(end_entity) => {
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
        self.check(dss)?;
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check(dss)?;
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let mut schemes = algorithms.supported_schemes();
        schemes.retain(|scheme| self.allows(*scheme));
        schemes
    }
}
