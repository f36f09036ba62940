//! Links in answers: paths of the same origin.

use std::fmt;

use url::Url;

/// Longest link that is followed. Units: bytes.
const LINK_LIMIT: usize = 2048;

/// A path of the BMC, with its query.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RedfishPath(String);

impl RedfishPath {
    /// The path of a link, which is relative to `origin` or a URL of it.
    ///
    /// Errors: the link, fit for messages.
    pub(super) fn parse(link: &str, origin: &Url) -> Result<Self, String> {
        let foreign = || {
            let named = Url::parse(link).map(|url| net::web::shown(&url));
            let named = named.unwrap_or_else(|_| link.split('?').next().unwrap_or("").to_owned());
            named
                .chars()
                .filter(|c| !c.is_control())
                .take(100)
                .collect()
        };
        let is_absolute = link.starts_with('/') || link.starts_with("http");
        if !is_absolute || link.len() > LINK_LIMIT {
            return Err(foreign());
        }
        let url = origin.join(link).map_err(|_| foreign())?;
        let has_login = !url.username().is_empty() || url.password().is_some();
        // Compared after joining: "//host", "/\host" and others are hosts to the parser of URLs.
        if url.origin() != origin.origin() || has_login {
            return Err(foreign());
        }
        let query = url.query().map(|query| format!("?{query}"));
        Ok(Self(format!("{}{}", url.path(), query.unwrap_or_default())))
    }

    /// The path of a `Location` header. BMCs behind an address translation send their inner address: it is not used.
    pub(super) fn of_location(location: &str, origin: &Url) -> Option<Self> {
        let url = origin.join(location).ok()?;
        let query = url.query().map(|query| format!("?{query}"));
        let path = format!("{}{}", url.path(), query.unwrap_or_default());
        (path.starts_with('/') && path.len() <= LINK_LIMIT).then_some(Self(path))
    }

    /// A path of this program's own, which starts with a slash.
    pub(super) fn own(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// A path below this one.
    pub(super) fn below(&self, name: &str) -> Self {
        Self(format!("{}/{name}", self.0.trim_end_matches('/')))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL at `origin`. Not joined: a path that starts with two slashes would become a host.
    pub(super) fn at(&self, origin: &Url) -> Url {
        let mut url = origin.clone();
        let (path, query) = match self.0.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.0.as_str(), None),
        };
        url.set_path(path);
        url.set_query(query);
        url
    }

    /// Whether both name one resource: a slash at the end makes no other.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.0.trim_end_matches('/') == other.0.trim_end_matches('/')
    }

    /// The last element.
    pub(super) fn name(&self) -> &str {
        let path = self.0.split('?').next().unwrap_or_default();
        path.trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default()
    }
}

impl fmt::Debug for RedfishPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for RedfishPath {
    /// Without the query, which may hold a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.split('?').next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn origin() -> Url {
        "https://10.0.0.1:8443".parse().unwrap()
    }

    #[test]
    fn links_stay_at_their_origin() {
        for (link, expected) in [
            ("/redfish/v1/Systems/1", Some("/redfish/v1/Systems/1")),
            ("/redfish/v1/Fans#/Fans/0", Some("/redfish/v1/Fans")),
            ("/redfish/v1/a?$skip=2", Some("/redfish/v1/a?$skip=2")),
            (
                "https://10.0.0.1:8443/redfish/v1/T/1",
                Some("/redfish/v1/T/1"),
            ),
            ("https://10.0.0.1/redfish/v1/T/1", None),
            ("http://10.0.0.1:8443/redfish/v1/T/1", None),
            ("https://root:secret@10.0.0.1:8443/a", None),
            ("https://evil.example/redfish/v1/T/1", None),
            ("//evil.example/a", None),
            ("/\\evil.example/a", None),
            ("/\t/evil.example/a", None),
            ("Systems/1", None),
            ("file:///etc/passwd", None),
            ("", None),
        ] {
            let path = RedfishPath::parse(link, &origin());
            assert_eq!(
                path.as_ref().map(RedfishPath::as_str).ok(),
                expected,
                "{link}"
            );
        }
    }

    #[test]
    fn locations_are_paths_at_the_origin() {
        for (location, expected) in [
            ("/redfish/v1/T/1", Some("/redfish/v1/T/1")),
            (
                "https://192.168.0.120/redfish/v1/T/1?x=2",
                Some("/redfish/v1/T/1?x=2"),
            ),
            ("https://evil.example", Some("/")),
            ("mailto:a", None),
            ("https://", None),
        ] {
            let path = RedfishPath::of_location(location, &origin());
            assert_eq!(
                path.as_ref().map(RedfishPath::as_str),
                expected,
                "{location}"
            );
            if let Some(path) = path {
                assert_eq!(path.at(&origin()).origin(), origin().origin());
            }
        }
    }

    #[test]
    fn refused_links_are_shown_without_credentials() {
        let shown = RedfishPath::parse("https://u:secret@evil.example/a?token=secret", &origin());
        assert_eq!(shown, Err("https://evil.example/a".to_owned()));
    }

    #[test]
    fn long_links_are_refused() {
        let link = |length: usize| format!("/{}", "a".repeat(length - 1));
        assert!(RedfishPath::parse(&link(LINK_LIMIT), &origin()).is_ok());
        assert!(RedfishPath::parse(&link(LINK_LIMIT + 1), &origin()).is_err());
    }

    proptest! {
        #[test]
        fn no_link_leads_elsewhere(
            start in "(https://10\\.0\\.0\\.1:8443)?",
            rest in "[/\\\\a-z@:?#.\\t ]{0,40}",
        ) {
            if let Ok(path) = RedfishPath::parse(&format!("{start}{rest}"), &origin()) {
                let url = path.at(&origin());
                prop_assert_eq!(url.origin(), origin().origin());
                prop_assert_eq!(url.username(), "");
            }
        }
    }
}
