//! The kinds of values that only distribution has.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use service::logs;
use service::settings::{Setting, Shape};

/// Storage driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// A folder.
    Filesystem,
    /// A bucket of a server that speaks S3.
    S3,
}

impl Setting for Driver {
    const EXPECTED: &'static str = "filesystem or s3";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "filesystem" => Ok(Self::Filesystem),
            "s3" => Ok(Self::S3),
            _ => Err("content is kept in a folder or a bucket here".to_owned()),
        }
    }
}

/// An address as Go writes it, where the host may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpAddr(pub SocketAddr);

impl Setting for HttpAddr {
    const EXPECTED: &'static str = "address and port, as in :5000, 127.0.0.1:5000 or [::1]:5000";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let (host, port) = text.rsplit_once(':').ok_or("the port is missing")?;
        let port = port
            .parse()
            .map_err(|_| "the port is no number from 0 to 65535")?;
        let ip: IpAddr = match host {
            "" => every_address(),
            "localhost" => Ipv4Addr::LOCALHOST.into(),
            _ => return Err("the host is no IP address".to_owned()),
        };
        Ok(Self(SocketAddr::new(ip, port)))
    }
}

/// Both families on one socket, where the machine has IPv6 at all.
fn every_address() -> IpAddr {
    if Path::new("/proc/net/if_inet6").exists() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// Protocol of the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net;

impl Setting for Net {
    const EXPECTED: &'static str = "tcp";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "tcp" => Ok(Self),
            "unix" => Err("sockets in the file system are not listened on".to_owned()),
            _ => Err("no network".to_owned()),
        }
    }
}

/// Prefix of every path: empty, or a slash and names, without a slash at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefix(pub String);

impl Setting for Prefix {
    const EXPECTED: &'static str = "path, as in /registry/";

    fn parse(text: &str) -> Result<Self, String> {
        let path = text.trim_matches('/');
        if path.is_empty() {
            return Ok(Self::default());
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        if !path.bytes().all(fits) || path.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            return Err("names of letters, digits and -._~ between single slashes".to_owned());
        }
        Ok(Self(format!("/{path}")))
    }
}

/// Headers of every answer; several of one name are several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(pub HeaderMap);

impl std::ops::Deref for Headers {
    type Target = HeaderMap;

    fn deref(&self) -> &HeaderMap {
        &self.0
    }
}

impl Setting for Headers {
    const EXPECTED: &'static str = "map of names to lists of values";
    const SHAPE: Shape = Shape::Parts;

    fn parse(text: &str) -> Result<Self, String> {
        nothing(text)
    }

    fn parse_parts(parts: &BTreeMap<&str, &str>) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (part, value) in parts {
            let name = HeaderName::from_str(without_index(part))
                .map_err(|_| format!("{part:?} is no name of a header"))?;
            // Not repeated: it may be a secret.
            let value = HeaderValue::from_str(value)
                .map_err(|_| format!("the value of {name} cannot stand in a header"))?;
            headers.append(name, value);
        }
        Ok(Self(headers))
    }
}

/// A part without the place in a list at its end.
pub(crate) fn without_index(part: &str) -> &str {
    let is_index = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match part.rsplit_once('_') {
        Some((name, index)) if is_index(index) => name,
        _ => part,
    }
}

/// Parts by their place in a list.
///
/// Errors: a part without a place.
pub(crate) fn items<'a>(
    parts: &BTreeMap<&'a str, &'a str>,
) -> Result<BTreeMap<usize, BTreeMap<&'a str, &'a str>>, String> {
    let mut items = BTreeMap::<usize, BTreeMap<_, _>>::new();
    for (part, text) in parts {
        let (index, rest) = part.split_once('_').unwrap_or((part, ""));
        let index = index
            .parse()
            .map_err(|_| format!("{part:?} does not begin with the place in a list"))?;
        items.entry(index).or_default().insert(rest, *text);
    }
    Ok(items)
}

/// A setting that has parts only.
pub(crate) fn nothing<T: Default>(text: &str) -> Result<T, String> {
    if text.is_empty() {
        Ok(T::default())
    } else {
        Err("neither a map nor a list".to_owned())
    }
}

