//! The certificate of the client, for registries that request one.

use std::sync::Arc;

use model::Error;
use net::pem;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
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
        let chain = pem::certificates(&self.chain_pem).map_err(wrong)?;
        let key = pem::private_key(self.key_pem.expose_secret().as_bytes());
        let key = key.map_err(|reason| wrong(format!("its key: {reason}")))?;
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
            chain_pem: b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec(),
            key_pem: "hunter2".into(),
        };
        let provider = rustls::crypto::ring::default_provider();
        let error = identity.resolver(&provider).unwrap_err().to_string();
        assert!(error.contains("its key: no private key in it"), "{error}");
        assert!(!format!("{error}{identity:?}").contains("hunter2"));
    }
}
