//! The Ethernet, IPv4 and UDP headers around messages of DHCP, for a client without an address.
//!
//! Source: RFC 791, RFC 768.

use socket2::SockFilter;

use crate::probes::ethernet::BROADCAST;
use crate::probes::icmp::checksum;
use crate::probes::{IPV4_PROTOCOL, MacAddress};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
const UDP_PROTOCOL: u8 = 17;
const CLIENT_PORT: u16 = 68;
const SERVER_PORT: u16 = 67;
/// Longest frame that is read. Units: bytes.
pub(super) const MAX_FRAME: usize = 2048;

/// The message from a hardware address to all servers.
pub(super) fn wrap(mac: MacAddress, message: &[u8]) -> Option<Vec<u8>> {
    let udp_length = u16::try_from(UDP + message.len()).ok()?;
    let length = u16::try_from(IPV4 + UDP + message.len()).ok()?;
    let mut udp = Vec::new();
    for number in [CLIENT_PORT, SERVER_PORT, udp_length, 0] {
        udp.extend(number.to_be_bytes());
    }
    udp.extend(message);
    // From no address to all.
    let addresses = [0, 0, 0, 0, 255, 255, 255, 255];
    let mut pseudo_packet = addresses.to_vec();
    pseudo_packet.extend([0, UDP_PROTOCOL]);
    pseudo_packet.extend(udp_length.to_be_bytes());
    pseudo_packet.extend(&udp);
    udp[6..8].copy_from_slice(&checksum(&pseudo_packet).to_be_bytes());

    let mut ip = vec![0x45, 0x10];
    ip.extend(length.to_be_bytes());
    ip.extend([0, 0, 0, 0, 64, UDP_PROTOCOL, 0, 0]);
    ip.extend(addresses);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());

    let mut frame = BROADCAST.to_vec();
    frame.extend(mac);
    frame.extend(IPV4_PROTOCOL.to_be_bytes());
    frame.extend(ip);
    frame.extend(udp);
    Some(frame)
}

/// The message of a server in a frame. Checksums are not compared: they are missing between virtual machines of one host,
/// whose links leave them to hardware.
pub(super) fn unwrap(frame: &[u8]) -> Option<&[u8]> {
    let packet = frame.get(ETHERNET..)?;
    if frame[12..ETHERNET] != IPV4_PROTOCOL.to_be_bytes() {
        return None;
    }
    let header: &[u8; IPV4] = packet.first_chunk()?;
    let header_length = usize::from(header[0] & 0x0f) * 4;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    if header[0] >> 4 != 4 || fragment != 0 || header[9] != UDP_PROTOCOL {
        return None;
    }
    let udp = packet.get(header_length.max(IPV4)..length)?;
    let (header, _) = udp.split_first_chunk::<UDP>()?;
    let [ports @ .., length_high, length_low, _, _] = *header;
    let [a, b] = [SERVER_PORT, CLIENT_PORT].map(u16::to_be_bytes);
    if ports != [a[0], a[1], b[0], b[1]] {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([length_high, length_low]));
    udp.get(UDP..length)
}

/// Lets pass datagrams to the client's port only: on a busy link this process would read all packets otherwise.
/// Source: packet-filter language of BPF, as tcpdump prints it for `udp dst port 68`.
pub(super) fn filter() -> [SockFilter; 9] {
    const DROP: u8 = 8;
    // The address of the next command is the base of jumps.
    let unless = |index: u8| DROP - index - 1;
    [
        SockFilter::new(0x30, 0, 0, 23),
        SockFilter::new(0x15, 0, unless(1), UDP_PROTOCOL.into()),
        SockFilter::new(0x28, 0, 0, 20),
        SockFilter::new(0x45, unless(3), 0, 0x1fff),
        SockFilter::new(0xb1, 0, 0, 14),
        SockFilter::new(0x48, 0, 0, 16),
        SockFilter::new(0x15, 0, unless(6), CLIENT_PORT.into()),
        SockFilter::new(0x06, 0, 0, 0x0004_0000),
        SockFilter::new(0x06, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As an answer: the ports swapped.
    fn answered(message: &[u8]) -> Vec<u8> {
        let mut frame = wrap([2; 6], message).unwrap();
        frame[ETHERNET + IPV4..ETHERNET + IPV4 + 4].copy_from_slice(&[0, 67, 0, 68]);
        frame
    }

    #[test]
    fn headers_are_complete() {
        let frame = wrap([2; 6], b"abc").unwrap();
        assert_eq!(
            frame[..14],
            [255, 255, 255, 255, 255, 255, 2, 2, 2, 2, 2, 2, 8, 0]
        );
        let ip = &frame[14..34];
        assert_eq!(ip[..4], [0x45, 0x10, 0, 31]);
        assert_eq!(checksum(ip), 0);
        let mut pseudo_packet = ip[12..].to_vec();
        pseudo_packet.extend([0, 17, 0, 11]);
        pseudo_packet.extend(&frame[34..]);
        assert_eq!(checksum(&pseudo_packet), 0);
        assert_eq!(frame[34..40], [0, 68, 0, 67, 0, 11]);
        assert_eq!(wrap([2; 6], &vec![0; 70_000]), None);
    }

    #[test]
    fn only_answers_of_servers_are_read() {
        let frame = answered(b"abc");
        assert_eq!(unwrap(&frame), Some(&b"abc"[..]));
        let padded = [frame.as_slice(), &[0; 20]].concat();
        assert_eq!(unwrap(&padded), Some(&b"abc"[..]));
        assert_eq!(unwrap(&wrap([2; 6], b"abc").unwrap()), None, "a client's");
        assert_eq!(unwrap(&frame[..frame.len() - 1]), None, "cut off");
        for (index, value) in [(12, 9), (14, 0x65), (20, 0x20), (23, 6), (39, 200), (39, 3)] {
            let mut frame = frame.clone();
            frame[index] = value;
            assert_eq!(unwrap(&frame), None, "{index}");
        }
    }

    proptest! {
        #[test]
        fn any_frame_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..64), mut edits in proptest::collection::vec((0_usize..60, any::<u8>()), 0..4)) {
            let _ = unwrap(&bytes);
            let mut frame = answered(b"0123456789abcdefgh");
            for (index, value) in edits.drain(..) {
                frame[index] = value;
            }
            let _ = unwrap(&frame);
        }
    }
}
