//! UDP sockets that report a closed port as an error at once, instead of a timeout.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::net::runtime::{DnsUdpSocket, RuntimeProvider, TokioRuntimeProvider};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Sockets of the runtime, with connected UDP sockets.
#[derive(Clone, Default)]
pub(super) struct Sockets(TokioRuntimeProvider);

impl RuntimeProvider for Sockets {
    type Handle = <TokioRuntimeProvider as RuntimeProvider>::Handle;
    type Timer = <TokioRuntimeProvider as RuntimeProvider>::Timer;
    type Udp = ConnectedSocket;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> Self::Handle {
        self.0.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        local: Option<SocketAddr>,
        wait: Option<Duration>,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Tcp>>>> {
        self.0.connect_tcp(server, local, wait)
    }

    fn bind_udp(
        &self,
        local: SocketAddr,
        server: SocketAddr,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Udp>>>> {
        Box::pin(async move {
            let socket = UdpSocket::bind(local).await?;
            socket.connect(server).await?;
            Ok(ConnectedSocket(socket))
        })
    }
}

/// A connected UDP socket, which gets the ICMP errors of its server.
pub(super) struct ConnectedSocket(UdpSocket);

#[async_trait]
impl DnsUdpSocket for ConnectedSocket {
    type Time = <TokioRuntimeProvider as RuntimeProvider>::Timer;

    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        DnsUdpSocket::poll_recv_from(&self.0, cx, buffer)
    }

    /// Waits for errors, too, since they do not make a socket readable.
    async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        loop {
            let ready = self.0.ready(Interest::READABLE | Interest::ERROR).await?;
            match self.0.try_recv_from(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received,
            }
            if ready.is_error() {
                let error = self.0.take_error()?;
                return Err(error.unwrap_or_else(|| io::ErrorKind::ConnectionRefused.into()));
            }
        }
    }

    fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.0.poll_send_to(cx, bytes, target)
    }
}
