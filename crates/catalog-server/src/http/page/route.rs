//! Paths of pages. Names come from catalogs, which are untrusted: percent-encoded.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to encode in a path segment. Dots, too: a segment of dots alone would leave its folder.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// A page by its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageRoute<'a> {
    Catalogs,
    Catalog(&'a str),
    Package(&'a str, &'a str),
    Channel(&'a str, &'a str, &'a str),
    Bundle(&'a str, &'a str, &'a str),
}

impl PageRoute<'_> {
    /// The path.
    pub(super) fn path(self) -> String {
        let parts: &[&str] = match &self {
            Self::Catalogs => return "/ui/".to_owned(),
            Self::Catalog(catalog) => return format!("/ui/{catalog}/"),
            Self::Package(catalog, package) => &[catalog, "package", package],
            Self::Channel(catalog, package, channel) => &[catalog, "channel", package, channel],
            Self::Bundle(catalog, package, bundle) => &[catalog, "bundle", package, bundle],
        };
        let mut path = String::from("/ui");
        for part in parts {
            path.push('/');
            path.extend(utf8_percent_encode(part, ESCAPED));
        }
        path
    }

    /// Its label in a breadcrumb.
    pub(super) fn label(self) -> String {
        match self {
            Self::Catalogs => "Catalogs".to_owned(),
            Self::Catalog(name)
            | Self::Package(_, name)
            | Self::Channel(.., name)
            | Self::Bundle(.., name) => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_escape_their_path_segment() {
        let path = PageRoute::Channel("c", "../a", "x/y?z#\"<>").path();
        assert_eq!(path, "/ui/c/channel/%2E%2E%2Fa/x%2Fy%3Fz%23%22%3C%3E");
        assert_eq!(
            PageRoute::Package("c", "3scale-operator").path(),
            "/ui/c/package/3scale-operator"
        );
    }
}
