//! Paths of requests, below the root of the static files.
//!
//! The one invariant: a parsed path has no empty component, no `.` and no `..`, no NUL and no slash in a component. So it
//! names something at or below the root, except through symbolic links, which [`super::root`] restricts.

use std::fmt::Write as _;

/// A path below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestPath {
    /// Components, separated by slashes; empty for the root.
    relative: Vec<u8>,
    /// Whether a slash ends it, as for folders.
    has_slash: bool,
}

/// A path that names nothing in any folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathError {
    #[error("the path does not begin with a slash")]
    NotAbsolute,
    #[error("a % in the path is not followed by two hexadecimal digits")]
    Escape,
    #[error("%00 in the path: no name has a NUL")]
    Nul,
    #[error("%2F in the path: no name has a slash")]
    Slash,
    #[error(".. in the path leads above the root")]
    AboveRoot,
}

impl RequestPath {
    /// Parses the path of a URL: decodes `%` escapes, merges slashes, resolves `.` and `..`.
    pub(super) fn parse(raw: &str) -> Result<Self, PathError> {
        let raw = raw.as_bytes();
        let components = raw.strip_prefix(b"/").ok_or(PathError::NotAbsolute)?;
        let mut relative = Vec::with_capacity(raw.len());
        let mut has_slash = true;
        for component in components.split(|byte| *byte == b'/') {
            let start = relative.len();
            if start > 0 {
                relative.push(b'/');
            }
            let name = relative.len();
            decode(component, &mut relative)?;
            has_slash = true;
            match &relative[name..] {
                b"" | b"." => relative.truncate(start),
                b".." if start == 0 => return Err(PathError::AboveRoot),
                b".." => {
                    let parent = relative[..start].iter().rposition(|byte| *byte == b'/');
                    relative.truncate(parent.unwrap_or(0));
                }
                _ => has_slash = false,
            }
        }
        Ok(Self {
            relative,
            has_slash,
        })
    }

    /// The components, separated by slashes; empty for the root.
    pub(super) fn relative(&self) -> &[u8] {
        &self.relative
    }

    /// Whether a slash ends it.
    pub(super) fn has_slash(&self) -> bool {
        self.has_slash
    }

    /// The last component; none for the root.
    pub(super) fn name(&self) -> Option<&[u8]> {
        self.components().next_back()
    }

    pub(super) fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        let components = self.relative.split(|byte| *byte == b'/');
        components.filter(|component| !component.is_empty())
    }

    /// The file with another last component.
    pub(super) fn sibling(&self, name: &[u8]) -> Self {
        let folder = self.relative.iter().rposition(|byte| *byte == b'/');
        let mut relative = self.relative[..folder.map_or(0, |at| at + 1)].to_vec();
        relative.extend_from_slice(name);
        Self {
            relative,
            has_slash: false,
        }
    }

    /// The file `name` in this folder.
    pub(super) fn child(&self, name: &[u8]) -> Self {
        let mut relative = self.relative.clone();
        if !relative.is_empty() {
            relative.push(b'/');
        }
        relative.extend_from_slice(name);
        Self {
            relative,
            has_slash: false,
        }
    }

    /// Path of its URL as a folder: one slash at each end. No host can be read into it, since no component is empty.
    pub(super) fn folder_url(&self) -> String {
        let mut url = "/".to_owned();
        for component in self.components() {
            encode(component, &mut url);
            url.push('/');
        }
        url
    }
}

/// Appends the bytes of a component.
fn decode(component: &[u8], decoded: &mut Vec<u8>) -> Result<(), PathError> {
    let mut rest = component.iter();
    while let Some(byte) = rest.next() {
        let byte = if *byte == b'%' {
            let mut digit = || {
                let digit = char::from(*rest.next()?);
                u8::try_from(digit.to_digit(16)?).ok()
            };
            let digits = digit().zip(digit());
            let (high, low) = digits.ok_or(PathError::Escape)?;
            high << 4 | low
        } else {
            *byte
        };
        match byte {
            0 => return Err(PathError::Nul),
            b'/' => return Err(PathError::Slash),
            byte => decoded.push(byte),
        }
    }
    Ok(())
}

