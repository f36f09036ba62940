//! A connection to a replica.
//!
//! The task of its client drives it: a task of its own would cost each request two switches between tasks. Only an
//! upload has one, since it may go on while nothing of the response is read.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::replay_body::AttemptBody;
use super::socket::{Exchange, Socket};
use crate::deadline_timer::DeadlineTimer;
use crate::server::MAX_BUFFER;

/// Shorter than the servers' own idle limit, so that a pooled connection is seldom closed under a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Read buffer and longest response head. Units: bytes. Larger buffers make nothing faster.
const BUFFER_BYTES: usize = 16 * 1024;
/// Memory of a long response that its client does not read: the send buffer with the piece that filled it, a piece on the
/// way there, and the read buffer. Units: bytes.
pub(super) const HELD_BYTES: usize = MAX_BUFFER + 3 * BUFFER_BYTES;
/// Idle time before the first TCP keep-alive probe, and interval of further ones.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Unanswered keep-alive probes after which the connection is dead.
const KEEPALIVE_PROBES: u32 = 3;
/// `TCP_USER_TIMEOUT`: how long sent data may stay unacknowledged. Units: milliseconds.
const UNACKNOWLEDGED_MS: u32 = 30_000;

/// hyper has no public name for a connection that may be upgraded.
type HttpConnection = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A connection that one request at a time may use.
pub(super) struct Connection {
    sender: SendRequest<AttemptBody>,
    driver: Driver,
    pub(super) exchange: Arc<Exchange>,
    /// Whether it carried a request before, so that the replica may be closing it.
    pub(super) is_reused: bool,
    idle_since: Instant,
    timer: DeadlineTimer,
}

/// The task that reads and writes a connection.
enum Driver {
    /// That of the client, which waits for the response.
    Client(HttpConnection),
    /// One of its own.
    Task(JoinHandle<()>),
    Ended,
}

/// Outcome of a request.
pub(super) enum ExchangeOutcome {
    Response(Response<Incoming>),
    Failed(TrySendError<Request<AttemptBody>>),
    /// The connection had ended before the request was sent.
    Unsent,
    /// No response came in time.
    Timeout,
}

impl Connection {
    /// Opens one.
    ///
    /// Errors: refused, no route, no answer in time.
    pub(super) async fn open(address: SocketAddr, connect_timeout: Duration) -> io::Result<Self> {
        let stream = tokio::time::timeout(connect_timeout, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, KEEPALIVE)?;
        sockopt::set_tcp_keepintvl(&stream, KEEPALIVE)?;
        sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_PROBES)?;
        sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED_MS)?;
        let exchange = Arc::new(Exchange::default());
        let io = TokioIo::new(Socket::new(stream, exchange.clone()));
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(BUFFER_BYTES)
            .handshake(io)
            .await
            .map_err(io::Error::other)?;
        Ok(Self {
            sender,
            driver: Driver::Client(Box::pin(connection.with_upgrades())),
            exchange,
            is_reused: false,
            idle_since: Instant::now(),
            timer: DeadlineTimer::default(),
        })
    }

    /// Gives it a task of its own from now on.
    pub(super) fn detach(&mut self) {
        self.driver.detach();
    }

    /// Marks it as upgraded; it never returns to the pool.
    pub(super) fn become_tunnel(mut self) {
        self.exchange.become_tunnel();
        // The upgrade completes there.
        self.detach();
    }

    /// Sends `request` and waits for the head of its response, until `response_timeout`.
    pub(super) async fn send(
        &mut self,
        request: Request<AttemptBody>,
        response_timeout: Duration,
    ) -> ExchangeOutcome {
        self.exchange.begin();
        let deadline = tokio::time::Instant::now() + response_timeout;
        let sent = self.sender.try_send_request(request);
        // It waits for nothing but this task, whose budget must not put it off.
        let mut sent = pin!(tokio::task::unconstrained(sent));
        let (driver, timer) = (&mut self.driver, &mut self.timer);
        std::future::poll_fn(|cx| {
            let answered = driver.poll_with(cx, |cx| sent.as_mut().poll(cx));
            match answered {
                Poll::Ready(Some(Ok(response))) => Poll::Ready(ExchangeOutcome::Response(response)),
                Poll::Ready(Some(Err(error))) => Poll::Ready(ExchangeOutcome::Failed(error)),
                Poll::Ready(None) => Poll::Ready(ExchangeOutcome::Unsent),
                Poll::Pending => timer
                    .poll_until(cx, deadline)
                    .map(|()| ExchangeOutcome::Timeout),
            }
        })
        .await
    }

    /// The next frame of the response's `body`.
    pub(super) fn poll_body(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = self
            .driver
            .poll_with(cx, |cx| Pin::new(&mut *body).poll_frame(cx));
        // hyper has reported a body that was cut by now: only the end is left.
        polled.map(Option::flatten)
    }

    /// Prepares it for the pool, where nothing drives it.
    pub(super) fn park(&mut self) {
        self.is_reused = true;
        self.idle_since = Instant::now();
        self.is_open();
    }

    /// Whether it is open, and not idle for too long.
    pub(super) fn is_usable(&mut self) -> bool {
        self.idle_since.elapsed() < IDLE_TIMEOUT && self.is_open()
    }

    /// Whether it can take a request at once.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Whether neither side has closed it.
    fn is_open(&mut self) -> bool {
        if let Driver::Client(_) = self.driver {
            // Reads the end of the stream if it has come since; there is no task to wake.
            let _ = self.driver.poll(&mut Context::from_waker(Waker::noop()));
        }
        !self.sender.is_closed()
    }
}

