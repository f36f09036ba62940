//! Connections that send, or read, as little as they can, from many addresses of the loopback network.

use std::borrow::Cow;
use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};

/// Pause between two bytes of one connection.
const PAUSE: Duration = Duration::from_secs(1);
/// First of the connections' source addresses; fresh clients use 127.0.0.1.
const FIRST: u32 = u32::from_be_bytes([127, 1, 0, 1]);
/// Requests of a client that reads nothing: enough for the buffers of the kernel to be full.
const UNREAD_REQUESTS: usize = 40;
/// Receive buffer of such a client. Units: bytes.
const UNREAD_BUFFER: usize = 4096;

/// The first bytes of a slow connection, and the pattern of the next ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attack {
    /// Nothing.
    Idle,
    /// A request head without an end.
    HalfHead,
    /// A request with a body that is announced and does not arrive.
    HalfBody,
    /// The beginning of a TLS handshake.
    HalfHandshake,
    /// Requests for a path whose responses are not read.
    Unread(&'static str),
}

impl Attack {
    fn opening(self) -> Cow<'static, [u8]> {
        let bytes: &[u8] = match self {
            Self::Idle => b"",
            Self::HalfHead => b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
            Self::HalfBody => {
                b"POST /api/assisted-install/v2/clusters HTTP/1.1\r\nHost: 127.0.0.1\r\n\
                  Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"
            }
            // A record of 512 bytes with a ClientHello of 508.
            Self::HalfHandshake => &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
            Self::Unread(path) => {
                let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
                return request.repeat(UNREAD_REQUESTS).into_bytes().into();
            }
        };
        bytes.into()
    }

    fn next(self) -> &'static [u8] {
        match self {
            Self::Idle | Self::Unread(_) => b"",
            Self::HalfHead => b"x",
            Self::HalfBody => b" ",
            Self::HalfHandshake => &[7],
        }
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle connections",
            Self::HalfHead => "half-sent heads",
            Self::HalfBody => "half-sent bodies",
            Self::HalfHandshake => "half-made handshakes",
            Self::Unread(_) => "unread responses",
        })
    }
}

/// Slow connections, kept slow by a thread until drop. One that the server closes is reopened.
#[derive(Debug)]
pub(super) struct Crowd {
    stop: Arc<AtomicBool>,
    open: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    /// Opens `connections` to `target` from `addresses` loopback addresses; addresses and attacks by turns.
    ///
    /// Errors: no connection at all can be made.
    pub(super) fn gather(
        target: SocketAddr,
        connections: u32,
        addresses: u32,
        attacks: &[Attack],
    ) -> Result<Self> {
        // Each address has a part in all attacks.
        let mut members: Vec<_> = (0..connections)
            .zip(attacks.iter().cycle())
            .map(|(number, attack)| {
                let round = number / u32::try_from(attacks.len()).unwrap_or(u32::MAX);
                SlowClient::new(target, round % addresses, *attack)
            })
            .collect();
        let open = members
            .iter_mut()
            .filter_map(|member| member.join().ok())
            .count();
        if open == 0 {
            bail!("no slow connection to {target} can be made");
        }
        let stop = Arc::new(AtomicBool::new(false));
        let open = Arc::new(AtomicUsize::new(open));
        let (has_ended, count) = (Arc::clone(&stop), Arc::clone(&open));
        let work = move || {
            while !has_ended.load(Ordering::Relaxed) {
                let held = members.iter_mut().filter_map(|member| member.send().ok());
                count.store(held.count(), Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        };
        let thread = std::thread::Builder::new()
            .name("slow clients".to_owned())
            .spawn(work)
            .context("starting the slow clients")?;
        Ok(Self {
            stop,
            open,
            thread: Some(thread),
        })
    }

    /// Connections that the server holds open now.
    pub(super) fn size(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// One slow client.
struct SlowClient {
    target: SocketAddr,
    source: SocketAddrV4,
    attack: Attack,
    stream: Option<TcpStream>,
}

impl SlowClient {
    fn new(target: SocketAddr, address: u32, attack: Attack) -> Self {
        Self {
            target,
            source: SocketAddrV4::new(Ipv4Addr::from(FIRST + address), 0),
            attack,
            stream: None,
        }
    }

    fn join(&mut self) -> Result<()> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &self.source)?;
        if let Attack::Unread(_) = self.attack {
            sockopt::set_socket_recv_buffer_size(&socket, UNREAD_BUFFER)?;
        }
        connect(&socket, &self.target)?;
        let mut stream = TcpStream::from(socket);
        stream.set_nonblocking(true)?;
        stream.write_all(&self.attack.opening())?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Sends the next byte, over a new connection where the server has closed the old one.
    fn send(&mut self) -> Result<()> {
        let Some(stream) = &mut self.stream else {
            return self.join();
        };
        let is_closed = matches!(stream.peek(&mut [0]), Ok(0));
        match stream.write(self.attack.next()) {
            Ok(_) if !is_closed => Ok(()),
            // The server does not read: as slow as can be.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Ok(_) | Err(_) => {
                self.stream = None;
                self.join()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn slow_clients_use_many_addresses_and_reconnect() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = listener.local_addr().unwrap();
        let crowd = Crowd::gather(target, 6, 3, &[Attack::HalfHead]).unwrap();
        let streams: Vec<_> = (0..6).map(|_| listener.accept().unwrap()).collect();
        let mut addresses: Vec<_> = streams.iter().map(|(_, peer)| peer.ip()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 3);
        assert!(!addresses.contains(&Ipv4Addr::LOCALHOST.into()));
        let mut head = [0; 4];
        (&streams[0].0).read_exact(&mut head).unwrap();
        assert_eq!(&head, b"GET ");
        drop(streams);
        // Each reconnects within the next rounds.
        for _ in 0..6 {
            listener.accept().unwrap();
        }
        assert!(crowd.size() > 0);
    }
}
