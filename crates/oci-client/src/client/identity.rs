//! The certificate of the client, for registries that request one.

use std::sync::Arc;

use model::Error;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use secrecy::{ExposeSecret as _, SecretString};

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// With the certificates of its issuers.
    pub chain_pem: Vec<u8>,
    pub key_pem: SecretString,
}

impl ClientIdentity {
    /// Errors: Invalid – the certificate or its key cannot be read, or they do not fit together.
    pub(super) fn resolver(
        &self,
        provider: &CryptoProvider,
    ) -> Result<Arc<dyn ResolvesClientCert>, Error> {
        let wrong = |reason: String| Error::invalid("certificate of the client", reason);
        let chain = CertificateDer::pem_slice_iter(&self.chain_pem).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|e| wrong(format!("expected PEM: {e}")))?;
        // The error of a key may quote it.
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.expose_secret().as_bytes());
        let key = key.map_err(|_| wrong("expected its key as PEM".to_owned()))?;
        let certified = CertifiedKey::from_der(chain, key, provider);
        let certified = certified.map_err(|e| wrong(e.to_string()))?;
        Ok(Arc::new(SingleCertAndKey::from(certified)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_repeat_the_key() {
        let identity = ClientIdentity {
            chain_pem: Vec::new(),
            key_pem: "hunter2".into(),
        };
        let provider = rustls::crypto::ring::default_provider();
        let error = identity.resolver(&provider).unwrap_err().to_string();
        assert!(error.contains("expected its key as PEM"), "{error}");
        assert!(!format!("{error}{identity:?}").contains("hunter2"));
    }
}
