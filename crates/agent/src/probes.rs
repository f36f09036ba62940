//! Probes of other hosts: ARP, neighbour discovery, ICMP echo.

pub(crate) mod arp;
pub(crate) mod ethernet;
pub(crate) mod icmp;
pub(crate) mod ndp;
mod raw_socket;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Number of IPv4 in frames of Ethernet.
pub(crate) const IPV4_PROTOCOL: u16 = 0x0800;

/// Hardware address of Ethernet.
pub(crate) type MacAddress = [u8; 6];

/// Hardware addresses that answered for each address; several for one address are a conflict.
pub(crate) type Neighbours = BTreeMap<IpAddr, BTreeSet<MacAddress>>;

/// `52:54:00:…`, in lower case.
pub(crate) fn mac_text(address: MacAddress) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

/// Parses `52:54:00:…`; none for other texts, also of links without Ethernet.
pub(crate) fn parse_mac(text: &str) -> Option<MacAddress> {
    let mut address = MacAddress::default();
    let mut parts = text.split(':');
    for byte in &mut address {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_have_six_bytes() {
        let address = parse_mac("52:54:00:0A:00:ff").unwrap();
        assert_eq!(mac_text(address), "52:54:00:0a:00:ff");
        for wrong in [
            "",
            "52:54:00:0a:00",
            "52:54:00:0a:00:ff:00",
            "zz:54:00:0a:00:ff",
        ] {
            assert_eq!(parse_mac(wrong), None, "{wrong}");
        }
    }
}
