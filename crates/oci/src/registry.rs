//! Registries, and image layouts in their place.

use std::fmt;
use std::path::{Path, PathBuf};

/// Scheme of an image layout in the place of a registry.
pub(crate) const LAYOUT_SCHEME: &str = "oci://";

/// The place of repositories.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Registry {
    /// Host with its port, if one is written.
    Host(String),
    /// Folder of an image layout on this machine.
    Layout(PathBuf),
}

impl Registry {
    /// The host, unless it is an image layout.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Host(host) => Some(host),
            Self::Layout(_) => None,
        }
    }

    /// The folder of an image layout.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Host(_) => None,
            Self::Layout(folder) => Some(folder),
        }
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(f),
            Self::Layout(folder) => write!(f, "{LAYOUT_SCHEME}{}", folder.display()),
        }
    }
}

/// Whether a first component is a host and not a path: it has a dot or a port, or is `localhost`.
pub(crate) fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    let host_fits = match host.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
        None => !host.is_empty() && host.bytes().all(is_name),
    };
    let port_fits = port
        .is_none_or(|port| port.parse::<u16>().is_ok() && port.bytes().all(|b| b.is_ascii_digit()));
    let is_meant = port.is_some() || host.contains(['.', '[']) || host == "localhost";
    host_fits && port_fits && is_meant
}
