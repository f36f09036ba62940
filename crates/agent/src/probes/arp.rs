//! ARP: the hosts that have an IPv4 address in the network of a link.
//!
//! Source: RFC 826.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::ethernet::{BROADCAST, EthernetSocket};
use super::{MacAddress, Neighbours, parse_mac};
use crate::links::NetworkLink;

const PROTOCOL: u16 = 0x0806;
const REQUEST: u16 = 1;
const REPLY: u16 = 2;
const LENGTH: usize = 28;
/// Each address is asked for as often: broadcasts get lost.
const ROUNDS: usize = 3;
/// Between two requests: 1000 addresses take a second a round, which no switch takes for an attack.
const PACE: Duration = Duration::from_millis(1);
/// For the answers of a round.
const ROUND_WAIT: Duration = Duration::from_millis(500);

/// Asks for all `targets` from `source`, an address of the link.
///
/// Errors: without the right to raw sockets; the link goes down.
pub(crate) async fn probe(
    link: &NetworkLink,
    source: Ipv4Addr,
    targets: &[Ipv4Addr],
) -> io::Result<Neighbours> {
    let mac = parse_mac(&link.mac_address)
        .ok_or_else(|| io::Error::other(format!("{} has no hardware address", link.name)))?;
    let socket = EthernetSocket::open(link.index, PROTOCOL)?;
    let ask = async {
        for _ in 0..ROUNDS {
            for target in targets {
                let packet = request(mac, source, *target);
                socket.send(BROADCAST, &packet).await?;
                tokio::time::sleep(PACE).await;
            }
            tokio::time::sleep(ROUND_WAIT).await;
        }
        Ok(())
    };
    let read = |packet: &[u8]| {
        let (address, mac) = answer(packet)?;
        targets
            .contains(&address)
            .then_some((IpAddr::V4(address), mac))
    };
    socket.raw().answers(ask, read).await
}

fn request(mac: MacAddress, source: Ipv4Addr, target: Ipv4Addr) -> [u8; LENGTH] {
    let mut packet = [0; LENGTH];
    // Ethernet, IPv4, and the lengths of their addresses.
    packet[..6].copy_from_slice(&[0, 1, 0x08, 0, 6, 4]);
    packet[6..8].copy_from_slice(&REQUEST.to_be_bytes());
    packet[8..14].copy_from_slice(&mac);
    packet[14..18].copy_from_slice(&source.octets());
    packet[24..28].copy_from_slice(&target.octets());
    packet
}

/// The sender of a reply.
fn answer(packet: &[u8]) -> Option<(Ipv4Addr, MacAddress)> {
    let packet: &[u8; LENGTH] = packet.first_chunk()?;
    if packet[..6] != [0, 1, 0x08, 0, 6, 4] || packet[6..8] != REPLY.to_be_bytes() {
        return None;
    }
    let mac = packet[8..14].try_into().ok()?;
    let address: [u8; 4] = packet[14..18].try_into().ok()?;
    Some((address.into(), mac))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_replies_are_answers() {
        let (a, b) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut packet = request([2; 6], a, b);
        assert_eq!(answer(&packet), None);
        packet[7] = 2;
        assert_eq!(answer(&packet), Some((a, [2; 6])));
        assert_eq!(answer(&packet[..20]), None);
    }

    proptest! {
        #[test]
        fn any_packet_is_read(packet in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = answer(&packet);
        }
    }
}
