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

use super::clients::TrustedProxies;
use super::connections::{Connection, Connections, RequestCounter};
use super::refusals;
use crate::deadline_timer::DeadlineTimer;

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
    pub(super) trusted: TrustedProxies,
    pub(super) write_timeout: Duration,
    pub(super) header_timeout: Duration,
}

/// An admitted connection.
#[derive(Debug)]
pub(super) struct AdmittedStream<I> {
    stream: I,
    write_timeout: Duration,
    timer: DeadlineTimer,
    /// Start of the stall, while the client reads none of the bytes for it.
    stalled_since: Option<Instant>,
    head: IncomingHead,
    connection: Connection,
}

/// A request head on its way. To hyper, an idle connection is one that waits for a head: its timeout is the longer one.
#[derive(Debug)]
struct IncomingHead {
    timeout: Duration,
    timer: DeadlineTimer,
    /// Of HTTP/1; absent before the first byte.
    is_http1: Option<bool>,
    /// Its first byte, and the number of requests before it.
    since: Option<(Instant, usize)>,
}

impl IncomingHead {
    fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            timer: DeadlineTimer::default(),
            is_http1: None,
            since: None,
        }
    }

    fn receive(&mut self, bytes: &[u8], connection: &Connection) {
        // The preface of HTTP/2, whose frames belong to no request. Source: RFC 9113, section 3.4.
        let is_http1 = *self
            .is_http1
            .get_or_insert_with(|| !bytes.starts_with(b"PRI"));
        let before = connection.requests_before_idle();
        match before.filter(|_| is_http1 && !bytes.is_empty()) {
            Some(before) if self.since.is_none_or(|(_, known)| known != before) => {
                self.since = Some((Instant::now(), before));
            }
            Some(_) => {}
            None => self.since = None,
        }
    }

    /// Ready when it takes too long.
    fn poll_late(&mut self, cx: &mut Context<'_>, connection: &Connection) -> Poll<()> {
        match self.since {
            Some((since, before)) if connection.requests_before_idle() == Some(before) => {
                self.timer.poll_until(cx, since + self.timeout)
            }
            _ => {
                self.since = None;
                Poll::Pending
            }
        }
    }
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
            head: IncomingHead::new(self.header_timeout),
            connection,
        }
    }

    /// Errors: the connection is one too many.
    pub(super) fn admit(&self, peer: SocketAddr) -> io::Result<Connection> {
        let peer = peer.ip();
        let opened = if self.trusted.contain(peer) {
            self.connections.open(None)
        } else if self.trusted.may_contain(peer) {
            self.connections.open_of_proxy(peer.into())
        } else {
            self.connections.open(Some(peer.into()))
        };
        opened.map_err(|exceeded| {
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
        let this = &mut *self;
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
        if polled.is_ready() {
            this.head.receive(&buf.filled()[before..], &this.connection);
            this.connection.touch();
            return polled;
        }
        if this.connection.poll_evicted(cx).is_ready() {
            return Poll::Ready(Err(eviction()));
        }
        if this.head.poll_late(cx, &this.connection).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
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
                head: IncomingHead::new(TIMEOUT),
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

    #[tokio::test]
    async fn a_head_is_late_and_an_idle_connection_is_not() {
        let connection = Connections::new(0, 0).open(None).unwrap();
        let is_late = async |head: &mut IncomingHead| {
            let late = std::future::poll_fn(|cx| head.poll_late(cx, &connection));
            tokio::time::timeout(TIMEOUT, late).await.is_ok()
        };
        let mut head = IncomingHead::new(TIMEOUT / 50);
        assert!(!is_late(&mut head).await);
        head.receive(b"G", &connection);
        assert!(is_late(&mut head).await);
        // Its request is in flight, its body comes, and it has ended.
        let request = connection.requests().count();
        assert!(!is_late(&mut head).await);
        head.receive(b"body", &connection);
        drop(request);
        assert!(!is_late(&mut head).await);
        // The next head; a whole request passes between two reads.
        head.receive(b"G", &connection);
        drop(connection.requests().count());
        assert!(!is_late(&mut head).await);
        let mut of_http2 = IncomingHead::new(TIMEOUT / 50);
        of_http2.receive(b"PRI * HTTP/2.0", &connection);
        assert!(!is_late(&mut of_http2).await);
    }
}
