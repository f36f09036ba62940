//! Image references in Docker's form: the host may be omitted.

/// Longest name, host included. Units: bytes.
const MAX_NAME: usize = 255;
/// Longest tag. Units: bytes.
const MAX_TAG: usize = 128;
const DEFAULT_HOST: &str = "docker.io";
/// Digest algorithms, with the number of hexadecimal digits.
const ALGORITHMS: &[(&str, usize)] = &[("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// The reason why a text is not an image reference.
///
/// Source: github.com/distribution/reference, `normalize.go`, `regexp.go`.
pub(crate) fn pull_spec_flaw(text: &str) -> Option<&'static str> {
    if text.len() == 64 && text.bytes().all(is_hex) {
        return Some("64 hexadecimal digits are an image's id, not its name");
    }
    let (host, rest) = split_host(text);
    let (named, digest) = match rest.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (rest, None),
    };
    let (path, tag) = match named.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (named, None),
    };
    if path.chars().any(char::is_uppercase) {
        Some("the repository's name must be lowercase")
    } else if !is_host(host) || !path.split('/').all(is_component) {
        Some("expected [host[:port]/]repository[:tag][@digest]")
    } else if host.len() + 1 + path.len() > MAX_NAME {
        Some("its name is longer than 255 characters")
    } else if !tag.is_none_or(is_tag) {
        Some("a tag has at most 128 letters, digits, '_', '.' and '-', the first no '.' or '-'")
    } else if !digest.is_none_or(is_digest) {
        Some("a digest is sha256: and 64 hexadecimal digits in lower case")
    } else {
        None
    }
}

/// Splits off the host: a first component that cannot be a path.
fn split_host(text: &str) -> (&str, &str) {
    let is_host = |text: &str| {
        text.contains(['.', ':']) || text == "localhost" || text.chars().any(char::is_uppercase)
    };
    match text.split_once('/') {
        Some((host, rest)) if is_host(host) => (host, rest),
        _ => (DEFAULT_HOST, text),
    }
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let address = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_name = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let host_fits = match address {
        Some(address) => {
            !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':')
        }
        None => host.split('.').all(is_name),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    host_fits && port.is_none_or(is_port)
}

/// Whether `text` is letters and digits with single separators: `.`, `_`, `__`, or any number of `-`.
fn is_component(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_separator =
        |text: &str| ["", ".", "_", "__"].contains(&text) || text.bytes().all(|b| b == b'-');
    text.bytes().next().is_some_and(is_plain)
        && text.bytes().last().is_some_and(is_plain)
        && text
            .split(|c: char| u8::try_from(c).is_ok_and(is_plain))
            .all(is_separator)
}

fn is_tag(text: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.len() <= MAX_TAG
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|b| is_word(b) || b == b'.' || b == b'-')
}

fn is_digest(text: &str) -> bool {
    ALGORITHMS.iter().any(|(algorithm, digits)| {
        text.strip_prefix(algorithm)
            .and_then(|rest| rest.strip_prefix(':'))
            .is_some_and(|hex| hex.len() == *digits && hex.bytes().all(is_hex))
    })
}

fn is_hex(b: u8) -> bool {
    b.is_ascii_digit() || (b'a'..=b'f').contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_references_pass() {
        let hex = "0123456789abcdef".repeat(4);
        for right in [
            "a".to_owned(),
            "a/b".to_owned(),
            "quay.io/a/b:v1.0_x-y".to_owned(),
            "localhost/a".to_owned(),
            "Host/a".to_owned(),
            "[::1]:5000/a__b/c---d".to_owned(),
            format!("quay.io:443/a@sha256:{hex}"),
            format!("quay.io/a:tag@sha256:{hex}"),
            format!("quay.io/{hex}"),
            format!("{}:{}", "a", "t".repeat(128)),
        ] {
            assert_eq!(pull_spec_flaw(&right), None, "{right}");
        }
    }

    #[test]
    fn malformed_references_are_refused() {
        let hex = "0123456789abcdef".repeat(4);
        for wrong in [
            String::new(),
            hex.clone(),
            "quay.io/A".to_owned(),
            "quay.io/".to_owned(),
            "quay.io//a".to_owned(),
            "a b".to_owned(),
            "a/-b".to_owned(),
            "a/b..c".to_owned(),
            "a/b___c".to_owned(),
            "a/b._c".to_owned(),
            "a:".to_owned(),
            "a:.b".to_owned(),
            "a@sha256:abc".to_owned(),
            format!("a@sha256:{}", hex.to_uppercase()),
            format!("a@md5:{}", &hex[..32]),
            format!("a:{}", "t".repeat(129)),
            "a".repeat(256),
            "https://quay.io/a".to_owned(),
            "quay.io:x/a".to_owned(),
        ] {
            assert!(pull_spec_flaw(&wrong).is_some(), "{wrong}");
        }
    }
}
