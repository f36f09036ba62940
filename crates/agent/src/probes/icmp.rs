//! ICMP echo: whether a host answers, how fast, and with which packet size.
//!
//! Source: RFC 792, RFC 4443.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use socket2::{Domain, Protocol, Socket, Type};

use super::raw_socket::RawSocket;

/// Between two requests.
const INTERVAL: Duration = Duration::from_millis(200);
/// For the answer to the last request.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// Header of a request. Units: bytes.
pub(crate) const HEADER: usize = 8;

/// Requests of different probes differ by their identifiers.
static NEXT_ID: AtomicU16 = AtomicU16::new(1);

/// Options of a probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EchoOptions<'a> {
    pub(crate) count: u16,
    /// Data of each request. Units: bytes.
    pub(crate) data: usize,
    /// Send from this link only.
    pub(crate) link: Option<&'a str>,
    /// Forbid routers and the own kernel to split the packets.
    pub(crate) is_whole: bool,
}

/// Result of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EchoReport {
    pub(crate) sent: u16,
    pub(crate) received: u16,
    pub(crate) average: Duration,
}

impl EchoReport {
    /// Units: percent.
    pub(crate) fn loss(&self) -> f64 {
        100.0 * f64::from(self.sent - self.received) / f64::from(self.sent.max(1))
    }
}

/// A raw socket of ICMP, of a link or of all.
pub(super) fn open(is_ipv6: bool, link: Option<&str>) -> io::Result<RawSocket> {
    let (domain, protocol) = if is_ipv6 {
        (Domain::IPV6, Protocol::ICMPV6)
    } else {
        (Domain::IPV4, Protocol::ICMPV4)
    };
    let socket = Socket::new(domain, Type::RAW.nonblocking(), Some(protocol))?;
    if let Some(link) = link {
        socket.bind_device(Some(link.as_bytes()))?;
    }
    RawSocket::new(socket)
}

/// Sends requests and counts the answers.
///
/// Errors: without the right to raw sockets; no route; a packet larger than the link takes.
pub(crate) async fn echo(target: IpAddr, options: EchoOptions<'_>) -> io::Result<EchoReport> {
    let socket = open(target.is_ipv6(), options.link)?;
    if options.is_whole {
        forbid_fragments(socket.get(), target)?;
    }
    // Packets of other hosts are not received any more.
    socket.get().connect(&SocketAddr::new(target, 0).into())?;
    let to = SocketAddr::new(target, 0).into();
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let mut sent = Vec::new();
    let mut answered: Vec<Option<Duration>> = Vec::new();
    let mut buffer = vec![0; 128 + HEADER + options.data];
    for sequence in 0..options.count {
        let packet = request(target, id, sequence, options.data);
        // The first attempt may report the fate of an earlier packet, by an ICMP error.
        if socket.send_to(&packet, &to).await.is_err() {
            socket.send_to(&packet, &to).await?;
        }
        sent.push(Instant::now());
        answered.push(None);
        let wait = if sequence + 1 == options.count {
            LAST_WAIT
        } else {
            INTERVAL
        };
        let deadline = tokio::time::Instant::now() + wait;
        while answered.iter().any(Option::is_none) || sequence + 1 < options.count {
            let Ok(length) = tokio::time::timeout_at(deadline, socket.receive(&mut buffer)).await
            else {
                break;
            };
            // An ICMP error concerns one packet, which is lost.
            let answered_by = |length: usize| answer(target, &buffer[..length], id);
            let Some(sequence) = length.ok().and_then(answered_by) else {
                continue;
            };
            let index = usize::from(sequence);
            if let (Some(sent), Some(answered @ None)) = (sent.get(index), answered.get_mut(index))
            {
                *answered = Some(sent.elapsed());
            }
        }
    }
    let times: Vec<Duration> = answered.into_iter().flatten().collect();
    let received = u16::try_from(times.len()).unwrap_or(u16::MAX);
    Ok(EchoReport {
        sent: options.count,
        received,
        average: times.iter().sum::<Duration>() / u32::from(received.max(1)),
    })
}

fn forbid_fragments(socket: &Socket, target: IpAddr) -> io::Result<()> {
    if target.is_ipv6() {
        sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE)?;
    } else {
        sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE)?;
    }
    Ok(())
}

fn request(target: IpAddr, id: u16, sequence: u16, data: usize) -> Vec<u8> {
    let kind = if target.is_ipv6() { 128 } else { 8 };
    let mut packet = vec![kind, 0, 0, 0];
    packet.extend(id.to_be_bytes());
    packet.extend(sequence.to_be_bytes());
    packet.resize(HEADER + data, 0);
    if target.is_ipv4() {
        // The kernel adds that of ICMPv6 only.
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// The sequence number of an answer to a request with this identifier.
fn answer(target: IpAddr, packet: &[u8], id: u16) -> Option<u16> {
    let (kind, message) = if target.is_ipv6() {
        (129, packet)
    } else {
        // Raw sockets of IPv4 receive its header, too: its length is in units of 4 bytes.
        let header = usize::from(packet.first()? & 0x0f) * 4;
        (0, packet.get(header..)?)
    };
    let message: &[u8; HEADER] = message.first_chunk()?;
    let [found, 0, _, _, id_high, id_low, high, low] = *message else {
        return None;
    };
    (found == kind && u16::from_be_bytes([id_high, id_low]) == id)
        .then(|| u16::from_be_bytes([high, low]))
}

/// Source: RFC 1071.
pub(crate) fn checksum(packet: &[u8]) -> u16 {
    let mut sum: u32 = packet
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: EchoOptions<'_> = EchoOptions {
        count: 3,
        data: 56,
        link: None,
        is_whole: false,
    };

    #[tokio::test]
    async fn this_host_answers() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            match echo(address, OPTIONS).await {
                Ok(report) => assert_eq!((report.received, report.loss()), (3, 0.0), "{address}"),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    testkit::skipped("raw sockets are forbidden");
                }
                Err(error) if address.is_ipv6() => {
                    testkit::skipped(&format!("no IPv6: {error}"));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[tokio::test]
    async fn packets_larger_than_the_link_are_errors() {
        let options = EchoOptions {
            data: 65_536 - 28,
            link: Some("lo"),
            is_whole: true,
            ..OPTIONS
        };
        match echo("127.0.0.1".parse().unwrap(), options).await {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                testkit::skipped("raw sockets are forbidden");
            }
            other => assert!(other.is_err(), "{other:?}"),
        }
    }

    #[test]
    fn answers_have_the_identifier() {
        let target: IpAddr = "10.0.0.1".parse().unwrap();
        let mut packet = vec![0x45; 20];
        packet.extend(request(target, 7, 9, 0));
        assert_eq!(answer(target, &packet, 7), None);
        packet[20] = 0;
        assert_eq!(answer(target, &packet, 7), Some(9));
        assert_eq!(answer(target, &packet, 8), None);
        assert_eq!(answer(target, &[0x4f, 0], 7), None);
    }

    #[test]
    fn checksums_add_up() {
        let packet = request("10.0.0.1".parse().unwrap(), 0x1234, 1, 3);
        assert_eq!(checksum(&packet), 0);
    }
}
