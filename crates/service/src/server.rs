//! Listening and ending: plain or TLS, with bounds for slow and greedy clients, drained on shutdown.

mod body;
mod clients;
mod connection;
mod connections;
mod gate;
mod host;
mod patience;
mod quota;
mod refusals;
mod settings;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::SockRef;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::prompt::PromptAcceptor;
use crate::sendfile::{self, WireAcceptor};
use crate::tls::TlsOnlyAcceptor;
use crate::{Error, health, tls};

use body::BodyLimits;
pub(crate) use clients::X_FORWARDED_FOR;
pub use clients::{ClientAddress, Networks};
use connection::{Admission, AdmittingAcceptor};
use connections::Connections;
use gate::{Gate, Rules};
use host::HostRule;
pub(crate) use quota::{ClientQuota, Permit};
pub use settings::HttpSettings;

/// How often a silent client with HTTP/2 is asked whether it is still there.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// How long a client with HTTP/2 may take to say that it is still there.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Units: bytes. What is kept for a client that reads slowly, and the longest request head: hyper's own 400 KiB
/// would be most of the memory of a server with many downloads.
const MAX_BUFFER: usize = 64 * 1024;
/// How long open requests may take to finish: longer ones are resumable downloads.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Units: connections that wait to be accepted; the kernel's own bound may be lower. A burst beyond std's 128 would
/// wait for a second until its packets are sent again.
const BACKLOG: i32 = 1024;

/// An address to listen on.
#[derive(Debug, Clone)]
pub struct Listen {
    /// Port 0 lets the system choose.
    pub address: SocketAddr,
    /// Plain HTTP when absent.
    pub tls: Option<tls::Config>,
    /// Whether HTTP/2 is spoken, too.
    pub speaks_http2: bool,
    /// Bounds of connections that speak it.
    pub http2: Http2,
    /// How long open requests may take to finish after shutdown began.
    pub drain: Duration,
    /// Units: bytes. What the kernel keeps for a client beyond what is on its way to it; nothing for the system's own
    /// bound, which is some megabytes for each client that reads slowly.
    pub unsent_bytes: Option<u32>,
    /// Bounds of its clients, and where the metrics of the server are.
    pub http: HttpSettings,
}

/// Bounds of a connection that speaks HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2 {
    /// Requests that may be open at the same time; nothing for hyper's own bound.
    pub max_streams: Option<u32>,
    /// How often a silent client is asked whether it is still there; nothing for never.
    pub keep_alive_interval: Option<Duration>,
    /// How long it may take to answer that.
    pub keep_alive_timeout: Duration,
}

impl Default for Http2 {
    fn default() -> Self {
        Self {
            max_streams: None,
            keep_alive_interval: Some(KEEP_ALIVE_INTERVAL),
            keep_alive_timeout: KEEP_ALIVE_TIMEOUT,
        }
    }
}

impl Listen {
    /// An address with what suits most servers.
    pub fn new(address: SocketAddr, tls: Option<tls::Config>) -> Self {
        Self {
            address,
            tls,
            speaks_http2: true,
            http2: Http2::default(),
            drain: DRAIN_TIMEOUT,
            unsent_bytes: None,
            http: HttpSettings::default(),
        }
    }