impl Driver {
    fn detach(&mut self) {
        match std::mem::replace(self, Self::Ended) {
            Self::Client(connection) => {
                *self = Self::Task(tokio::spawn(async move {
                    // A request in flight gets the error itself.
                    if let Err(error) = connection.await {
                        tracing::trace!(%error, "replica connection ended");
                    }
                }));
            }
            other => *self = other,
        }
    }

    /// Ready once the connection has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ended = match self {
            Self::Client(connection) => connection.as_mut().poll(cx).map(|ended| {
                if let Err(error) = ended {
                    tracing::trace!(%error, "replica connection ended");
                }
            }),
            Self::Task(task) => Pin::new(task).poll(cx).map(|_ended| ()),
            Self::Ended => Poll::Ready(()),
        };
        if ended.is_ready() {
            *self = Self::Ended;
        }
        ended
    }

    /// Drives the connection until `outcome` of it is ready; none when it has ended without one.
    ///
    /// hyper queues a request for the task of its connection. If that ends at this very moment, the request may be
    /// queued after the queue was emptied, and its outcome never comes (tokio's mpsc, as of 1.54).
    fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut outcome: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        let is_driven = matches!(self, Self::Client(_));
        let mut polled = |waker: &Waker| {
            // Nothing but the driver makes it ready.
            let waker = if is_driven { Waker::noop() } else { waker };
            outcome(&mut Context::from_waker(waker))
        };
        if let Poll::Ready(value) = polled(cx.waker()) {
            return Poll::Ready(Some(value));
        }
        let ended = self.poll(cx);
        // An outcome is there before the end. It may have come since the poll above.
        match polled(cx.waker()) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => ended.map(|()| None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn task(ended: impl Future<Output = ()> + Send + 'static) -> Driver {
        Driver::Task(tokio::spawn(ended))
    }

    async fn outcome<T>(driver: &mut Driver, outcome: impl Future<Output = T>) -> Option<T> {
        let mut outcome = pin!(outcome);
        std::future::poll_fn(|cx| driver.poll_with(cx, |cx| outcome.as_mut().poll(cx))).await
    }

    #[tokio::test]
    async fn a_request_that_outlives_its_connection_is_stranded() {
        let mut driver = task(pending());
        assert_eq!(outcome(&mut driver, ready(1)).await, Some(1));
        let mut driver = task(ready(()));
        assert_eq!(outcome(&mut driver, pending::<u8>()).await, None);
        assert!(matches!(driver, Driver::Ended));
        assert_eq!(outcome(&mut driver, ready(1)).await, Some(1));
        assert_eq!(outcome(&mut driver, pending::<u8>()).await, None);
    }

    #[tokio::test]
    async fn an_outcome_just_before_the_end_counts() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut driver = task(async { sender.send(1).unwrap() });
        assert_eq!(outcome(&mut driver, receiver).await, Some(Ok(1)));
    }
}
