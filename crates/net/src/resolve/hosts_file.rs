//! /etc/hosts.

use std::collections::HashMap;
use std::net::IpAddr;

/// Addresses by name in lower case, sorted.
#[derive(Debug)]
pub(super) struct HostsFile(HashMap<String, Vec<IpAddr>>);

impl HostsFile {
    pub(super) fn parse(text: &str) -> Self {
        let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(address) = words.next().and_then(|word| word.parse().ok()) else {
                continue;
            };
            for name in words {
                let name = name.strip_suffix('.').unwrap_or(name).to_lowercase();
                let addresses = hosts.entry(name).or_default();
                if let Err(position) = addresses.binary_search(&address) {
                    addresses.insert(position, address);
                }
            }
        }
        Self(hosts)
    }

    /// The addresses of `name`, at least one.
    pub(super) fn get(&self, name: &str) -> Option<&[IpAddr]> {
        self.0.get(name).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_line_has_its_address() {
        let hosts = HostsFile::parse(
            "127.0.0.1\tlocalhost\n::1 localhost # both\n\n# 10.0.0.9 db\n10.0.0.2 db DB.example.\n10.0.0.1 db\n\
             10.0.0.2 db\nnot-an-address db\nfe80::1%eth0 db\n10.0.0.3\n",
        );
        let get = |name: &str| {
            let addresses = hosts.get(name)?.iter().map(ToString::to_string);
            Some(addresses.collect::<Vec<_>>())
        };
        assert_eq!(get("localhost").unwrap(), ["127.0.0.1", "::1"]);
        assert_eq!(get("db").unwrap(), ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(get("db.example").unwrap(), ["10.0.0.2"]);
        assert_eq!(get("other"), None);
    }
}
