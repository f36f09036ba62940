//! Addresses of members.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use url::{Host, ParseError, Url};

/// Port of clients without one in the URL. Source: IANA, etcd-client.
const DEFAULT_PORT: u16 = 2379;

/// Host and port of a client or peer URL of a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct EtcdAddress {
    /// Name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// A URL that is no address of a member.
#[derive(Debug, thiserror::Error)]
#[error("{url:?} is no address of etcd: {reason}")]
pub struct EtcdAddressError {
    /// The text.
    pub url: String,
    /// The defect.
    pub reason: String,
}

impl FromStr for EtcdAddress {
    type Err = EtcdAddressError;

    /// Errors: no URL, or one without TLS.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |reason: String| EtcdAddressError {
            url: text.to_owned(),
            reason,
        };
        let url = Url::parse(text).map_err(|error| {
            let reason = match error {
                ParseError::RelativeUrlWithoutBase => "it has no https:// in front".to_owned(),
                error => error.to_string(),
            };
            wrong(format!(
                "{reason}; write it as https://192.0.2.10:{DEFAULT_PORT}"
            ))
        })?;
        if url.scheme() != "https" {
            return Err(wrong(
                "expected https: etcd is reached by TLS only".to_owned(),
            ));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(wrong("expected a host".to_owned())),
        };
        // The default of https is no port of etcd, but may have been written.
        let is_written = text.trim_end_matches('/').ends_with(":443");
        let default = if is_written { 443 } else { DEFAULT_PORT };
        Ok(Self {
            host,
            port: url.port().unwrap_or(default),
        })
    }
}

impl fmt::Display for EtcdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(f, "https://[{host}]:{port}")
        } else {
            write!(f, "https://{host}:{port}")
        }
    }
}

impl From<EtcdAddress> for String {
    fn from(address: EtcdAddress) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        for (text, host, port) in [
            ("https://192.0.2.1:2379", "192.0.2.1", 2379),
            ("https://[2001:db8::1]:2380", "2001:db8::1", 2380),
            (
                "https://control-1.example.com:12379",
                "control-1.example.com",
                12379,
            ),
        ] {
            let address: EtcdAddress = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port));
            assert_eq!(address.to_string(), text);
        }
        let parsed = |text: &str| text.parse::<EtcdAddress>().map(|it| it.port).ok();
        assert_eq!(parsed("https://192.0.2.1"), Some(2379));
        assert_eq!(parsed("https://192.0.2.1:443/"), Some(443));
        for text in [
            "",
            "192.0.2.1:2379",
            "http://192.0.2.1:2379",
            "unix:///run/etcd",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            if let Ok(address) = text.parse::<EtcdAddress>() {
                proptest::prop_assert_eq!(address.to_string().parse::<EtcdAddress>().ok(), Some(address));
            }
        }
    }
}
