//! OS images on offer: those of the settings, else those of the registry.

use model::versions::{OfferedOsImage, OsImage};
use url::Url;

use super::offer::CurrentOffer;

/// All OS images; the addresses of the settings without secrets.
pub(crate) fn list(offer: &CurrentOffer) -> Vec<OfferedOsImage> {
    let own = offer.own_os_images().into_iter();
    let own = own.map(|image| OfferedOsImage {
        image: OsImage {
            url: without_secrets(&image.url),
            ..image
        },
        is_found: false,
    });
    // Before the first reading, there are none to show.
    let held = offer.held_os_images().unwrap_or_default().into_iter();
    let held = held.map(|image| OfferedOsImage {
        image,
        is_found: true,
    });
    own.chain(held).collect()
}

/// An address of the settings, whose login and query may be secrets.
fn without_secrets(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return String::new();
    };
    // Fails for addresses that cannot have one.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_settings_are_shown_without_secrets() {
        for (address, shown) in [
            ("https://a:b@c.example/d.iso?e=f", "https://c.example/d.iso"),
            ("file:///images/d.iso", "file:///images/d.iso"),
            ("oci://c.example:5000/d:e", "oci://c.example:5000/d:e"),
            ("d.iso", ""),
        ] {
            assert_eq!(without_secrets(address), shown);
        }
    }
}
