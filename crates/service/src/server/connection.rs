//! Admission of connections: counted, and closed when their clients stall or when they are evicted.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower_http::add_extension::AddExtension;

use super::clients::IpNetworks;
use super::connections::{Connection, Connections, RequestCounter};
use super::deadline::DeadlineTimer;
use super::refusals;

/// Admits connections within their limits, before anything is read or negotiated.
#[derive(Debug, Clone)]
pub(super) struct AdmittingAcceptor<A> {
    inner: A,
    admission: ConnectionAdmission,
}

/// Limits of connections, and the write timeout of a stalled client.
#[derive(Debug, Clone)]
pub(super) struct ConnectionAdmission {
    pub(super) connections: Connections,
    /// Proxies that are exempt from the limit per client: many clients connect through them.
    pub(super) trusted: IpNetworks,
    pub(super) write_timeout: Duration,
}

/// An admitted connection.
#[derive(Debug)]
pub(super) struct AdmittedStream<I> {
    stream: I,
    write_timeout: Duration,
    timer: DeadlineTimer,
    /// Start of the stall, while the client reads none of the bytes for it.
    stalled_since: Option<Instant>,
    connection: Connection,
}

impl<A> AdmittingAcceptor<A> {
    pub(super) fn new(inner: A, admission: ConnectionAdmission) -> Self {
        Self { inner, admission }
    }
}

impl ConnectionAdmission {
    /// The admitted connection `stream`.
    pub(super) fn admitted<I>(&self, stream: I, connection: Connection) -> AdmittedStream<I> {
        AdmittedStream {
            stream,
            write_timeout: self.write_timeout,
            timer: DeadlineTimer::default(),
            stalled_since: None,
            connection,
        }
    }

    /// Errors: the connection is one too many.
    pub(super) fn admit(&self, peer: SocketAddr) -> io::Result<Connection> {
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
    type Stream = AdmittedStream<A::Stream>;
    type Service = AddExtension<A::Service, RequestCounter>;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let peer = stream.peer_addr();
        let connection = match peer.and_then(|peer| self.admission.admit(peer)) {
            Ok(connection) => connection,
            Err(error) => return Box::pin(async { Err(error) }),
        };
        let admission = self.admission.clone();
        let accepting = self.inner.accept(stream, service);
        Box::pin(async move {
            let (stream, service) = accepting.await?;
            let service = AddExtension::new(service, connection.requests());
            Ok((admission.admitted(stream, connection), service))
        })
    }
}

/// Counts an eviction; the error of its connection.
pub(super) fn eviction() -> io::Error {
    refusals::evicted();
    io::ErrorKind::ConnectionAborted.into()
}

impl<I> AdmittedStream<I> {
    /// `polled`, or an error after the write timeout.
    fn poll_stall<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.connection.set_stalled(polled.is_pending());
        if polled.is_ready() {
            self.stalled_since = None;
            self.connection.touch();
            return polled;
        }
        if self.connection.poll_evicted(cx).is_ready() {
            return Poll::Ready(Err(eviction()));
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        let deadline = since + self.write_timeout;
        if self.timer.poll_until(cx, deadline).is_pending() {
            return Poll::Pending;
        }
        refusals::stalled();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for AdmittedStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if polled.is_ready() {
            self.connection.touch();
            return polled;
        }
        match self.connection.poll_evicted(cx) {
            Poll::Ready(()) => Poll::Ready(Err(eviction())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for AdmittedStream<I> {
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
            let mut admitted = AdmittedStream {
                stream,
                write_timeout: TIMEOUT,
                timer: DeadlineTimer::default(),
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
