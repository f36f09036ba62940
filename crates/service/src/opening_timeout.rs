//! Timeout of the first bytes of a connection.
//!
//! hyper bounds the time of a request head, but not its wait for the bytes that show the version of HTTP: a silent
//! client would keep its connection for ever.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Length of the HTTP/2 preface; no request is shorter. Units: bytes. Source: RFC 9113 §3.4.
const PREFACE_BYTES: usize = 24;

/// Bounds the time until clients of another acceptor send their first bytes.
#[derive(Debug, Clone)]
pub(crate) struct OpeningAcceptor<A> {
    inner: A,
    limit: Duration,
}

impl<A> OpeningAcceptor<A> {
    pub(crate) fn new(inner: A, limit: Duration) -> Self {
        Self { inner, limit }
    }
}

/// A connection that fails unless its first bytes come before the timeout.
pub(crate) struct OpeningStream<I> {
    stream: I,
    /// Absent once the first bytes are there.
    opening: Option<Opening>,
}

struct Opening {
    /// Units: bytes.
    missing: usize,
    end: Pin<Box<Sleep>>,
}

impl<A, S> Accept<TcpStream, S> for OpeningAcceptor<A>
where
    A: Accept<TcpStream, S>,
    A::Future: Send + 'static,
{
    type Stream = OpeningStream<A::Stream>;
    type Service = A::Service;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let (accepting, limit) = (self.inner.accept(stream, service), self.limit);
        Box::pin(async move {
            let (stream, service) = accepting.await?;
            let opening = Opening {
                missing: PREFACE_BYTES,
                end: Box::pin(tokio::time::sleep(limit)),
            };
            let opening = Some(opening);
            Ok((OpeningStream { stream, opening }, service))
        })
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for OpeningStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Some(opening) = &mut self.opening {
            opening.missing = opening.missing.saturating_sub(buf.filled().len() - before);
            if opening.missing == 0 {
                self.opening = None;
            } else if polled.is_pending() && opening.end.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        polled
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for OpeningStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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
