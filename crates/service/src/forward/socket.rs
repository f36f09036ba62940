//! A connection that detects whether the replica has read the request.
//!
//! A server that shuts down closes its idle connections, and a request may be in flight just then. TCP distinguishes
//! it from a request whose server died: when any byte was not read, a reset comes before or right after the end of the
//! stream; when all were read, none does. A long request may have been read in part: a reset proves only a short
//! request, which a server reads at once, to be unread, and even then its body may have come late.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Interval;

/// How often the socket is polled for a reset after the end of the stream.
const RESET_INTERVAL: Duration = Duration::from_millis(2);
/// Together 100 ms: many round trips between containers, little for a client that gets an error anyway.
const RESET_POLLS: u32 = 50;

/// Size of a server's first read. Units: bytes. Source: hyper.
pub(super) const FIRST_READ_BYTES: usize = 8192;

/// State of the request on a connection.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    sent_bytes: AtomicUsize,
    answered: AtomicBool,
    reset: AtomicBool,
    is_tunnel: AtomicBool,
}

impl Exchange {
    /// Resets the state before the next request.
    pub(super) fn begin(&self) {
        self.sent_bytes.store(0, Ordering::Relaxed);
        self.answered.store(false, Ordering::Relaxed);
        self.reset.store(false, Ordering::Relaxed);
    }

    /// Whether the replica reset the connection on a short request, without a byte of a response.
    pub(super) fn was_unprocessed(&self) -> bool {
        self.reset.load(Ordering::Relaxed)
            && !self.answered.load(Ordering::Relaxed)
            && self.sent_bytes.load(Ordering::Relaxed) <= FIRST_READ_BYTES
    }

    /// Marks the connection as upgraded.
    pub(super) fn become_tunnel(&self) {
        self.is_tunnel.store(true, Ordering::Relaxed);
    }

    fn is_pending(&self) -> bool {
        self.sent_bytes.load(Ordering::Relaxed) > 0 && !self.answered.load(Ordering::Relaxed)
    }
}

/// A TCP connection to a replica.
pub(super) struct Socket {
    stream: TcpStream,
    exchange: Arc<Exchange>,
    /// Polls for a reset that are left, once the stream has ended under a request.
    ended: Option<(Interval, u32)>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, exchange: Arc<Exchange>) -> Self {
        Self {
            stream,
            exchange,
            ended: None,
        }
    }

    /// Ready when a reset followed the end of the stream, or after the last poll.
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (interval, polls) = self
            .ended
            .get_or_insert_with(|| (tokio::time::interval(RESET_INTERVAL), RESET_POLLS));
        while *polls > 0 {
            if !matches!(self.stream.take_error(), Ok(None)) {
                self.exchange.reset.store(true, Ordering::Relaxed);
                break;
            }
            ready!(interval.poll_tick(cx));
            *polls -= 1;
        }
        *polls = 0;
        Poll::Ready(Ok(()))
    }

    /// A server may respond to an upload early and close: its response can be read although writing fails.
    fn after_write(&self, written: io::Result<usize>, length: usize) -> Poll<io::Result<usize>> {
        let exchange = &self.exchange;
        match &written {
            Ok(bytes) => {
                exchange.sent_bytes.fetch_add(*bytes, Ordering::Relaxed);
            }
            Err(error) if is_reset(error) && !exchange.is_tunnel.load(Ordering::Relaxed) => {
                exchange.reset.store(true, Ordering::Relaxed);
                return Poll::Ready(Ok(length));
            }
            Err(_) => {}
        }
        Poll::Ready(written)
    }
}

fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended.is_some() {
            return self.poll_reset(cx);
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        match &read {
            Ok(()) if buffer.filled().len() > before => {
                self.exchange.answered.store(true, Ordering::Relaxed);
            }
            Ok(()) if self.exchange.is_pending() => return self.poll_reset(cx),
            Err(error) if is_reset(error) => {
                self.exchange.reset.store(true, Ordering::Relaxed);
            }
            Ok(()) | Err(_) => {}
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, data));
        self.after_write(written, data.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = data.iter().map(|part| part.len()).sum();
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, data));
        self.after_write(written, length)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
