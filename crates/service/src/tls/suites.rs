//! Cipher suites by the names that IANA gave them.

use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, SupportedCipherSuite};

/// The suites with AES-128 and SHA-256.
const FASTEST: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
];

/// Whether the suite of TLS 1.2 called `name` is spoken.
pub fn speaks(name: &str) -> bool {
    ring::default_provider()
        .cipher_suites
        .iter()
        .any(|suite| is_old(suite) && is_called(suite.suite(), name))
}

/// ring with those suites of TLS 1.2 that are named; with all when none is. Those of TLS 1.3 are all safe, and stay.
/// The fastest ones are first: processors have instructions for SHA-256, few have them for SHA-384.
pub(super) fn provider(names: &[String]) -> CryptoProvider {
    let mut provider = ring::default_provider();
    if !names.is_empty() {
        provider.cipher_suites.retain(|suite| {
            !is_old(suite) || names.iter().any(|name| is_called(suite.suite(), name))
        });
    }
    let is_slower = |suite: &SupportedCipherSuite| !FASTEST.contains(&suite.suite());
    provider.cipher_suites.sort_by_key(is_slower);
    provider
}

/// Removes from `provider` the suites that are not `allowed`, either of TLS 1.3 or of TLS 1.2.
pub(super) fn keep(
    provider: &mut CryptoProvider,
    is_tls13: bool,
    allowed: impl Fn(&SupportedCipherSuite) -> bool,
) {
    let suites = &mut provider.cipher_suites;
    suites.retain(|suite| is_old(suite) == is_tls13 || allowed(suite));
}

fn is_old(suite: &SupportedCipherSuite) -> bool {
    suite.tls13().is_none()
}

fn is_called(suite: CipherSuite, name: &str) -> bool {
    suite.as_str() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_chosen_by_name() {
        let chacha = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
        assert!(speaks(chacha));
        for not_spoken in [
            "TLS_RSA_WITH_AES_128_CBC_SHA",
            "TLS13_AES_128_GCM_SHA256",
            "",
        ] {
            assert!(!speaks(not_spoken), "{not_spoken}");
        }
        let names = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            let old = provider(&names).cipher_suites;
            let (old, new): (Vec<_>, Vec<_>) = old.into_iter().partition(is_old);
            assert_eq!(new.len(), 3);
            old.len()
        };
        assert_eq!(names(&[chacha, "TLS_RSA_WITH_AES_128_CBC_SHA"]), 1);
        assert!(names(&[]) > 1);
    }

    #[test]
    fn the_fastest_suites_are_first() {
        let all = provider(&[]).cipher_suites;
        let first: Vec<_> = all.iter().map(SupportedCipherSuite::suite).collect();
        assert_eq!(first[..FASTEST.len()], FASTEST);
    }
}
