//! Addresses of clients: the peer of a connection, or the address that a trusted proxy reports.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr as _;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use secrecy::ExposeSecret as _;

use crate::settings::{Secret, Setting};

/// Prefix that counts as one client. Units: bits. A site gets at least a /64, so a limit per address would not hold.
/// Source: RFC 6177.
const IPV6_PREFIX: u32 = 64;

/// Header in which proxies report client addresses, the nearest last.
pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Header in which a proxy proves that it is one. Its value is no part of any log.
pub(crate) const PROXY_SECRET: HeaderName = HeaderName::from_static("x-atoll-proxy-secret");

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

/// Proxies whose `X-Forwarded-For` is believed: peers in their networks, which prove themselves if there is a secret.
///
/// Without a secret, every program on a trusted address chooses the addresses that its requests count for.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedProxies {
    networks: IpNetworks,
    secret: Option<HeaderValue>,
}

impl TrustedProxies {
    pub(crate) fn new(networks: IpNetworks, secret: Option<HeaderValue>) -> Self {
        Self { networks, secret }
    }

    /// Whether each connection of `peer` is one of a proxy. With a secret, only its requests can show that.
    pub(super) fn contain(&self, peer: IpAddr) -> bool {
        self.secret.is_none() && self.networks.contain(peer)
    }

    /// Whether a connection of `peer` may turn out to be one of a proxy.
    pub(super) fn may_contain(&self, peer: IpAddr) -> bool {
        self.networks.contain(peer)
    }

    fn believe(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        let is_proven = self.secret.as_ref().is_none_or(|secret| {
            let sent = headers.get(PROXY_SECRET);
            sent.is_some_and(|sent| is_same(secret.as_bytes(), sent.as_bytes()))
        });
        is_proven && self.networks.contain(peer)
    }
}

/// The value of [`PROXY_SECRET`]; absent without a secret.
pub(crate) fn proxy_secret(secret: &Secret) -> Option<HeaderValue> {
    let text = secret.expose_secret();
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    (!text.is_empty()).then_some(value)
}

/// Compares all bytes: the time says nothing about the first difference.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).map(|(one, other)| one ^ other);
    one.len() == other.len() && differences.fold(0, |all, one| all | one) == 0
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
    pub(crate) fn of(peer: IpAddr, headers: &HeaderMap, trusted: &TrustedProxies) -> Self {
        let peer = peer.to_canonical();
        if !trusted.believe(peer, headers) {
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
            if !trusted.networks.contain(address) {
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
pub struct ClientKey(IpAddr);

impl From<ClientAddress> for ClientKey {
    fn from(client: ClientAddress) -> Self {
        client.ip.into()
    }
}

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

/// Holder of a part of a limit: a client by its address, or a user or owner at any address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder(HolderKey);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum HolderKey {
    Client(ClientKey),
    User(Arc<str>),
}

impl Holder {
    /// A user or owner of that name.
    pub fn user(name: &str) -> Self {
        Self(HolderKey::User(name.into()))
    }
}

impl From<ClientAddress> for Holder {
    fn from(client: ClientAddress) -> Self {
        client.ip.into()
    }
}

impl From<IpAddr> for Holder {
    fn from(address: IpAddr) -> Self {
        Self(HolderKey::Client(address.into()))
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
        let peer = peer.parse().unwrap();
        let trusted = TrustedProxies::new(IpNetworks::parse(trusted).unwrap(), None);
        let client = ClientAddress::of(peer, &headers, &trusted);
        assert_eq!(client.is_forwarded, trusted.contain(peer));
        client.ip.to_string()
    }

    #[test]
    fn a_proxy_with_a_secret_proves_itself() {
        let networks = IpNetworks::parse("127.0.0.1").unwrap();
        let secret = proxy_secret(&"a secret".into());
        let trusted = TrustedProxies::new(networks, secret);
        let client = |peer: &str, sent: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.append(X_FORWARDED_FOR, HeaderValue::from_static("192.0.2.1"));
            if let Some(sent) = sent {
                headers.append(PROXY_SECRET, HeaderValue::from_static(sent));
            }
            let client = ClientAddress::of(peer.parse().unwrap(), &headers, &trusted);
            client.ip.to_string()
        };
        assert_eq!(client("127.0.0.1", Some("a secret")), "192.0.2.1");
        for forged in [None, Some(""), Some("a secre"), Some("a secrex")] {
            assert_eq!(client("127.0.0.1", forged), "127.0.0.1", "{forged:?}");
        }
        assert_eq!(client("127.0.0.2", Some("a secret")), "127.0.0.2");
        assert!(!trusted.contain("127.0.0.1".parse().unwrap()));
        assert!(proxy_secret(&"".into()).is_none());
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
