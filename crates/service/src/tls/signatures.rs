//! Lists of signature algorithms in OpenSSL's syntax, and keys that sign by these alone.
//!
//! Source: OpenSSL, `SSL_CTX_set1_sigalgs_list(3)`.

use std::sync::Arc;

use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::sign::{Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};

use SignatureScheme as Scheme;

/// The supported algorithms by their names: those of OpenSSL, and the one of TLS 1.3.
static SUPPORTED: &[(SignatureScheme, &[&str])] = &[
    (
        Scheme::ECDSA_NISTP256_SHA256,
        &["ECDSA+SHA256", "ecdsa_secp256r1_sha256"],
    ),
    (
        Scheme::ECDSA_NISTP384_SHA384,
        &["ECDSA+SHA384", "ecdsa_secp384r1_sha384"],
    ),
    (Scheme::ED25519, &["ed25519"]),
    (
        Scheme::RSA_PSS_SHA256,
        &["RSA-PSS+SHA256", "PSS+SHA256", "rsa_pss_rsae_sha256"],
    ),
    (
        Scheme::RSA_PSS_SHA384,
        &["RSA-PSS+SHA384", "PSS+SHA384", "rsa_pss_rsae_sha384"],
    ),
    (
        Scheme::RSA_PSS_SHA512,
        &["RSA-PSS+SHA512", "PSS+SHA512", "rsa_pss_rsae_sha512"],
    ),
    (
        Scheme::RSA_PKCS1_SHA256,
        &["RSA+SHA256", "rsa_pkcs1_sha256"],
    ),
    (
        Scheme::RSA_PKCS1_SHA384,
        &["RSA+SHA384", "rsa_pkcs1_sha384"],
    ),
    (
        Scheme::RSA_PKCS1_SHA512,
        &["RSA+SHA512", "rsa_pkcs1_sha512"],
    ),
];

/// Starts of the names of further algorithms, which are not supported.
static UNSUPPORTED: &[&str] = &[
    "ECDSA+", "RSA+", "DSA+", "RSA-PSS+", "PSS+", "ecdsa_", "rsa_", "dsa_", "ed448", "gostr",
    "mldsa",
];

/// The supported ones of the algorithms that `text` lists.
///
/// Errors: an unknown name; none is supported.
pub(super) fn evaluate(text: &str) -> Result<Vec<SignatureScheme>, String> {
    let mut found = Vec::new();
    for name in text.split(':') {
        let name = name.trim_start_matches('?');
        let mut supported = SUPPORTED.iter();
        match supported.find(|(_, names)| names.iter().any(|one| one.eq_ignore_ascii_case(name))) {
            Some((scheme, _)) => found.push(*scheme),
            None if UNSUPPORTED.iter().any(|start| name.starts_with(start)) => {}
            None => return Err(format!("`{name}` is no signature algorithm")),
        }
    }
    if found.is_empty() {
        let supported = SUPPORTED.iter().map(|(_, names)| names[0]);
        let supported = supported.collect::<Vec<_>>().join(", ");
        return Err(format!(
            "it allows none of those that are supported: {supported}"
        ));
    }
    Ok(found)
}

/// A key that signs by the allowed algorithms alone.
#[derive(Debug)]
pub(super) struct RestrictedKey {
    pub(super) key: Arc<dyn SigningKey>,
    pub(super) allowed: Vec<SignatureScheme>,
}

impl RestrictedKey {
    /// Whether it can sign, in versions before TLS 1.3, too, or in that one alone.
    pub(super) fn signs(&self, only_tls13: bool) -> bool {
        // Source: RFC 8446, section 4.2.3: PKCS#1 has no place in signatures of handshakes.
        let is_of_pkcs1 = |scheme: &SignatureScheme| {
            matches!(
                *scheme,
                Scheme::RSA_PKCS1_SHA256 | Scheme::RSA_PKCS1_SHA384 | Scheme::RSA_PKCS1_SHA512
            )
        };
        let mut usable = self.allowed.clone();
        usable.retain(|scheme| !(only_tls13 && is_of_pkcs1(scheme)));
        self.key.choose_scheme(&usable).is_some()
    }
}

impl SigningKey for RestrictedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let mut offered = offered.to_vec();
        offered.retain(|scheme| self.allowed.contains(scheme));
        self.key.choose_scheme(&offered)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_evaluated_as_by_openssl() {
        let text = "ECDSA+SHA256:ed25519:RSA+SHA1:rsa_pss_rsae_sha512:ed448:?PSS+SHA256";
        let expected = [
            Scheme::ECDSA_NISTP256_SHA256,
            Scheme::ED25519,
            Scheme::RSA_PSS_SHA512,
            Scheme::RSA_PSS_SHA256,
        ];
        assert_eq!(evaluate(text).unwrap(), expected);
        let unknown = evaluate("RSA+SHA256:FOO").unwrap_err();
        assert!(unknown.starts_with("`FOO` is no"), "{unknown}");
        let none = evaluate("ECDSA+SHA512:RSA+SHA1").unwrap_err();
        assert!(none.contains("ECDSA+SHA256, ECDSA+SHA384"), "{none}");
    }
}
