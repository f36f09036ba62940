//! TLS of clients that trust given authorities alone, never those of the system.

use std::sync::Arc;

use crate::pem;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use secrecy::{ExposeSecret as _, SecretString};

/// A certificate or key that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {reason}")]
pub struct CredentialError {
    /// The part that is wrong.
    pub part: &'static str,
    /// Without the content.
    pub reason: String,
}

/// A certificate with its chain, and its key, as PEM.
#[derive(Debug)]
pub struct ClientIdentity<'a> {
    /// The certificate, before those of its issuers.
    pub certificate: &'a str,
    /// Its key.
    pub key: &'a SecretString,
}

/// The settings of a client of a server by one of the `authorities`, which are PEM.
///
/// Errors: a part is no PEM, or the key is another one.
pub fn client_config(
    authorities: &str,
    identity: Option<ClientIdentity<'_>>,
) -> Result<ClientConfig, CredentialError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authorities, "authorities")? {
        let added = roots.add(certificate);
        added.map_err(|error| unusable("authorities", &error))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable("TLS versions", &error))?
        .with_root_certificates(roots);
    let Some(identity) = identity else {
        return Ok(config.with_no_client_auth());
    };
    let chain = certificates(identity.certificate, "client certificate")?;
    // The error of a wrong key does not contain it.
    let key = pem::private_key(identity.key.expose_secret().as_bytes())
        .map_err(|error| unusable("client key", &error))?;
    let config = config.with_client_auth_cert(chain, key);
    config.map_err(|error| unusable("client key", &error))
}

fn certificates(
    text: &str,
    part: &'static str,
) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    pem::certificates(text.as_bytes()).map_err(|reason| unusable(part, &reason))
}

fn unusable(part: &'static str, reason: &dyn std::fmt::Display) -> CredentialError {
    let reason = reason.to_string();
    CredentialError { part, reason }
}

#[cfg(test)]
mod tests {
    use testkit::certificates::Authority;

    use super::*;

    /// Authorities, certificate and key.
    fn credentials() -> [String; 3] {
        let authority = Authority::new("etcd").unwrap();
        let (certificate, key) = authority.sign(&["127.0.0.1"]).unwrap();
        [authority.certificate, certificate, key]
    }

    fn configured(
        [authorities, certificate, key]: [String; 3],
    ) -> Result<ClientConfig, CredentialError> {
        let key = key.into();
        let certificate = certificate.as_str();
        client_config(
            &authorities,
            Some(ClientIdentity {
                certificate,
                key: &key,
            }),
        )
    }

    #[test]
    fn the_wrong_part_is_named_without_its_content() {
        let wrong = |at: usize, text: &str| {
            let mut credentials = credentials();
            text.clone_into(&mut credentials[at]);
            let error = configured(credentials).unwrap_err();
            assert!(!error.reason.contains("SECRET"), "{error}");
            error.part
        };
        let [authorities, _, another] = credentials();
        configured(credentials()).unwrap();
        client_config(&authorities, None).unwrap();
        assert_eq!(wrong(0, ""), "authorities");
        assert_eq!(wrong(1, "SECRET"), "client certificate");
        assert_eq!(wrong(2, "SECRET"), "client key");
        // A key of another certificate.
        assert_eq!(wrong(2, &another), "client key");
    }
}
