//! Keys of certificates and their chains.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::BASE32_NOPAD;
use model::Error;
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};

use super::{PublicKey, wrong};
use crate::Digest;

/// Units: bytes. Length of the truncated hash in a libtrust key id. Source: docker/libtrust.
const ID_BYTES: usize = 30;

/// Trusted certificates, and the chains that they sign.
#[derive(Debug)]
pub struct Certificates {
    trusted: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Certificates {
    /// Reads a PEM bundle.
    ///
    /// Errors: Invalid – no certificate, or an unreadable one.
    pub fn parse(pem: &str) -> Result<Self, Error> {
        let damaged = |reason: String| Error::invalid("certificates", reason);
        let trusted: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|e| damaged(e.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots
                .add(certificate.clone())
                .map_err(|e| damaged(e.to_string()))?;
        }
        let provider = Arc::new(default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|e| damaged(e.to_string()))?;
        Ok(Self { trusted, verifier })
    }

    /// The keys of the trusted certificates, each with its ids in the header of a signature: its thumbprint, and its
    /// libtrust id.
    ///
    /// Errors: Invalid – an unsupported kind of key.
    pub fn keys(&self) -> Result<Vec<(PublicKey, [String; 2])>, Error> {
        self.trusted
            .iter()
            .map(|certificate| {
                let spki = spki(certificate)?;
                let key = PublicKey::from_spki(&spki)?;
                let ids = [key.thumbprint(), libtrust_id(&spki)];
                Ok((key, ids))
            })
            .collect()
    }

    /// The key of the first certificate of a JOSE `x5c`, if its chain ends at a trusted certificate at `now`. Units:
    /// seconds since 1970.
    ///
    /// Errors: Invalid – untrusted or unreadable.
    pub fn vouched(&self, x5c: &[String], now: u64) -> Result<PublicKey, Error> {
        let chain = chain(x5c)?;
        let (leaf, between) = split(&chain)?;
        if !self.trusted.contains(leaf) {
            let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
            self.verifier
                .verify_client_cert(leaf, between, now)
                .map_err(|e| wrong(format!("its certificate is not trusted: {e}")))?;
        }
        PublicKey::from_spki(&spki(leaf)?)
    }
}

impl PublicKey {
    /// The key of the first certificate of a JOSE `x5c`, without a check of its chain.
    ///
    /// Errors: Invalid – unreadable, or an unsupported kind of key.
    pub(crate) fn from_x5c(x5c: &[String]) -> Result<Self, Error> {
        Self::from_spki(&spki(split(&chain(x5c)?)?.0)?)
    }
}

fn chain(x5c: &[String]) -> Result<Vec<CertificateDer<'static>>, Error> {
    x5c.iter()
        .map(|text| STANDARD.decode(text).map(CertificateDer::from))
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(format!("a certificate is not base64: {error}")))
}

/// The signer's certificate, and the intermediate ones.
fn split<'a>(
    chain: &'a [CertificateDer<'static>],
) -> Result<(&'a CertificateDer<'static>, &'a [CertificateDer<'static>]), Error> {
    chain
        .split_first()
        .ok_or_else(|| wrong("it has no certificate"))
}

fn spki(certificate: &CertificateDer<'_>) -> Result<Vec<u8>, Error> {
    let parsed = ParsedCertificate::try_from(certificate)
        .map_err(|e| wrong(format!("a certificate cannot be read: {e}")))?;
    Ok(parsed.subject_public_key_info().to_vec())
}

/// Twelve groups of four letters. Source: docker/libtrust, `util.go`.
fn libtrust_id(spki: &[u8]) -> String {
    let hash = hex::decode(Digest::sha256(spki).hex()).unwrap_or_default();
    let text = BASE32_NOPAD.encode(hash.get(..ID_BYTES).unwrap_or_default());
    let groups: Vec<_> = text
        .as_bytes()
        .chunks(4)
        .map(String::from_utf8_lossy)
        .collect();
    groups.join(":")
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, Issuer, KeyPair};

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn text(der: &CertificateDer<'_>) -> String {
        STANDARD.encode(der)
    }

    #[test]
    fn trusted_certificates_sign_others() {
        let ca_key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca = params.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(params, &ca_key);
        let leaf_key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["signer".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&leaf_key, &issuer).unwrap();
        let trusted = Certificates::parse(&ca.pem()).unwrap();
        let vouched = trusted.vouched(&[text(leaf.der())], NOW).unwrap();
        assert_eq!(
            vouched,
            PublicKey::from_spki(&spki(leaf.der()).unwrap()).unwrap()
        );
        let own = trusted.vouched(&[text(ca.der())], NOW).unwrap();
        assert_eq!(own, trusted.keys().unwrap()[0].0);
        let stranger = CertificateParams::new(vec!["signer".to_owned()]).unwrap();
        let stranger = stranger.self_signed(&leaf_key).unwrap();
        trusted.vouched(&[text(stranger.der())], NOW).unwrap_err();
        trusted.vouched(&[], NOW).unwrap_err();
        trusted.vouched(&["?".to_owned()], NOW).unwrap_err();
        Certificates::parse("").unwrap_err();
    }

    /// The id in `fixtures/schema1.json`.
    #[test]
    fn key_ids_are_those_of_libtrust() {
        let manifest: serde_json::Value =
            serde_json::from_str(include_str!("../../fixtures/schema1.json")).unwrap();
        let jwk = &manifest["signatures"][0]["header"]["jwk"];
        let key = PublicKey::parse(&serde_json::from_value(jwk.clone()).unwrap()).unwrap();
        let head = b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00";
        let spki = [head, key.bytes.as_slice()].concat();
        assert_eq!(libtrust_id(&spki), jwk["kid"].as_str().unwrap());
        assert_eq!(PublicKey::from_spki(&spki).unwrap(), key);
    }
}
