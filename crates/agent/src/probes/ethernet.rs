//! Packets of one protocol on one network interface, below IP.

use std::io;

use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

use super::MacAddress;
use super::raw_socket::RawSocket;

pub(super) const BROADCAST: MacAddress = [0xff; 6];
/// The family and the length of addresses of the link layer.
const FAMILY: libc::sa_family_t = 17;
const LENGTH: libc::socklen_t = 20;
// The numbers are those of the C library.
const _: () = assert!(FAMILY as i32 == libc::AF_PACKET);
const _: () = assert!(LENGTH as usize == size_of::<libc::sockaddr_ll>());

/// A socket for the packets of one protocol. The kernel adds and removes Ethernet's own header.
#[derive(Debug)]
pub(super) struct EthernetSocket {
    socket: RawSocket,
    link: u32,
    protocol: u16,
}

impl EthernetSocket {
    /// Opens it on the link with this index.
    ///
    /// Errors: without the right to raw sockets, or without such a link.
    pub(super) fn open(link: u32, protocol: u16) -> io::Result<Self> {
        let kind = Some(Protocol::from(i32::from(protocol.to_be())));
        let socket = Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), kind)?;
        socket.bind(&address(link, protocol, BROADCAST))?;
        Ok(Self {
            socket: RawSocket::new(socket)?,
            link,
            protocol,
        })
    }

    pub(super) async fn send(&self, to: MacAddress, packet: &[u8]) -> io::Result<()> {
        let to = address(self.link, self.protocol, to);
        self.socket.send_to(packet, &to).await
    }

    pub(super) fn raw(&self) -> &RawSocket {
        &self.socket
    }
}

/// The address of the link layer. Source: packet(7).
#[expect(unsafe_code, reason = "socket2 has no constructor for these addresses")]
fn address(link: u32, protocol: u16, mac: MacAddress) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: `sockaddr_ll` is a socket address of Linux: it fits into the storage, which is aligned for all of them,
    // and all its fields are integers, for which zeros are valid.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    address.sll_family = FAMILY;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = link.cast_signed();
    address.sll_halen = 6;
    address.sll_addr[..6].copy_from_slice(&mac);
    // SAFETY: the family and all fields of a `sockaddr_ll` are set above, and the length is that of the type.
    unsafe { SockAddr::new(storage, LENGTH) }
}