    /// The same address with the bounds that the server's settings give.
    #[must_use]
    pub fn with(mut self, http: &HttpSettings) -> Self {
        self.http = http.clone();
        self
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Running {
    addresses: Vec<SocketAddr>,
    tasks: JoinSet<Result<(), Error>>,
}

impl Running {
    /// The first address, with the port that the system chose.
    ///
    /// Panics: never; a server without an address is not started.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Every address.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Adds a background task that has to end before the server has ended, for instance one that writes what
    /// is still in memory at shutdown.
    pub fn also(&mut self, task: impl Future<Output = Result<(), Error>> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Until every listener and task has ended; the first failure of any.
    pub async fn wait(mut self) -> Result<(), Error> {
        let mut first = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            let ended =
                ended.unwrap_or_else(|e: JoinError| Err(Error::new("running a server task", e)));
            if first.is_ok() {
                first = ended;
            }
        }
        first
    }
}

/// Binds every address and serves `router` there until `shutdown`, then lets open requests finish.
///
/// Errors: an address that cannot be bound, certificate files that cannot be loaded, no address at all.
pub async fn start(
    listens: Vec<Listen>,
    router: Router,
    shutdown: CancellationToken,
) -> Result<Running, Error> {
    let listens = listens.into_iter().map(|listen| (listen, router.clone()));
    start_each(listens.collect(), shutdown).await
}

/// [`start`] with a router for each address. The bounds of clients are those of the first, for all together. After
/// the addresses there is that of the metrics, if the settings name one.
///
/// Errors: as [`start`].
pub async fn start_each(
    mut listens: Vec<(Listen, Router)>,
    shutdown: CancellationToken,
) -> Result<Running, Error> {
    let Some((first, _)) = listens.first() else {
        return Err(Error::new("starting to listen", "no address is configured"));
    };
    let http = first.http.clone();
    if let Some(address) = http.metrics_address {
        let listen = Listen::new(address, None).with(&http);
        listens.push((listen, health::metrics_route("/metrics")));
    }
    refusals::describe();
    let bounds = Bounds::new(&http);
    let mut addresses = Vec::with_capacity(listens.len());
    let mut tasks = JoinSet::new();
    for (listen, router) in listens {
        let doing = || format!("listening on {}", listen.address);
        let listener = TcpListener::bind(listen.address).map_err(|e| Error::new(doing(), e))?;
        rustix::net::listen(&listener, BACKLOG).map_err(|e| Error::new(doing(), e))?;
        listener
            .set_nonblocking(true)
            .map_err(|e| Error::new(doing(), e))?;
        if let Some(bytes) = listen.unsent_bytes {
            // Connections inherit it from their listener.
            SockRef::from(&listener)
                .set_tcp_notsent_lowat(bytes)
                .map_err(|e| Error::new(doing(), e))?;
        }
        addresses.push(listener.local_addr().map_err(|e| Error::new(doing(), e))?);
        let handle = Handle::new();
        tokio::spawn(drain(handle.clone(), shutdown.clone(), listen.drain));
        let gate = bounds.gate(&listen);
        let router = router.layer(axum::middleware::from_fn_with_state(gate, gate::pass));
        let router = match listen.tls {
            None => sendfile::allow(router),
            Some(_) => router,
        };
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let doing = doing();
        let admission = bounds.admission.clone();
        let header_timeout = http.header_timeout;
        match listen.tls {
            None => {
                let acceptor = AdmittingAcceptor::new(WireAcceptor, admission);
                let mut server = axum_server::from_tcp(listener)
                    .map_err(|e| Error::new(doing.clone(), e))?
                    .acceptor(PromptAcceptor::new(acceptor, header_timeout))
                    .handle(handle);
                bound(server.http_builder(), listen.http2, header_timeout);
                if !listen.speaks_http2 {
                    server = server.http1_only();
                }
                tasks.spawn(async move {
                    server
                        .serve(service)
                        .await
                        .map_err(|e| Error::new(doing, e))
                });
            }
            Some(config) => {
                let config = tls::reloading(config, listen.speaks_http2, shutdown.clone()).await?;
                let mut server = axum_server::from_tcp_rustls(listener, config)
                    .map_err(|e| Error::new(doing.clone(), e))?
                    .map(|acceptor| acceptor.acceptor(TlsOnlyAcceptor))
                    // Outside of TLS: a refused client is not worth a handshake.
                    .map(|acceptor| AdmittingAcceptor::new(acceptor, admission))
                    .map(|acceptor| PromptAcceptor::new(acceptor, header_timeout))
                    .handle(handle);
                bound(server.http_builder(), listen.http2, header_timeout);
                if !listen.speaks_http2 {
                    server = server.http1_only();
                }
                tasks.spawn(async move {
                    server
                        .serve(service)
                        .await
                        .map_err(|e| Error::new(doing, e))
                });
            }
        }
    }
    Ok(Running { addresses, tasks })
}

/// The bounds of a server's clients, shared by its listeners.
struct Bounds {
    admission: Admission,
    requests: ClientQuota,
    body: BodyLimits,
    http: HttpSettings,
}

impl Bounds {
    fn new(http: &HttpSettings) -> Self {
        Self {
            admission: Admission {
                connections: Connections::new(
                    http.max_connections,
                    http.max_connections_per_client,
                ),
                trusted: http.trusted_proxies.clone(),
                write_timeout: http.write_timeout,
            },
            requests: ClientQuota::new(0, http.max_requests_per_client),
            body: BodyLimits {
                idle: http.body_idle_timeout,
                min_rate: http.body_min_rate,
                total: http.body_timeout,
            },
            http: http.clone(),
        }
    }

    fn gate(&self, listen: &Listen) -> Gate {
        let (address, has_tls) = (listen.address.ip(), listen.tls.is_some());
        Gate(Arc::new(Rules {
            hosts: HostRule::new(address, has_tls, &self.http.allowed_hosts),
            trusted: self.http.trusted_proxies.clone(),
            requests: self.requests.clone(),
            body: self.body,
        }))
    }
}

fn bound(builder: &mut Builder<TokioExecutor>, http2: Http2, header_timeout: Duration) {
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(MAX_BUFFER)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(http2.keep_alive_interval)
        .keep_alive_timeout(http2.keep_alive_timeout)
        .max_send_buf_size(MAX_BUFFER);
    if let Some(limit) = http2.max_streams {
        builder.http2().max_concurrent_streams(limit);
    }
}

async fn drain(handle: Handle<SocketAddr>, shutdown: CancellationToken, limit: Duration) {
    shutdown.cancelled().await;
    handle.graceful_shutdown(Some(limit));
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use axum::routing::get;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// Of each kind.
    const CLIENTS: usize = 250;
    /// Whatever the machine's speed.
    const DEADLINE: Duration = Duration::from_mins(1);

    async fn running() -> (Running, CancellationToken) {
        let shutdown = CancellationToken::new();
        let router = Router::new().route("/", get(async || "here"));
        let http = HttpSettings {
            header_timeout: Duration::from_secs(1),
            ..HttpSettings::default()
        };
        let listen = Listen::new("127.0.0.1:0".parse().unwrap(), None).with(&http);
        let running = start(vec![listen], router, shutdown.clone()).await;
        (running.unwrap(), shutdown)
    }

    /// Sends `first` and then a byte from time to time, until the server has had enough.
    async fn drip(mut stream: TcpStream, first: &str) {
        stream.write_all(first.as_bytes()).await.unwrap();
        let (mut reader, mut writer) = stream.split();
        let drip = async {
            // Else it would not be the beginning of anything any more.
            let may_go_on = first.starts_with("GET") || first == "P";
            while may_go_on && writer.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            std::future::pending::<()>().await;
        };
        let mut answer = Vec::new();
        tokio::select! {
            _ = reader.read_to_end(&mut answer) => {}
            () = drip => {}
        }
    }

    async fn asks(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    // limit: time for a request head
    #[tokio::test]
    async fn clients_that_drip_are_cut_off_and_others_do_not_notice() {
        // Both ends are here, and many machines begin with a limit of 1024.
        let maximum = getrlimit(Resource::Nofile).maximum;
        let limit = Rlimit {
            current: maximum,
            maximum,
        };
        setrlimit(Resource::Nofile, limit).unwrap();
        let (running, shutdown) = running().await;
        let address = running.address();
        let mut slow = JoinSet::new();
        for first in [
            "",
            "P",
            "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r",
            "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        ] {
            for _ in 0..CLIENTS {
                // One after the other, so that the queue of the kernel is never full.
                let stream = TcpStream::connect(address).await.unwrap();
                slow.spawn(drip(stream, first));
            }
        }
        let deadline = Instant::now() + DEADLINE;
        while !slow.is_empty() {
            assert!(Instant::now() < deadline, "{} are still there", slow.len());
            assert!(asks(address).await.ends_with("here"));
            while slow.try_join_next().is_some() {}
        }
        shutdown.cancel();
        running.wait().await.unwrap();
    }

    // limit: request head
    #[tokio::test]
    async fn a_head_is_no_place_to_store_things() {
        let (running, _) = running().await;
        let mut stream = TcpStream::connect(running.address()).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(2 * MAX_BUFFER));
        // The server may close while this is on its way.
        stream.write_all(head.as_bytes()).await.ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok();
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
            "{answer}"
        );
    }
}
