//! Networks of BMCs: the addresses to which a connection is made.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use ipnet::IpNet;
use net::resolve::Resolver;
use url::Url;

/// Networks of BMCs. An address that a network names alone is a BMC's; in wider networks, the services of the site and
/// this machine are left out.
#[derive(Debug, Clone)]
pub struct BmcNetworks {
    networks: Vec<IpNet>,
    services: Vec<SocketAddr>,
}

impl BmcNetworks {
    /// Networks of BMCs, and services of the site that may be in them. A service on a loopback address is left out with
    /// its port alone, any other with its address.
    pub fn new(networks: Vec<IpNet>, services: Vec<SocketAddr>) -> Self {
        Self { networks, services }
    }

    /// Whether a BMC may be at `address`.
    pub fn contain(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let mut containing = self
            .networks
            .iter()
            .filter(|it| it.contains(&ip))
            .peekable();
        if ip.is_unspecified() || ip.is_multicast() || containing.peek().is_none() {
            return false;
        }
        let is_named = containing.any(|network| network.prefix_len() == network.max_prefix_len());
        let is_service = |service: &SocketAddr| {
            let is_port = !ip.is_loopback() || service.port() == address.port();
            service.ip().to_canonical() == ip && is_port
        };
        is_named || !(self.services.iter().any(is_service) || is_of_this_machine(ip))
    }

    /// The addresses of an origin at which a BMC may be; at least one.
    ///
    /// Errors: the reason.
    pub(super) async fn resolve(&self, origin: &Url) -> Result<Vec<SocketAddr>, String> {
        let host = origin.host_str().unwrap_or_default();
        let port = origin.port_or_known_default().unwrap_or_default();
        let found = Resolver::system().lookup(host).await;
        let found = found.map_err(|error| model::error::chain(&error))?;
        let mut addresses: Vec<_> = found
            .into_iter()
            .map(|ip| SocketAddr::new(ip, port))
            .collect();
        addresses.retain(|address| self.contain(*address));
        if addresses.is_empty() {
            return Err("no address of it is in the networks of BMCs".to_owned());
        }
        Ok(addresses)
    }
}

/// Whether a packet to `ip` stays on this machine, except for loopback addresses. The socket sends nothing.
fn is_of_this_machine(ip: IpAddr) -> bool {
    if ip.is_loopback() {
        return false;
    }
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((ip, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(networks: &[&str], services: &[&str]) -> BmcNetworks {
        let networks = networks.iter().map(|text| text.parse().unwrap());
        let services = services.iter().map(|text| text.parse().unwrap());
        BmcNetworks::new(networks.collect(), services.collect())
    }

    #[test]
    fn services_of_the_site_are_no_bmcs() {
        let private = networks(
            &["192.0.2.0/24", "127.0.0.0/8", "2001:db8::/32"],
            &["192.0.2.5:5432", "127.0.0.1:8090", "[2001:db8::5]:5000"],
        );
        for (address, expected) in [
            ("192.0.2.6:443", true),
            ("192.0.2.5:443", false),
            ("[::ffff:192.0.2.5]:443", false),
            ("[::ffff:192.0.2.6]:443", true),
            ("198.51.100.1:443", false),
            ("127.0.0.1:443", true),
            ("127.0.0.1:8090", false),
            ("[2001:db8::6]:443", true),
            ("[2001:db8::5]:443", false),
            ("[fe80::1]:443", false),
            ("0.0.0.0:8090", false),
        ] {
            assert_eq!(
                private.contain(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
        let all = networks(&["0.0.0.0/0", "::/0"], &["192.0.2.5:5432"]);
        for (address, expected) in [
            ("198.51.100.1:443", true),
            ("192.0.2.5:443", false),
            ("0.0.0.0:443", false),
            ("[::]:443", false),
            ("224.0.0.1:443", false),
        ] {
            assert_eq!(all.contain(address.parse().unwrap()), expected, "{address}");
        }
        let named = networks(&["192.0.2.0/24", "192.0.2.5/32"], &["192.0.2.5:5432"]);
        assert!(named.contain("192.0.2.5:443".parse().unwrap()));
    }

    #[tokio::test]
    async fn names_count_by_their_addresses() {
        let loopback = networks(&["127.0.0.0/8"], &[]);
        let origin = "https://localhost:8443".parse().unwrap();
        let found = loopback.resolve(&origin).await.unwrap();
        assert_eq!(found, ["127.0.0.1:8443".parse().unwrap()]);
        let private = networks(&["10.0.0.0/8"], &[]);
        for origin in [
            "https://localhost",
            "https://127.0.0.1",
            "https://[::1]",
            "https://2130706433",
        ] {
            assert!(
                private.resolve(&origin.parse().unwrap()).await.is_err(),
                "{origin}"
            );
        }
    }
}
