//! Lists of cipher suites in OpenSSL's syntax, for the suites of TLS 1.2 that are supported.
//!
//! Source: OpenSSL, `ciphers(1)`.

use rustls::CipherSuite;

use CipherSuite as Suite;

/// The supported suites, as OpenSSL calls them, and the words that stand for each.
static SUITES: &[(CipherSuite, &str, &[&str])] = &[
    (
        Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        &[
            "aECDSA",
            "ECDSA",
            "AES",
            "AES256",
            "AESGCM",
            "FIPS",
            "SUITEB128",
            "SUITEB192",
        ],
    ),
    (
        Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-RSA-AES256-GCM-SHA384",
        &["aRSA", "AES", "AES256", "AESGCM", "FIPS"],
    ),
    (
        Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        &[
            "aECDSA",
            "ECDSA",
            "AES",
            "AES128",
            "AESGCM",
            "FIPS",
            "SUITEB128",
            "SUITEB128ONLY",
        ],
    ),
    (
        Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-RSA-AES128-GCM-SHA256",
        &["aRSA", "AES", "AES128", "AESGCM", "FIPS"],
    ),
    (
        Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        &["aECDSA", "ECDSA", "CHACHA20"],
    ),
    (
        Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-RSA-CHACHA20-POLY1305",
        &["aRSA", "CHACHA20"],
    ),
];

/// Words that stand for every supported suite.
static WORDS_OF_ALL: &[&str] = &[
    "ALL", "DEFAULT", "HIGH", "ECDHE", "EECDH", "kECDHE", "kEECDH", "AEAD", "TLSv1.2",
];

/// The suites that `text` allows. Their order has no meaning here, and neither has that of `text`.
pub(super) fn evaluate(text: &str) -> Vec<CipherSuite> {
    let (mut allowed, mut removed) = (Vec::new(), Vec::new());
    for element in text.split([':', ',', ';', ' ']) {
        let (action, words) = match element.split_at_checked(1) {
            Some((action @ ("!" | "-"), words)) => (action, words),
            // They order suites, or set a level of security that all of these have.
            Some(("+" | "@", _)) | None => continue,
            Some(_) => ("", element),
        };
        let is_named = |(_, name, own): &&(CipherSuite, &str, &[&str])| matches(words, name, own);
        for (suite, ..) in SUITES.iter().filter(is_named) {
            if action.is_empty() && !removed.contains(suite) && !allowed.contains(suite) {
                allowed.push(*suite);
            }
            if !action.is_empty() {
                allowed.retain(|one| one != suite);
            }
            if action == "!" {
                removed.push(*suite);
            }
        }
    }
    allowed
}

/// The supported suites, as OpenSSL calls them.
pub(super) fn supported() -> Vec<&'static str> {
    SUITES.iter().map(|(_, name, _)| *name).collect()
}

/// Whether all of `words`, joined by `+`, stand for the suite called `name` with words of its `own`.
fn matches(words: &str, name: &str, own: &[&str]) -> bool {
    words
        .split('+')
        .all(|word| word == name || own.contains(&word) || WORDS_OF_ALL.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_evaluated_as_by_openssl() {
        let name = |suite: &CipherSuite| SUITES.iter().find(|it| it.0 == *suite).unwrap().1;
        let ecdsa = "ECDHE-ECDSA-AES128-GCM-SHA256";
        for (text, expected) in [
            (ecdsa, vec![ecdsa]),
            ("kEECDH+aECDSA+AES128", vec![ecdsa]),
            ("AES128-SHA:ECDSA+AES128", vec![ecdsa]),
            ("SUITEB128:-AES256", vec![ecdsa]),
            // A suite that is removed by `!` does not return, one by `-` does.
            ("!AES256:SUITEB128", vec![ecdsa]),
            ("-ECDSA:SUITEB128ONLY:+HIGH:@STRENGTH", vec![ecdsa]),
            ("HIGH:!aRSA:!CHACHA20:!AES256", vec![ecdsa]),
            ("RSA:AES128-SHA:FOO:SHA384:!HIGH", vec![]),
        ] {
            let found: Vec<_> = evaluate(text).iter().map(name).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(evaluate("HIGH:!aNULL:!MD5").len(), SUITES.len());
    }
}
