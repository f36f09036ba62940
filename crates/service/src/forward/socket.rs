//! A connection that tells whether the other side can have read what was sent.
//!
//! A server that ends closes its idle connections, and a request may be on its way just then. TCP tells such a
//! request from one whose server died over it: when any byte was not read, a reset comes before or right after the
//! end of the stream; when all were, none does. A long request may have been read in part, though: only of one
//! that a server reads at once does a reset say that nothing was read, and even then its body may have come late.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Interval;

/// How often a reset is looked for after the end of the stream.
const RESET_INTERVAL: Duration = Duration::from_millis(2);
/// Units: looks. Together 100 ms: many round trips between containers, little for who gets an error anyway.
const RESET_LOOKS: u32 = 50;

/// Units: bytes. What a server reads at once when it is there; hyper's first read has this size.
pub(super) const FIRST_READ_BYTES: usize = 8192;

/// What became of the request that is on a connection.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    sent_bytes: AtomicUsize,
    answered: AtomicBool,
    reset: AtomicBool,
    is_tunnel: AtomicBool,
}

impl Exchange {
    /// The next request is about to be sent.
    pub(super) fn begin(&self) {
        self.sent_bytes.store(0, Ordering::Relaxed);
        self.answered.store(false, Ordering::Relaxed);
        self.reset.store(false, Ordering::Relaxed);
    }

    /// Whether the other side refused a short request, without a byte of an answer.
    pub(super) fn was_unread(&self) -> bool {
        self.reset.load(Ordering::Relaxed)
            && !self.answered.load(Ordering::Relaxed)
            && self.sent_bytes.load(Ordering::Relaxed) <= FIRST_READ_BYTES
    }

    /// What it carries from now on is no request.
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
    /// Looks for a reset that are left, once the stream has ended under a request.
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

    /// Ready when a reset followed the end of the stream, or none will.
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (interval, looks) = self
            .ended
            .get_or_insert_with(|| (tokio::time::interval(RESET_INTERVAL), RESET_LOOKS));
        while *looks > 0 {
            if !matches!(self.stream.take_error(), Ok(None)) {
                self.exchange.reset.store(true, Ordering::Relaxed);
                break;
            }
            ready!(interval.poll_tick(cx));
            *looks -= 1;
        }
        *looks = 0;
        Poll::Ready(Ok(()))
    }

    /// A server may answer an upload early and close: its answer can be read although nothing can be written.
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
