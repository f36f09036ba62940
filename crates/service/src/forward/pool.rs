//! Connections to one replica: opened when needed, kept for a while.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use tokio::net::TcpStream;

use super::body::Outgoing;
use super::socket::{Exchange, Socket};

/// A live neighbour accepts within a round trip; one lost packet is allowed for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Shorter than the servers' own idle limit, so that a pooled connection is seldom closed under a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Units: bytes read ahead of a slow client, and the longest head of an answer. Larger ones make nothing faster.
const BUFFER_BYTES: usize = 64 * 1024;
/// Units: connections per replica. More are opened under load; these stay.
const IDLE_CONNECTIONS: usize = 64;
/// When a silent neighbour is asked whether its machine is still there, and how often.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Units: unanswered questions after which a machine is taken for dead.
const KEEPALIVE_PROBES: u32 = 3;
/// Units: milliseconds that sent data may stay unacknowledged by the other machine.
const UNACKNOWLEDGED_MS: u32 = 30_000;

/// A connection that one request at a time may use.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Outgoing>,
    pub(super) exchange: Arc<Exchange>,
    /// Whether a request has been on it already, so that the other side may be closing it.
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
        tokio::spawn(async move {
            // Whoever has a request on it learns the reason there.
            if let Err(error) = connection.with_upgrades().await {
                tracing::trace!(%error, "a connection to a replica ended");
            }
        });
        Ok(Self {
            sender,
            exchange,
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
pub(super) struct Pool(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    connections: Vec<Connection>,
    is_closed: bool,
}

impl Pool {
    /// The connection that was used last, when there is one. A connection that has just carried its answer needs
    /// a moment until it takes the next request.
    pub(super) fn take(&self) -> Option<Connection> {
        let mut idle = self.lock();
        idle.connections.retain(Connection::is_usable);
        let is_ready = |connection: &Connection| connection.sender.is_ready();
        let ready = idle.connections.iter().rposition(is_ready)?;
        Some(idle.connections.remove(ready))
    }

    /// Keeps a connection whose answer has been read to its end.
    pub(super) fn put(&self, mut connection: Connection) {
        connection.is_reused = true;
        connection.idle_since = Instant::now();
        let mut idle = self.lock();
        if !idle.is_closed && idle.connections.len() < IDLE_CONNECTIONS {
            idle.connections.push(connection);
        }
    }

    /// Drops the connections that nobody has needed for a while.
    pub(super) fn expire(&self) {
        self.lock().connections.retain(Connection::is_usable);
    }

    /// Drops all connections and keeps none from now on.
    pub(super) fn close(&self) {
        let mut idle = self.lock();
        idle.is_closed = true;
        idle.connections.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
