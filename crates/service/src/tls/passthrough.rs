//! Connections for one server name that pass to another server with their TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use net::resolve::Resolver;
use rustix::net::sockopt;
use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::access_log::{AccessLog, PassedConnection};
use crate::limits::{Bound, Limit};
use crate::splice::{self, MovedBytes};

/// Longest time until one of the server's addresses accepts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest silence of both sides. Source: the specification's timeouts of the reverse proxy.
const IDLE_TIMEOUT: Duration = Duration::from_hours(10);
/// A fatal alert, `internal_error`: clients show it, instead of an unexplained end. Source: RFC 8446, section 6.
const INTERNAL_ERROR: &[u8] = b"\x15\x03\x03\x00\x02\x02\x50";
/// Time before the first TCP keep-alive probe of a silent client or server, and between two.
const KEEPALIVE: Duration = Duration::from_mins(1);

/// Passed connections, by result.
const CONNECTIONS: &str = "atoll_passthrough_connections_total";

/// The server whose connections pass; shared by its clones. It may be replaced: connections keep theirs.
#[derive(Debug, Clone)]
pub struct Passthrough(Arc<RwLock<Arc<PassthroughTarget>>>);

/// State of the server whose connections pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassthroughStatus {
    /// Name that clients ask for.
    pub server_name: String,
    /// Host and port.
    pub address: String,
    /// Whether the last connection to it succeeded; absent before the first.
    pub is_reachable: Option<bool>,
    /// Passed connections that are open.
    pub connections: usize,
}

/// A server whose connections pass.
#[derive(Debug)]
pub(crate) struct PassthroughTarget {
    /// In lower case.
    server_name: String,
    host: String,
    port: u16,
    names: Resolver,
    round_robin: AtomicUsize,
    is_tried: AtomicBool,
    is_unreachable: AtomicBool,
    connections: AtomicUsize,
    log: AccessLog,
}

/// A passed connection; logged when it is dropped.
struct OpenTunnel<'a> {
    target: &'a PassthroughTarget,
    started: Instant,
    client: Option<SocketAddr>,
    server: Option<SocketAddr>,
    moved: MovedBytes,
}

impl Drop for OpenTunnel<'_> {
    fn drop(&mut self) {
        self.target.connections.fetch_sub(1, Ordering::Relaxed);
        if self.target.log.is_on() {
            let passed = PassedConnection {
                started: self.started,
                client: self.client,
                server_name: &self.target.server_name,
                replica: self.server,
                received: self.moved.from_one.load(Ordering::Relaxed),
                sent: self.moved.from_other.load(Ordering::Relaxed),
            };
            passed.log();
        }
    }
}

impl Passthrough {
    /// Clients that ask for `server_name` are connected to one of the addresses of `host`, in turn; `log` has a line for
    /// each.
    pub fn new(
        server_name: &str,
        (host, port): (&str, u16),
        names: Resolver,
        log: AccessLog,
    ) -> Self {
        metrics::describe_counter!(CONNECTIONS, "Connections that passed with their TLS");
        let target = PassthroughTarget::new(server_name, (host, port), names, log);
        Self(Arc::new(RwLock::new(Arc::new(target))))
    }

    /// Connects further clients that ask for `server_name` to `host`; one that was given before stays as it is.
    pub fn replace(&self, server_name: &str, (host, port): (&str, u16)) {
        let old = self.target();
        let (names, log) = (old.names.clone(), old.log.clone());
        let target = PassthroughTarget::new(server_name, (host, port), names, log);
        let is_same = (&old.server_name, &old.host, old.port)
            == (&target.server_name, &target.host, target.port);
        if !is_same {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(target);
        }
    }

    /// Its state now.
    pub fn status(&self) -> PassthroughStatus {
        let target = self.target();
        PassthroughStatus {
            server_name: target.server_name.clone(),
            address: format!("{}:{}", target.host, target.port),
            is_reachable: target
                .is_tried
                .load(Ordering::Relaxed)
                .then(|| !target.is_unreachable.load(Ordering::Relaxed)),
            connections: target.connections.load(Ordering::Relaxed),
        }
    }

    fn target(&self) -> Arc<PassthroughTarget> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Limits of passed connections, which count as connections, too.
    pub fn limits() -> Vec<Limit> {
        let closed = "connection closed";
        vec![Limit::fixed(
            "silence of a tunnel",
            Bound::Time(IDLE_TIMEOUT),
            "passed connection",
            closed,
        )]
    }

    /// The server that connections for `name` (lower case) pass to.
    pub(crate) fn route(&self, name: Option<&str>) -> Option<Arc<PassthroughTarget>> {
        let target = self.target();
        (name == Some(target.server_name.as_str())).then_some(target)
    }
}

impl PassthroughTarget {
    fn new(server_name: &str, (host, port): (&str, u16), names: Resolver, log: AccessLog) -> Self {
        Self {
            server_name: server_name.to_ascii_lowercase(),
            host: host.to_owned(),
            port,
            names,
            round_robin: AtomicUsize::new(0),
            is_tried: AtomicBool::new(false),
            is_unreachable: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            log,
        }
    }

    /// Connects `client` to the server, which gets `received` first, and carries bytes until both have ended.
    ///
    /// Errors: no address accepts, of which the client gets an alert; a broken connection.
    pub(crate) async fn carry(&self, mut client: TcpStream, received: Vec<u8>) -> io::Result<()> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let mut open = OpenTunnel {
            target: self,
            started: Instant::now(),
            client: client.peer_addr().ok(),
            server: None,
            moved: MovedBytes::default(),
        };
        let connected = timeout(CONNECT_TIMEOUT, self.connect()).await;
        let connected = connected.unwrap_or_else(|elapsed| Err(elapsed.into()));
        let result = if connected.is_ok() {
            "passed"
        } else {
            "unreachable"
        };
        metrics::counter!(CONNECTIONS, "result" => result).increment(1);
        self.log_change(connected.as_ref().err());
        let mut server = match connected {
            Ok(server) => server,
            Err(error) => {
                client.write_all(INTERNAL_ERROR).await?;
                client.shutdown().await?;
                return Err(error);
            }
        };
        open.server = server.peer_addr().ok();
        server.write_all(&received).await?;
        let length = received.len() as u64;
        open.moved.from_one.fetch_add(length, Ordering::Relaxed);
        drop(received);
        keep_alive(&client)?;
        keep_alive(&server)?;
        splice::tunnel(&client, &server, IDLE_TIMEOUT, &open.moved).await
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let addresses = self.names.lookup(&self.host).await;
        let addresses = addresses.map_err(io::Error::other)?;
        let first = self.round_robin.fetch_add(1, Ordering::Relaxed);
        let mut last = io::Error::other("its name has no address");
        for index in 0..addresses.len() {
            let ip = addresses[(first + index) % addresses.len()];
            match TcpStream::connect(SocketAddr::new(ip, self.port)).await {
                Ok(server) => {
                    server.set_nodelay(true)?;
                    return Ok(server);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn log_change(&self, error: Option<&io::Error>) {
        let was = self.is_unreachable.swap(error.is_some(), Ordering::Relaxed);
        self.is_tried.store(true, Ordering::Relaxed);
        let (name, host, port) = (&self.server_name, &self.host, self.port);
        match error {
            Some(error) if !was => {
                tracing::warn!(name, host, port, %error, "server of passed connections cannot be reached: clients get an alert");
            }
            None if was => tracing::info!(
                name,
                host,
                port,
                "server of passed connections reached again"
            ),
            _ => {}
        }
    }
}

fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    Ok(sockopt::set_tcp_keepintvl(stream, KEEPALIVE)?)
}