/// Appends a component as a part of a URL. Only unreserved characters stay, so that no name reads as a scheme, a host or
/// a query. Source: RFC 3986 §2.3.
pub(super) fn encode(component: &[u8], url: &mut String) {
    for byte in component {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                url.push(char::from(*byte));
            }
            // Writing to a string cannot fail.
            byte => write!(url, "%{byte:02X}").unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_resolved_below_the_root() {
        for (raw, relative, has_slash) in [
            ("/", "", true),
            ("//", "", true),
            ("/a", "a", false),
            ("/a/", "a", true),
            ("//a///b//", "a/b", true),
            ("/a/./b", "a/b", false),
            ("/a/..", "", true),
            ("/a/../b", "b", false),
            ("/a/b/../c", "a/c", false),
            ("/a/%2e%2e/b", "b", false),
            ("/a/.", "a", true),
            ("/a%20b%25", "a b%", false),
            ("/...", "...", false),
            ("/a+b", "a+b", false),
            ("/%C3%A9", "é", false),
        ] {
            let path = RequestPath::parse(raw).unwrap();
            assert_eq!(path.relative(), relative.as_bytes(), "{raw}");
            assert_eq!(path.has_slash(), has_slash, "{raw}");
        }
    }

    #[test]
    fn paths_that_name_nothing_are_refused() {
        for (raw, error) in [
            ("", PathError::NotAbsolute),
            ("*", PathError::NotAbsolute),
            ("/..", PathError::AboveRoot),
            ("/a/../..", PathError::AboveRoot),
            ("/%2e%2E/etc", PathError::AboveRoot),
            ("/.%2e/etc", PathError::AboveRoot),
            ("/a%00b", PathError::Nul),
            ("/a%2fb", PathError::Slash),
            ("/..%2f..", PathError::Slash),
            ("/%zz", PathError::Escape),
            ("/%4", PathError::Escape),
            ("/%", PathError::Escape),
            ("/%+1", PathError::Escape),
        ] {
            assert_eq!(RequestPath::parse(raw), Err(error), "{raw}");
        }
    }

    #[test]
    fn a_redirect_never_names_a_host() {
        for (raw, url) in [
            ("//evil.test/x", "/evil.test/x/"),
            ("/\\evil.test", "/%5Cevil.test/"),
            ("/http:%5c%5cevil", "/http%3A%5C%5Cevil/"),
            ("/a%0d%0ab", "/a%0D%0Ab/"),
            ("/", "/"),
        ] {
            assert_eq!(RequestPath::parse(raw).unwrap().folder_url(), url);
        }
    }

    proptest! {
        #[test]
        fn parsing_never_leaves_the_root(raw in "/([.%2eEfF0/a]|\\PC){0,40}") {
            if let Ok(path) = RequestPath::parse(&raw) {
                for component in path.components() {
                    prop_assert!(!matches!(component, b"" | b"." | b".."), "{raw}");
                    prop_assert!(!component.contains(&0) && !component.contains(&b'/'));
                }
                prop_assert!(!path.relative().starts_with(b"/"));
                let url = path.folder_url();
                prop_assert!(!url.starts_with("//"), "{url}");
                let again = RequestPath::parse(&url).unwrap();
                prop_assert_eq!(again.relative(), path.relative());
            }
        }

        #[test]
        fn every_name_has_a_url(name in proptest::collection::vec(1_u8.., 1..40)) {
            prop_assume!(!name.contains(&b'/') && name != b"." && name != b"..");
            let mut url = "/".to_owned();
            encode(&name, &mut url);
            let path = RequestPath::parse(&url).unwrap();
            prop_assert_eq!(path.name(), Some(name.as_slice()));
        }
    }
}
