//! Names of images in the target.
//!
//! Source: the peer's v1, which users' policies and scripts depend on.

pub mod catalog;
pub mod v2;

use model::Error;
use oci::{Reference, Repository, Tag, Transport};

/// Registry of references without a host, and namespace of those without one. Source: container tools.
const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_NAMESPACE: &str = "library";

/// The naming scheme of images in the target. Users' policies and scripts depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Naming {
    /// The peer's v1.
    #[default]
    V1,
    /// The peer's v2: see [`v2`].
    V2,
}

/// A reference in a configuration or chart: without a host it is of docker.io.
///
/// Errors: Invalid – it is malformed.
pub fn reference(text: &str) -> Result<Reference, Error> {
    let text = text.trim();
    let text = match Transport::split(text) {
        (Some(Transport::Docker), reference) => reference,
        _ => text,
    };
    text.parse().or_else(|error| {
        let whole = match text.split_once('/') {
            Some(_) => format!("{DEFAULT_REGISTRY}/{text}"),
            None => format!("{DEFAULT_REGISTRY}/{DEFAULT_NAMESPACE}/{text}"),
        };
        whole.parse().map_err(|_| error)
    })
}

/// Tag of an image that its source names by digest: FNV-1a (32 bit) over the whole reference, in hexadecimal without
/// leading zeros.
pub fn tag_of_pinned(source: &Reference) -> Tag {
    fitting(&format!("{:x}", fnv1a(source.to_string().as_bytes())))
}

/// Hexadecimal digits in the tag of an image of a layout's catalog.
pub const LAYOUT_DIGITS: usize = 6;

/// The first `length` hexadecimal digits of a digest: 6 for images of an `oci://` catalog, 8 where several images of a
/// repository would all be `latest`.
pub fn tag_of_digest(digest: &oci::Digest, length: usize) -> Tag {
    fitting(digest.hex().get(..length).unwrap_or(digest.hex()))
}

/// The repository of an image below `namespace`, which may be empty.
///
/// Beyond `max_components` in all (0 for no limit), the last ones are joined by dashes.
///
/// Errors: Invalid – the namespace leaves no room, or the name is too long.
pub fn repository(
    namespace: &str,
    name: &Repository,
    max_components: usize,
) -> Result<Repository, Error> {
    let whole = match namespace {
        "" => name.to_string(),
        namespace => format!("{namespace}/{name}"),
    };
    if max_components == 0 {
        return whole.parse();
    }
    let own = namespace.split('/').filter(|part| !part.is_empty()).count();
    if own >= max_components {
        let reason = format!(
            "{max_components} leaves no room below {namespace:?}, which has {own} components: choose at least {}",
            own + 1
        );
        return Err(Error::invalid("max-nested-paths", reason));
    }
    let parts: Vec<&str> = whole.split('/').collect();
    if parts.len() <= max_components {
        return whole.parse();
    }
    let (kept, joined) = parts.split_at(max_components - 1);
    let joined = joined.join("-");
    let parts: Vec<&str> = kept.iter().copied().chain([joined.as_str()]).collect();
    parts.join("/").parse()
}

fn fnv1a(bytes: &[u8]) -> u32 {
    const OFFSET: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(PRIME);
    bytes.iter().fold(OFFSET, step)
}

fn fitting(digits: &str) -> Tag {
    digits.parse().expect("hexadecimal digits are a tag")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_fnv() {
        // Vectors of the function's authors.
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn tags_lose_leading_zeros() {
        let digest = oci::Digest::sha256(b"");
        let named = |n: u32| -> Reference { format!("r:1/a{n}@{digest}").parse().unwrap() };
        let short = (0..1000)
            .map(named)
            .find(|it| tag_of_pinned(it).as_str().len() < 8);
        let short = short.expect("one in sixteen");
        assert!(!tag_of_pinned(&short).as_str().starts_with('0'));
        assert_eq!(tag_of_digest(&digest, 6).as_str(), "e3b0c4");
    }

    #[test]
    fn a_namespace_called_oci_is_of_the_default_registry() {
        for name in ["docker://oci/repo:tag", "oci/repo:tag"] {
            let reference = reference(name).unwrap();
            assert_eq!(reference.to_string(), "docker.io/oci/repo:tag", "{name}");
            assert_eq!(reference.registry.folder(), None, "{name}");
        }
        let hosted = reference("docker://oci:5000/repo:tag").unwrap();
        assert_eq!(hosted.registry.host(), Some("oci:5000"));
    }

    #[test]
    fn deep_names_are_joined() {
        let name: Repository = "globex/addons/deep/x".parse().unwrap();
        let of = |namespace, limit| repository(namespace, &name, limit).map(|it| it.to_string());
        assert_eq!(of("np/y", 0).unwrap(), "np/y/globex/addons/deep/x");
        assert_eq!(of("np/y", 3).unwrap(), "np/y/globex-addons-deep-x");
        assert_eq!(of("np/y", 9).unwrap(), "np/y/globex/addons/deep/x");
        assert_eq!(of("", 1).unwrap(), "globex-addons-deep-x");
        assert!(
            of("np/y", 2)
                .unwrap_err()
                .to_string()
                .contains("at least 3")
        );
    }
}