/// How weighty a line of the log has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(pub(crate) &'static str);

impl Setting for Level {
    const EXPECTED: &'static str = "error, warn, info, debug or trace";

    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "panic" | "fatal" | "error" => Ok(Self("error")),
            "warn" | "warning" => Ok(Self("warn")),
            "info" => Ok(Self("info")),
            "debug" => Ok(Self("debug")),
            "trace" => Ok(Self("trace")),
            _ => Err("no such level".to_owned()),
        }
    }
}

/// How the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formatter(pub(crate) logs::LogFormat);

impl Setting for Formatter {
    const EXPECTED: &'static str = "text or json";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self(logs::LogFormat::Text)),
            "json" | "logstash" => Ok(Self(logs::LogFormat::Json)),
            _ => Err("no such look".to_owned()),
        }
    }
}

/// Files that say by being there that the registry is not ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileChecks(pub(crate) Vec<FileCheck>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileCheck {
    pub(crate) file: PathBuf,
    pub(crate) interval: Duration,
}

/// How often a file is looked for. Source: distribution.
const FILE_INTERVAL: Duration = Duration::from_secs(10);

impl Setting for FileChecks {
    const EXPECTED: &'static str = "list of file and interval";
    const SHAPE: Shape = Shape::Parts;

    fn parse(text: &str) -> Result<Self, String> {
        nothing(text)
    }

    fn parse_parts(parts: &BTreeMap<&str, &str>) -> Result<Self, String> {
        let check = |parts: BTreeMap<&str, &str>| {
            let (mut file, mut interval) = (None, FILE_INTERVAL);
            for (name, text) in parts {
                match name {
                    "file" => file = Some(PathBuf::from(text)),
                    "interval" => interval = Duration::parse(text)?,
                    _ => return Err(format!("{name:?} is not known")),
                }
            }
            let file = file.ok_or("file is missing")?;
            Ok(FileCheck { file, interval })
        };
        let checks = items(parts)?.into_values().map(check);
        Ok(Self(checks.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_go_writes_them() {
        let address = |text: &str| HttpAddr::parse(text).map(|address| address.0.to_string());
        assert_eq!(address("127.0.0.1:5000").unwrap(), "127.0.0.1:5000");
        assert_eq!(address("localhost:1").unwrap(), "127.0.0.1:1");
        assert_eq!(address("[::1]:5000").unwrap(), "[::1]:5000");
        assert!(HttpAddr::parse(":5000").unwrap().0.ip().is_unspecified());
        for wrong in ["", "5000", ":", ":70000", "example.org:5000"] {
            assert!(address(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn prefixes() {
        for (text, prefix) in [("", ""), ("/", ""), ("a", "/a"), ("/a/b.c/", "/a/b.c")] {
            assert_eq!(Prefix::parse(text).unwrap().0, prefix, "{text}");
        }
        for wrong in ["/a//b", "/../a", "/a b", "/a?x", "/{a}"] {
            assert!(Prefix::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn checks_of_files() {
        let parts = [("0_file", "/a"), ("1_file", "/b"), ("1_interval", "3s")];
        let FileChecks(checks) = FileChecks::parse_parts(&parts.into()).unwrap();
        let checks: Vec<_> = checks
            .iter()
            .map(|check| (check.file.to_str().unwrap(), check.interval.as_secs()))
            .collect();
        assert_eq!(checks, [("/a", 10), ("/b", 3)]);
        for wrong in [("0_interval", "3s"), ("file", "/a"), ("0_file_x", "/a")] {
            assert!(
                FileChecks::parse_parts(&[wrong].into()).is_err(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn values_of_headers_are_not_repeated() {
        let reported = Headers::parse_parts(&[("authorization", "secret\n")].into()).unwrap_err();
        assert!(
            !reported.contains("secret") && reported.contains("authorization"),
            "{reported}"
        );
        assert!(Headers::parse_parts(&[("a b", "x")].into()).is_err());
    }
}
