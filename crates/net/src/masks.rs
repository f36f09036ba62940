//! Secrets in URLs of the site: one table of the places where they are, for routes, logs, errors and labels.

use std::borrow::Cow;

/// Parts of paths in front of a token: those of the image service's routes.
pub const TOKEN_PATHS: [&str; 2] = ["/byapikey/", "/bytoken/"];
/// Parameters of queries, and fields of forms, with a secret.
const SECRET_PARAMETERS: [&str; 9] = [
    "api_key",
    "image_token",
    "signature",
    "access_token",
    "refresh_token",
    "id_token",
    "client_secret",
    "code",
    "code_verifier",
];
/// Text in place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// `text` without the secrets of the URLs in it. Others may have cut it: the last secret may be a part of one.
pub fn masked(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    for path in TOKEN_PATHS {
        if masked.contains(path) {
            masked = Cow::Owned(hide(&masked, path));
        }
    }
    if masked.contains('=') {
        for parameter in SECRET_PARAMETERS {
            for separator in ["?", "&"] {
                let place = format!("{separator}{parameter}=");
                if masked.contains(&place) {
                    masked = Cow::Owned(hide(&masked, &place));
                }
            }
        }
    }
    masked
}

/// The token in a path.
pub fn token(path: &str) -> Option<&str> {
    let mut places = TOKEN_PATHS.iter();
    let rest = places.find_map(|place| Some(path.split_once(place)?.1))?;
    Some(secret(rest)).filter(|token| !token.is_empty())
}

fn hide(text: &str, place: &str) -> String {
    let mut parts = text.split(place);
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        hidden.push_str(place);
        hidden.push_str(HIDDEN);
        hidden.push_str(&part[secret(part).len()..]);
    }
    hidden
}

/// The secret at the start of a text: up to the next part of the URL, or the end of the URL in a sentence or a quote.
fn secret(text: &str) -> &str {
    let is_end = |c: char| c.is_whitespace() || c.is_control() || "/?&#\"'\\<>,;()".contains(c);
    let secret = text.split(is_end).next().unwrap_or_default();
    // A full stop or a colon behind it belongs to the sentence.
    secret.trim_end_matches(['.', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl-_";

    #[test]
    fn secrets_are_masked() {
        for (text, expected) in [
            (
                "/bytoken/TOKEN/4.18/x86_64/full.iso",
                "/bytoken/[hidden]/4.18/x86_64/full.iso",
            ),
            ("/byapikey/TOKEN", "/byapikey/[hidden]"),
            ("\"/byapikey/TOKEN\"", "\"/byapikey/[hidden]\""),
            (
                "cannot load http://i/bytoken/TOKEN.",
                "cannot load http://i/bytoken/[hidden].",
            ),
            ("/bytoken/a%2Eb%2Fc/4.18", "/bytoken/[hidden]/4.18"),
            ("/bytoken/", "/bytoken/[hidden]"),
            ("/a?b=1&api_key=TOKEN&c=2", "/a?b=1&api_key=[hidden]&c=2"),
            (
                "/a?image_token=TOKEN: refused",
                "/a?image_token=[hidden]: refused",
            ),
            (
                "/a?expires=1&signature=TOKEN\\\"",
                "/a?expires=1&signature=[hidden]\\\"",
            ),
            (
                "error_code=1 and zip code=2, ?codes=3",
                "error_code=1 and zip code=2, ?codes=3",
            ),
            ("/byid/1/4.18", "/byid/1/4.18"),
        ] {
            let text = text.replace("TOKEN", TOKEN);
            assert_eq!(masked(&text), expected, "{text}");
            assert_eq!(masked(&masked(&text)), expected);
        }
    }

    #[test]
    fn no_part_of_a_token_is_shown() {
        for cut in 1..TOKEN.len() {
            let text = format!("http://i/byapikey/{}", &TOKEN[..cut]);
            let shown = masked(&text).trim_end_matches('.').to_owned();
            assert_eq!(shown, "http://i/byapikey/[hidden]");
        }
    }

    #[test]
    fn tokens_are_found_in_paths() {
        assert_eq!(token(&format!("/bytoken/{TOKEN}/4.18")), Some(TOKEN));
        assert_eq!(token("/byid/1"), None);
        assert_eq!(token("/bytoken/"), None);
    }
}
