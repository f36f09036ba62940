//! Addresses of clients: the peer of a connection, or the address that a trusted proxy reports.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr as _;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use crate::settings::Setting;

/// Prefix that counts as one client. Units: bits. A site gets at least a /64, so a limit per address would not hold.
/// Source: RFC 6177.
const IPV6_PREFIX: u32 = 64;

/// Header in which proxies report client addresses, the nearest last.
pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Networks in CIDR notation; a single address is a network of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IpNetworks(Vec<IpNet>);

impl IpNetworks {
    /// Whether one of them contains `address`.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The networks, as they were given.
    pub fn as_slice(&self) -> &[IpNet] {
        &self.0
    }
}

impl Setting for IpNetworks {
    const EXPECTED: &'static str = "networks separated by commas, as in 10.0.0.0/8,fd00::/8";

    fn parse(text: &str) -> Result<Self, String> {
        let texts = text.split(',').map(str::trim);
        let networks = texts.filter(|text| !text.is_empty()).map(|text| {
            let network = IpNet::from_str(text).ok();
            let network = network.or_else(|| IpAddr::from_str(text).ok().map(IpNet::from));
            network.ok_or_else(|| format!("{text:?} is no network"))
        });
        networks.collect::<Result<_, _>>().map(Self)
    }
}

/// The client of a request; an extension of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// Address of the client: the peer, or the one that a trusted proxy reports.
    pub ip: IpAddr,
    /// Whether the peer of the connection is a trusted proxy.
    pub is_forwarded: bool,
}

impl ClientAddress {
    /// The client behind `peer`. Of the addresses that proxies report, the last that is no trusted proxy counts:
    /// everything before it may be forged.
    pub fn of(peer: IpAddr, headers: &HeaderMap, trusted: &IpNetworks) -> Self {
        let peer = peer.to_canonical();
        if !trusted.contain(peer) {
            return Self {
                ip: peer,
                is_forwarded: false,
            };
        }
        let mut ip = peer;
        let values = headers.get_all(X_FORWARDED_FOR);
        let lines: Vec<&str> = values.iter().filter_map(|v| v.to_str().ok()).collect();
        let reported = lines.iter().rev().flat_map(|line| line.rsplit(','));
        for text in reported {
            let Some(address) = reported_address(text.trim()) else {
                break;
            };
            ip = address;
            if !trusted.contain(address) {
                break;
            }
        }
        Self {
            ip,
            is_forwarded: true,
        }
    }
}

/// Some proxies append a port.
fn reported_address(text: &str) -> Option<IpAddr> {
    let address = text
        .parse::<IpAddr>()
        .ok()
        .or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))
        .or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    address.map(|address| address.to_canonical())
}

/// Addresses that share a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey(IpAddr);

impl From<IpAddr> for ClientKey {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let mask = u128::MAX << (u128::BITS - IPV6_PREFIX);
                Ipv6Addr::from(u128::from(address) & mask).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn client(peer: &str, lines: &[&'static str], trusted: &str) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_static(line));
        }
        let trusted = IpNetworks::parse(trusted).unwrap();
        let client = ClientAddress::of(peer.parse().unwrap(), &headers, &trusted);
        assert_eq!(client.is_forwarded, trusted.contain(peer.parse().unwrap()));
        client.ip.to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let forged = &["6.6.6.6"];
        assert_eq!(client("10.0.0.9", forged, ""), "10.0.0.9");
        assert_eq!(client("10.0.0.9", forged, "10.1.0.0/16"), "10.0.0.9");
        assert_eq!(client("10.0.0.9", forged, "10.0.0.0/24"), "6.6.6.6");
        assert_eq!(client("::ffff:10.0.0.9", forged, "10.0.0.9"), "6.6.6.6");
    }

    #[test]
    fn the_last_untrusted_address_counts() {
        let trusted = "10.0.0.0/8, fd00::/8";
        for (lines, expected) in [
            (&["6.6.6.6, 192.0.2.1, 10.0.0.2"][..], "192.0.2.1"),
            (&["6.6.6.6", "192.0.2.1, 10.0.0.2"], "192.0.2.1"),
            (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            (&["192.0.2.1:4711"], "192.0.2.1"),
            (&["[2001:db8::1]:80, fd00::2"], "2001:db8::1"),
            (&["6.6.6.6, nonsense, 10.0.0.2"], "10.0.0.2"),
            (&[""], "10.0.0.9"),
            (&[], "10.0.0.9"),
        ] {
            assert_eq!(client("10.0.0.9", lines, trusted), expected, "{lines:?}");
        }
    }

    #[test]
    fn ipv6_addresses_count_by_site() {
        let key = |text: &str| ClientKey::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
    }

    #[test]
    fn other_texts_are_no_networks() {
        for text in ["10.0.0.0/33", "proxy", "10.0.0.0/8 fd00::/8"] {
            assert!(IpNetworks::parse(text).is_err(), "{text}");
        }
    }
}
