//! Addresses of pages. Names are of whoever wrote the catalog: any text, escaped.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Stays as it is between slashes. A name of dots alone would be taken for a step up the path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// What an address shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageRoute<'a> {
    Catalogs,
    Catalog(&'a str),
    Package(&'a str, &'a str),
    Channel(&'a str, &'a str, &'a str),
    Bundle(&'a str, &'a str, &'a str),
}

impl PageRoute<'_> {
    /// The address.
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

    /// What it is called on the way to what is below.
    pub(super) fn step(self) -> String {
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
    fn names_cannot_leave_their_place() {
        let path = PageRoute::Channel("c", "../a", "x/y?z#\"<>").path();
        assert_eq!(path, "/ui/c/channel/%2E%2E%2Fa/x%2Fy%3Fz%23%22%3C%3E");
        assert_eq!(
            PageRoute::Package("c", "3scale-operator").path(),
            "/ui/c/package/3scale-operator"
        );
    }
}
