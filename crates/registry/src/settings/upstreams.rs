//! Upstreams as settings name them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use oci::Repository;
use service::settings::{Secret, Setting, Shape};

use super::kinds::{items, nothing};

/// A registry to fetch from.
#[derive(Debug, Clone, Default)]
pub struct UpstreamConfig {
    /// Repositories below this name come from there; without it all do.
    pub prefix: Option<Repository>,
    /// `https://HOST[:PORT]`, or `http://` for one without TLS.
    pub url: String,
    /// User of the upstream.
    pub username: Option<String>,
    /// The password or token.
    pub password: Option<Secret>,
    /// A file that holds the password.
    pub passwordfile: Option<PathBuf>,
    /// PEM file of authorities that are trusted besides the system's.
    pub cafile: Option<PathBuf>,
}

/// Several of them.
#[derive(Debug, Clone, Default)]
pub struct UpstreamList(pub Vec<UpstreamConfig>);

impl Setting for UpstreamList {
    const EXPECTED: &'static str =
        "list of url, prefix, username, password or passwordfile, cafile";
    const SHAPE: Shape = Shape::Parts;
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        nothing(text)
    }

    fn parse_parts(parts: &BTreeMap<&str, &str>) -> Result<Self, String> {
        let upstream = |parts: BTreeMap<&str, &str>| {
            let mut upstream = UpstreamConfig::default();
            for (name, text) in parts {
                let text = text.to_owned();
                match name {
                    "prefix" => upstream.prefix = Some(text.parse().map_err(|e| format!("{e}"))?),
                    "url" => upstream.url = text,
                    "username" => upstream.username = Some(text),
                    "password" => upstream.password = Some(text.into()),
                    "passwordfile" => upstream.passwordfile = Some(text.into()),
                    "cafile" => upstream.cafile = Some(text.into()),
                    _ => return Err(format!("{name:?} is not known")),
                }
            }
            Ok(upstream)
        };
        let upstreams = items(parts)?.into_values().map(upstream);
        Ok(Self(upstreams.collect::<Result<_, _>>()?))
    }
}

impl UpstreamConfig {
    /// Whether TLS is spoken, and the host with its port. Errors: the reason, without repeating the URL.
    pub(crate) fn address(&self) -> Result<(bool, &str), &'static str> {
        let url = self.url.trim_end_matches('/');
        let (is_tls, host) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(host), _) => (true, host),
            (_, Some(host)) => (false, host),
            _ => return Err("the URL does not begin with http:// or https://"),
        };
        if host.contains('@') {
            return Err("credentials do not belong in the URL: there are USERNAME and PASSWORD");
        }
        let fits = |b: u8| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b);
        if host.is_empty() || !host.bytes().all(fits) {
            return Err("the URL has to name a host and nothing else");
        }
        Ok((is_tls, host))
    }

    /// Contradictions.
    pub(crate) fn problem(&self) -> Option<String> {
        let files = [&self.cafile, &self.passwordfile];
        let absent = files.into_iter().flatten().find(|path| !path.is_file());
        let passwords =
            usize::from(self.password.is_some()) + usize::from(self.passwordfile.is_some());
        if let Err(reason) = self.address() {
            return Some(reason.to_owned());
        }
        if let Some(path) = absent {
            return Some(format!("{} is not a file", path.display()));
        }
        if passwords != usize::from(self.username.is_some()) {
            return Some("a user name and one password go together".to_owned());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(parts: &[(&str, &str)]) -> Result<Vec<UpstreamConfig>, String> {
        let parts = parts.iter().copied().collect();
        UpstreamList::parse_parts(&parts).map(|list| list.0)
    }

    #[test]
    fn lists_are_read() {
        let list = list(&[
            ("0_prefix", "docker.io"),
            ("0_url", "https://registry-1.docker.io"),
            ("0_username", "u"),
            ("0_password", "hush"),
            ("1_url", "http://h:1/"),
        ])
        .unwrap();
        assert_eq!(list[0].prefix.as_ref().unwrap().as_str(), "docker.io");
        assert_eq!(list[0].address(), Ok((true, "registry-1.docker.io")));
        assert_eq!(list[1].address(), Ok((false, "h:1")));
        assert!(list.iter().all(|config| config.problem().is_none()));
        assert!(!format!("{list:?}").contains("hush"));
    }

    #[test]
    fn contradictions_are_reported() {
        for parts in [
            &[("0_url", "registry.example")][..],
            &[("0_url", "https://")],
            &[("0_url", "https://u:p@host")],
            &[("0_url", "https://host/path")],
            &[("0_prefix", "a")],
            &[("0_url", "https://host"), ("0_username", "u")],
            &[("0_url", "https://host"), ("0_password", "p")],
            &[("0_url", "https://host"), ("0_cafile", "/none")],
        ] {
            assert!(list(parts).unwrap()[0].problem().is_some(), "{parts:?}");
        }
        for parts in [("0_prefix", "A"), ("0_nonsense", "x"), ("url", "x")] {
            assert!(list(&[parts]).is_err(), "{parts:?}");
        }
    }
}
