//! Connections as the server admits them: counted, and closed when their clients take no bytes of an answer, or when
//! others need their place.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::clients::Networks;
use super::connections::{Connection, Connections};
use super::patience::Patience;
use super::refusals;

/// Admits connections within their quota, before anything is read or negotiated.
#[derive(Debug, Clone)]
pub(super) struct AdmittingAcceptor<A> {
    inner: A,
    admission: Admission,
}

/// Who is admitted, and for how long a client may stall.
#[derive(Debug, Clone)]
pub(super) struct Admission {
    pub(super) connections: Connections,
    /// Exempt from the bound of a client: the clients of many connect through them.
    pub(super) trusted: Networks,
    pub(super) write_timeout: Duration,
}

/// An admitted connection.
#[derive(Debug)]
pub(super) struct Admitted<I> {
    stream: I,
    write_timeout: Duration,
    patience: Patience,
    /// Since when the client has taken no byte, while there are some for it.
    stalled_since: Option<Instant>,
    connection: Connection,
}

impl<A> AdmittingAcceptor<A> {
    pub(super) fn new(inner: A, admission: Admission) -> Self {
        Self { inner, admission }
    }
}

impl Admission {
    fn admit(&self, peer: SocketAddr) -> io::Result<Connection> {
        let peer = peer.ip();
        let client = (!self.trusted.contain(peer)).then(|| peer.into());
        self.connections.open(client).map_err(|exceeded| {
            refusals::connection(exceeded);
            io::Error::other("too many connections")
        })
    }
}

impl<A, S> Accept<TcpStream, S> for AdmittingAcceptor<A>
where
    A: Accept<TcpStream, S>,
    A::Future: Send + 'static,
{
    type Stream = Admitted<A::Stream>;
    type Service = A::Service;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let peer = stream.peer_addr();
        let connection = match peer.and_then(|peer| self.admission.admit(peer)) {
            Ok(connection) => connection,
            Err(error) => return Box::pin(async { Err(error) }),
        };
        let write_timeout = self.admission.write_timeout;
        let accepting = self.inner.accept(stream, service);
        Box::pin(async move {
            // A handshake that takes its time holds a place, too.
            let evicted = std::future::poll_fn(|cx| connection.poll_evicted(cx));
            let (stream, service) = tokio::select! {
                accepted = accepting => accepted?,
                () = evicted => return Err(gave_way()),
            };
            let admitted = Admitted {
                stream,
                write_timeout,
                patience: Patience::default(),
                stalled_since: None,
                connection,
            };
            Ok((admitted, service))
        })
    }
}

/// The error of a connection whose place another client has taken.
fn gave_way() -> io::Error {
    refusals::evicted();
    io::ErrorKind::ConnectionAborted.into()
}

impl<I> Admitted<I> {
    /// `polled`, or an error when the client has stalled for too long.
    fn poll_stall<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled_since = None;
            self.connection.is_active();
            return polled;
        }
        if self.connection.poll_evicted(cx).is_ready() {
            return Poll::Ready(Err(gave_way()));
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        let deadline = since + self.write_timeout;
        if self.patience.poll_until(cx, deadline).is_pending() {
            return Poll::Pending;
        }
        refusals::stalled();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Admitted<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if polled.is_ready() {
            self.connection.is_active();
            return polled;
        }
        match self.connection.poll_evicted(cx) {
            Poll::Ready(()) => Poll::Ready(Err(gave_way())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Admitted<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.poll_stall(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.poll_stall(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.poll_stall(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.poll_stall(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(500);

    // limit: stalled reading of an answer
    #[tokio::test]
    async fn a_client_that_takes_no_byte_for_too_long_is_cut_off() {
        for (pause, is_cut) in [(TIMEOUT / 50, false), (TIMEOUT * 20, true)] {
            let (mut client, stream) = tokio::io::duplex(8);
            let mut admitted = Admitted {
                stream,
                write_timeout: TIMEOUT,
                patience: Patience::default(),
                stalled_since: None,
                connection: Connections::new(0, 0).open(None).unwrap(),
            };
            let reading = tokio::spawn(async move {
                let mut buffer = [0; 8];
                // Longer than the bound in all: each byte begins a new wait.
                loop {
                    tokio::time::sleep(pause).await;
                    if client.read_exact(&mut buffer).await.is_err() {
                        return;
                    }
                }
            });
            let written = admitted.write_all(&[7; 8 * 100]).await;
            let error = written.err().map(|error| error.kind());
            assert_eq!(error, is_cut.then_some(io::ErrorKind::TimedOut));
            reading.abort();
        }
    }
}
