//! /etc/resolv.conf.
//!
//! hickory's parser refuses the whole file for one malformed domain, adds the domain of the machine, and knows no ports.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr as _;

use hickory_resolver::proto::rr::Name;

/// Default port of name servers.
pub(super) const PORT: u16 = 53;
/// Limit of name servers. Source: the C library.
const MAX_SERVERS: usize = 3;
/// Limit of search domains, as in older C libraries; current ones have none.
const MAX_SEARCH: usize = 6;
/// Limit of `ndots`. Source: the C library.
const MAX_NDOTS: usize = 15;

/// The parsed file. Malformed lines are ignored, as by the C library.
#[derive(Debug)]
pub(super) struct ResolvConf {
    /// Name servers in their order.
    pub(super) servers: Vec<SocketAddr>,
    /// Domains that are appended to short names.
    pub(super) search: Vec<Name>,
    /// Names with fewer dots get the search domains first.
    pub(super) ndots: usize,
}

impl ResolvConf {
    pub(super) fn parse(text: &str) -> Self {
        let mut conf = Self {
            servers: Vec::new(),
            search: Vec::new(),
            ndots: 1,
        };
        for line in text.lines() {
            let line = line.split(['#', ';']).next().unwrap_or_default();
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => conf.servers.extend(words.next().and_then(server)),
                Some("search" | "domain") => {
                    conf.search = words.filter_map(domain).take(MAX_SEARCH).collect();
                }
                Some("options") => {
                    let mut ndots =
                        words.filter_map(|word| word.strip_prefix("ndots:")?.parse().ok());
                    conf.ndots = ndots.next_back().unwrap_or(conf.ndots).min(MAX_NDOTS);
                }
                _ => {}
            }
        }
        conf.servers.truncate(MAX_SERVERS);
        conf
    }
}

/// `10.0.0.1`, `fd00::1`, or with a port, which BSD writes as `[10.0.0.1]:5353`.
fn server(text: &str) -> Option<SocketAddr> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, PORT));
    }
    let (ip, port) = text.strip_prefix('[')?.split_once("]:")?;
    Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?))
}

fn domain(text: &str) -> Option<Name> {
    let mut name = Name::from_str(text).ok()?.to_lowercase();
    name.set_fqdn(true);
    // The root domain adds nothing to a name.
    (!name.is_root()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_podman_is_read_in_order() {
        let conf = ResolvConf::parse(
            "search dns.podman example.com\nnameserver 10.89.0.1\nnameserver fd00::53 # the host's\n",
        );
        let servers: Vec<_> = conf.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.89.0.1:53", "[fd00::53]:53"]);
        let search: Vec<_> = conf.search.iter().map(ToString::to_string).collect();
        assert_eq!(search, ["dns.podman.", "example.com."]);
        assert_eq!(conf.ndots, 1);
    }

    #[test]
    fn malformed_lines_are_ignored() {
        let conf = ResolvConf::parse(
            "; generated\nnameserver\nnameserver nonsense\nnameserver [127.0.0.1]:5353\nrubbish \u{0}\n\
             domain a.example\nsearch .\noptions rotate ndots:99 ndots:x\nsortlist 10.0.0.0\n",
        );
        assert_eq!(conf.servers, ["127.0.0.1:5353".parse().unwrap()]);
        assert!(conf.search.is_empty(), "the last line counts");
        assert_eq!(conf.ndots, MAX_NDOTS);
    }

    #[test]
    fn a_fourth_server_is_ignored() {
        let lines = [1, 2, 3, 4].map(|n| format!("nameserver 10.0.0.{n}"));
        assert_eq!(
            ResolvConf::parse(&lines.join("\n")).servers.len(),
            MAX_SERVERS
        );
    }
}
