//! Addresses of images as they may be shown: their queries and parts of their paths may be tokens.

use net::masks::masked;
use net::web::shown;
use url::Url;

pub(super) use net::masks::HIDDEN;

/// Longest address that is shown. Units: characters.
const SHOWN: usize = 500;

/// An address as a BMC repeats it.
pub(super) fn shown_address(address: &str) -> String {
    let address = address.chars().filter(|c| !c.is_control());
    let address: String = address.take(SHOWN).collect();
    match Url::parse(&address) {
        Ok(url) => shown(&url),
        Err(_) => masked(address.split('?').next().unwrap_or_default()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_hidden() {
        let path = "/bytoken/eyJhb.eyJz.c2l-_/4.18/x86_64/full.iso";
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
    }
}
