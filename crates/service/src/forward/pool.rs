//! Connection pool of one replica.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::replay_body::AttemptBody;
use super::socket::{Exchange, Socket};

/// A live replica accepts within a round trip; this allows for one lost packet.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Shorter than the servers' own idle limit, so that a pooled connection is seldom closed under a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Read buffer and longest response head. Units: bytes. Larger buffers make nothing faster.
const BUFFER_BYTES: usize = 64 * 1024;
/// Most idle connections of a replica. More are opened under load.
const IDLE_CONNECTIONS: usize = 64;
/// Idle time before the first TCP keep-alive probe, and interval of further ones.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Unanswered keep-alive probes after which the connection is dead.
const KEEPALIVE_PROBES: u32 = 3;
/// `TCP_USER_TIMEOUT`: how long sent data may stay unacknowledged. Units: milliseconds.
const UNACKNOWLEDGED_MS: u32 = 30_000;

/// A connection that one request at a time may use.
pub(super) struct Connection {
    pub(super) sender: SendRequest<AttemptBody>,
    pub(super) exchange: Arc<Exchange>,
    /// Cancelled when its task has ended: nothing sends or answers requests any more.
    pub(super) ended: CancellationToken,
    /// Whether it carried a request before, so that the replica may be closing it.
    pub(super) is_reused: bool,
    idle_since: Instant,
}

impl Connection {
    /// Opens one.
    ///
    /// Errors: refused, no route, no answer in time.
    pub(super) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await??;
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
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        tokio::spawn(async move {
            let _guard = guard;
            // A request in flight gets the error itself.
            if let Err(error) = connection.with_upgrades().await {
                tracing::trace!(%error, "replica connection ended");
            }
        });
        Ok(Self {
            sender,
            exchange,
            ended,
            is_reused: false,
            idle_since: Instant::now(),
        })
    }

    fn is_usable(&self) -> bool {
        !self.sender.is_closed() && self.idle_since.elapsed() < IDLE_TIMEOUT
    }
}

/// The idle connections to a replica.
#[derive(Default)]
pub(super) struct Pool(Mutex<IdleConnections>);

#[derive(Default)]
struct IdleConnections {
    connections: Vec<Connection>,
    is_closed: bool,
}

impl Pool {
    /// The most recently used connection that is ready. One that has just carried a response is not ready at once.
    pub(super) fn take(&self) -> Option<Connection> {
        let mut idle = self.lock();
        idle.connections.retain(Connection::is_usable);
        let is_ready = |connection: &Connection| connection.sender.is_ready();
        let ready = idle.connections.iter().rposition(is_ready)?;
        Some(idle.connections.remove(ready))
    }

    /// Pools a connection whose response has been read to its end.
    pub(super) fn put(&self, mut connection: Connection) {
        connection.is_reused = true;
        connection.idle_since = Instant::now();
        let mut idle = self.lock();
        if !idle.is_closed && idle.connections.len() < IDLE_CONNECTIONS {
            idle.connections.push(connection);
        }
    }

    /// Closes the connections that were idle for too long.
    pub(super) fn expire(&self) {
        self.lock().connections.retain(Connection::is_usable);
    }

    /// Closes all connections and pools none from now on.
    pub(super) fn close(&self) {
        let mut idle = self.lock();
        idle.is_closed = true;
        idle.connections.clear();
    }

    fn lock(&self) -> MutexGuard<'_, IdleConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
