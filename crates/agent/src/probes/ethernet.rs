//! Packets of one protocol on one network interface, below IP.

use std::io;

use rustix::fd::AsRawFd as _;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, SockFilter, Socket, Type};

use super::MacAddress;
use super::raw_socket::RawSocket;

pub(crate) const BROADCAST: MacAddress = [0xff; 6];
/// The family and the length of addresses of the link layer.
const FAMILY: libc::sa_family_t = 17;
const LENGTH: libc::socklen_t = 20;
// The numbers are those of the C library.
const _: () = assert!(FAMILY as i32 == libc::AF_PACKET);
const _: () = assert!(LENGTH as usize == size_of::<libc::sockaddr_ll>());
const UNICAST: libc::c_ushort = 3;
const _: () = assert!(UNICAST as i32 == libc::PACKET_MR_UNICAST);
const REQUEST_LENGTH: libc::socklen_t = 16;
const _: () = assert!(REQUEST_LENGTH as usize == size_of::<libc::packet_mreq>());

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

/// A socket for whole frames of one protocol, which are sent and received under a hardware address that is not the link's.
///
/// The kernel adds the address to the filter of the link's hardware while the socket is open. So answers to it arrive also
/// from servers that ignore the wish for broadcasts, without a network interface of its own and without receiving the
/// frames of all hosts.
#[derive(Debug)]
pub(crate) struct FrameSocket {
    socket: RawSocket,
    link: u32,
    protocol: u16,
}

impl FrameSocket {
    /// Opens it on the link with this index, for frames that pass `filter`.
    ///
    /// Errors: without the right to raw sockets, or without such a link of Ethernet.
    pub(crate) fn open(
        link: u32,
        protocol: u16,
        mac: MacAddress,
        filter: &[SockFilter],
    ) -> io::Result<Self> {
        let kind = Some(Protocol::from(i32::from(protocol.to_be())));
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), kind)?;
        socket.attach_filter(filter)?;
        socket.bind(&address(link, protocol, BROADCAST))?;
        receive_as(&socket, link, mac)?;
        Ok(Self {
            socket: RawSocket::new(socket)?,
            link,
            protocol,
        })
    }

    pub(crate) async fn send(&self, frame: &[u8]) -> io::Result<()> {
        let to = address(self.link, self.protocol, BROADCAST);
        self.socket.send_to(frame, &to).await
    }

    /// The length of the next frame, which is cut to the buffer.
    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.receive(buffer).await
    }
}

/// Frames to a hardware address pass the filter of the link. Source: packet(7), `dev_uc_add` of the kernel.
#[expect(unsafe_code, reason = "socket2 and rustix have no such option")]
fn receive_as(socket: &Socket, link: u32, mac: MacAddress) -> io::Result<()> {
    let mut request = libc::packet_mreq {
        mr_ifindex: link.cast_signed(),
        mr_type: UNICAST,
        mr_alen: 6,
        mr_address: [0; 8],
    };
    request.mr_address[..6].copy_from_slice(&mac);
    // SAFETY: the socket is open, and the kernel reads `REQUEST_LENGTH` bytes, which is the size of the value that the
    // pointer leads to; it is alive during the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            REQUEST_LENGTH,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
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
