//! A raw socket in the runtime.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;

use socket2::{SockAddr, Socket};
use tokio::io::unix::AsyncFd;

use super::{MacAddress, Neighbours};

/// Longer answers are cut: their end is not read. Units: bytes.
const MAX_ANSWER: usize = 256;

/// A raw socket. Opening one needs rights (`CAP_NET_RAW`).
#[derive(Debug)]
pub(super) struct RawSocket(AsyncFd<Socket>);

impl RawSocket {
    /// Takes a socket that does not block.
    #[expect(unsafe_code, reason = "tokio has no safe constructor")]
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        // SAFETY: `Socket` owns its descriptor, which is open until it is dropped, and `AsyncFd` owns the `Socket` from
        // here: `get` lends it by a shared reference only, with which no safe code closes or replaces the descriptor.
        Ok(Self(unsafe { AsyncFd::register(socket) }?))
    }

    pub(super) fn get(&self) -> &Socket {
        self.0.get_ref()
    }

    /// The hardware addresses that answer while `ask` sends its questions.
    ///
    /// Errors: those of `ask`; the link goes down.
    pub(super) async fn answers(
        &self,
        ask: impl Future<Output = io::Result<()>>,
        read: impl Fn(&[u8]) -> Option<(IpAddr, MacAddress)>,
    ) -> io::Result<Neighbours> {
        let mut neighbours = Neighbours::new();
        let mut buffer = [0; MAX_ANSWER];
        tokio::pin!(ask);
        loop {
            let length = tokio::select! {
                asked = &mut ask => return asked.map(|()| neighbours),
                length = self.receive(&mut buffer) => length?,
            };
            if let Some((address, mac)) = read(&buffer[..length]) {
                neighbours.entry(address).or_default().insert(mac);
            }
        }
    }

    pub(super) async fn send_to(&self, packet: &[u8], to: &SockAddr) -> io::Result<()> {
        loop {
            let mut ready = self.0.writable().await?;
            if let Ok(sent) = ready.try_io(|socket| socket.get_ref().send_to(packet, to)) {
                return sent.map(drop);
            }
        }
    }

    /// The length of the next packet, which is cut to the buffer.
    pub(super) async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let read = ready
                .try_io(|socket| Ok(rustix::io::read(socket.get_ref().as_fd(), &mut *buffer)?));
            if let Ok(read) = read {
                return read;
            }
        }
    }
}
