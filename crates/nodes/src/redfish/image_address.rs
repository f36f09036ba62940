//! Addresses of images as they may be shown: their queries and parts of their paths may be tokens.

use net::web::shown;
use url::Url;

/// Parts of paths of the image service, in front of tokens. Source: `rules::urls::download_url`.
const TOKEN_PLACES: [&str; 2] = ["/byapikey/", "/bytoken/"];
/// Shown in place of a secret.
pub(super) const HIDDEN: &str = "[hidden]";
/// Longest address that is shown. Units: characters.
const SHOWN: usize = 500;

/// A text without the tokens in paths of images. BMCs cut long texts: the last token may be a part of one.
pub fn without_image_tokens(text: &str) -> String {
    TOKEN_PLACES
        .iter()
        .fold(text.to_owned(), |text, place| hide(&text, place))
}

/// The token in the path of an image.
pub fn image_token(path: &str) -> Option<&str> {
    let mut places = TOKEN_PLACES.iter();
    let rest = places.find_map(|place| Some(path.split_once(place)?.1))?;
    Some(token(rest)).filter(|token| !token.is_empty())
}

/// An address as a BMC repeats it.
pub(super) fn shown_address(address: &str) -> String {
    let address = address.chars().filter(|c| !c.is_control());
    let address: String = address.take(SHOWN).collect();
    match Url::parse(&address) {
        Ok(url) => shown_url(&url),
        Err(_) => without_image_tokens(address.split('?').next().unwrap_or_default()),
    }
}

/// An address of ours.
pub(super) fn shown_url(url: &Url) -> String {
    without_image_tokens(&shown(url))
}

fn hide(text: &str, place: &str) -> String {
    let mut parts = text.split(place);
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        hidden.push_str(place);
        hidden.push_str(HIDDEN);
        hidden.push_str(&part[token(part).len()..]);
    }
    hidden
}

/// The token at the start of a text: the characters of JSON web tokens.
fn token(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    let token = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    // A full stop behind it ends a sentence.
    token.trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl-_";

    #[test]
    fn tokens_are_hidden() {
        let path = format!("/bytoken/{TOKEN}/4.18/x86_64/full.iso");
        assert_eq!(image_token(&path), Some(TOKEN));
        assert_eq!(image_token("/byid/1"), None);
        assert_eq!(image_token("/bytoken/"), None);
        let image = "http://i:8888/bytoken/[hidden]/4.18/x86_64/full.iso";
        assert_eq!(
            shown_address(&format!("http://a:b@i:8888{path}?c=d")),
            image
        );
        assert_eq!(
            shown_address(&format!("{path}?c=d")),
            &image["http://i:8888".len()..]
        );
        assert_eq!(shown_address(&"a".repeat(SHOWN + 1)).len(), SHOWN);
        for (text, shown) in [
            (
                "cannot load /byapikey/other.other.other/4.18, nor /bytoken/eyJh",
                "cannot load /byapikey/[hidden]/4.18, nor /bytoken/[hidden]",
            ),
            ("/bytoken/", "/bytoken/[hidden]"),
            ("not reachable", "not reachable"),
        ] {
            assert_eq!(without_image_tokens(text), shown);
        }
    }

    proptest! {
        #[test]
        fn no_part_of_a_token_is_shown(before in "\\PC{0,20}", cut in 1..TOKEN.len()) {
            let text = format!("{before}http://i/byapikey/{}", &TOKEN[..cut]);
            let shown = without_image_tokens(&text);
            // A full stop at the cut is none of the token's content.
            prop_assert!(shown.trim_end_matches('.').ends_with("/byapikey/[hidden]"), "{}", shown);
        }
    }
}
