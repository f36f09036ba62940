//! Neighbour discovery: the hosts that have an IPv6 address in the network of a link.
//!
//! Source: RFC 4861.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddrV6};
use std::time::Duration;

use super::{MacAddress, Neighbours, icmp, parse_mac};
use crate::links::NetworkLink;

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_OPTION: u8 = 1;
const TARGET_OPTION: u8 = 2;
/// Routers never forward these packets: others are ignored.
const HOPS: u32 = 255;
const ROUNDS: usize = 3;
const ROUND_WAIT: Duration = Duration::from_millis(500);

/// Asks for `target` from `source`, an address of the link.
///
/// Errors: without the right to raw sockets; the link goes down.
pub(crate) async fn probe(
    link: &NetworkLink,
    source: Ipv6Addr,
    target: Ipv6Addr,
) -> io::Result<Neighbours> {
    let mac = parse_mac(&link.mac_address)
        .ok_or_else(|| io::Error::other(format!("{} has no hardware address", link.name)))?;
    let socket = icmp::open(true, Some(&link.name))?;
    socket.get().set_multicast_if_v6(link.index)?;
    socket.get().set_multicast_hops_v6(HOPS)?;
    socket.get().set_unicast_hops_v6(HOPS)?;
    socket
        .get()
        .bind(&SocketAddrV6::new(source, 0, 0, link.index).into())?;
    let to = SocketAddrV6::new(group(target), 0, 0, link.index).into();
    let ask = async {
        for _ in 0..ROUNDS {
            socket.send_to(&solicitation(mac, target), &to).await?;
            tokio::time::sleep(ROUND_WAIT).await;
        }
        Ok(())
    };
    let read = |packet: &[u8]| {
        let (address, mac) = advertisement(packet)?;
        (address == target).then_some((IpAddr::V6(address), mac))
    };
    socket.answers(ask, read).await
}

/// The group of all nodes whose address ends like `target`.
fn group(target: Ipv6Addr) -> Ipv6Addr {
    let end = u128::from(target) & 0x00ff_ffff;
    Ipv6Addr::from(0xff02_0000_0000_0000_0000_0001_ff00_0000 | end)
}

/// The kernel adds the checksum.
fn solicitation(mac: MacAddress, target: Ipv6Addr) -> Vec<u8> {
    let mut packet = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    packet.extend(target.octets());
    packet.extend([SOURCE_OPTION, 1]);
    packet.extend(mac);
    packet
}

fn advertisement(packet: &[u8]) -> Option<(Ipv6Addr, MacAddress)> {
    if packet.first() != Some(&ADVERTISEMENT) {
        return None;
    }
    let address: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
    let mut options = packet.get(24..)?;
    while let [kind, length, ..] = *options {
        let option = options
            .get(..usize::from(length) * 8)
            .filter(|option| !option.is_empty())?;
        if kind == TARGET_OPTION {
            return Some((address.into(), option.get(2..8)?.try_into().ok()?));
        }
        options = &options[option.len()..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_group_has_the_end_of_the_address() {
        let group = group("2001:db8::12:3456".parse().unwrap());
        assert_eq!(group.to_string(), "ff02::1:ff12:3456");
    }

    #[test]
    fn advertisements_have_a_hardware_address() {
        let target: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let mut packet = solicitation([7; 6], target);
        assert_eq!(advertisement(&packet), None);
        (packet[0], packet[24]) = (ADVERTISEMENT, TARGET_OPTION);
        assert_eq!(advertisement(&packet), Some((target, [7; 6])));
        packet[25] = 0;
        assert_eq!(advertisement(&packet), None);
    }

    proptest! {
        #[test]
        fn any_packet_is_read(mut packet in proptest::collection::vec(any::<u8>(), 1..64)) {
            packet[0] = ADVERTISEMENT;
            let _ = advertisement(&packet);
        }
    }
}
