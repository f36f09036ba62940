//! Listeners: plain or TLS, with limits for slow and greedy clients, drained on shutdown.

mod admission;
mod body_timeout;
mod clients;
mod connection;
mod connections;
mod held;
mod host_header;
mod quota;
mod refusals;
mod request_handler;
mod request_source;
mod settings;
mod streams;
mod tls_acceptor;
mod waiting;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use axum_server::service::SendService;
use http::Uri;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::access_log::AccessLog;
use crate::opening_timeout::OpeningAcceptor;
use crate::sendfile::SendfileAcceptor;
use crate::{Error, ResultExt as _, health, open_files, tls};

use admission::{AdmissionRules, Admitted, MakeAdmitted};
use body_timeout::BodyLimits;
pub use clients::{ClientAddress, ClientKey, Holder, IpNetworks};
pub(crate) use clients::{PROXY_SECRET, TrustedProxies, X_FORWARDED_FOR};
use connection::{AdmittingAcceptor, ConnectionAdmission};
pub use connections::ConnectionCount;
use connections::Connections;
pub(crate) use connections::RequestCounter;
use host_header::HostRule;
pub use host_header::requested_host;
pub use quota::{ClientQuota, Exceeded, Permit};
pub use request_handler::{AdmittedRequest, RequestHandler};
pub use request_source::RequestSource;
use request_source::SourceRule;
pub use settings::HttpSettings;
pub(crate) use settings::{MAX_BUFFER, MAX_HEADERS};
pub use streams::{OpenStream, StreamQuota};
use tls_acceptor::TlsAcceptor;
pub(crate) use waiting::ClientWaiting;
use waiting::WaitingBytes;
pub use waiting::{StreamMemory, count_before_compression};

/// Interval of HTTP/2 keep-alive pings to a silent client.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// Timeout of an HTTP/2 keep-alive ping.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Drain timeout of in-flight requests: longer ones are resumable downloads.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Units: connections that wait to be accepted; the kernel's own bound may be lower. A burst beyond std's 128 would
/// wait for a second until its packets are sent again.
const BACKLOG: i32 = 1024;

/// Units: open files of a connection: itself and a file or a connection to a replica; if connections pass, those have two
/// pipes, too.
const FILES_OF_CONNECTION: [u64; 2] = [2, 6];

/// An address to listen on.
#[derive(Debug, Clone)]
pub struct Listen {
    /// Port 0 lets the system choose.
    pub address: SocketAddr,
    /// Plain HTTP when absent.
    pub tls: Option<tls::TlsConfig>,
    /// Access to the certificates of `tls` while it listens.
    pub certificates: tls::CertificateControl,
    /// Server whose TLS connections pass, chosen by the server name that clients ask for.
    pub passthrough: Option<tls::Passthrough>,
    /// Log of its requests; absent: none.
    pub access_log: Option<AccessLog>,
    /// Whether HTTP/2 is enabled.
    pub speaks_http2: bool,
    /// Limits of HTTP/2 connections.
    pub http2: Http2,
    /// Drain timeout of in-flight requests after shutdown began.
    pub drain: Duration,
    /// `TCP_NOTSENT_LOWAT`: unsent bytes that the kernel buffers for a client; absent for the system's default, some
    /// megabytes for each slow client.
    pub unsent_bytes: Option<u32>,
    /// Whether every host is served, independent of `ALLOWED_HOSTS`: the handler decides by the host.
    pub routes_by_host: bool,
    /// Limits of its clients, and the listener of the metrics.
    pub http: HttpSettings,
}

/// Limits of an HTTP/2 connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2 {
    /// Most concurrent streams; absent for hyper's default.
    pub max_streams: Option<u32>,
    /// Interval of keep-alive pings to a silent client; absent: none.
    pub keep_alive_interval: Option<Duration>,
    /// Timeout of a keep-alive ping.
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
    /// An address with the defaults of most servers.
    pub fn new(address: SocketAddr, tls: Option<tls::TlsConfig>) -> Self {
        Self {
            address,
            tls,
            certificates: tls::CertificateControl::default(),
            passthrough: None,
            access_log: None,
            speaks_http2: true,
            http2: Http2::default(),
            drain: DRAIN_TIMEOUT,
            unsent_bytes: None,
            routes_by_host: false,
            http: HttpSettings::default(),
        }
    }

    /// Sets the limits from the server's settings.
    #[must_use]
    pub fn with(mut self, http: &HttpSettings) -> Self {
        self.http = http.clone();
        self
    }

    /// Serves the network domain `domain` and all names below it; empty: none.
    #[must_use]
    pub fn below(mut self, domain: &str) -> Self {
        let domain = domain.trim_matches('.');
        if !domain.is_empty() {
            let names = [domain.to_owned(), format!("*.{domain}")];
            self.http.allowed_hosts.0.extend(names);
        }
        self
    }

    /// Serves the host of `url`, which clients were given for this server, and accepts its pages. A text that is no URL
    /// has no effect.
    #[must_use]
    pub fn at(mut self, url: &str) -> Self {
        let uri: Result<Uri, _> = url.trim_end_matches('/').parse();
        let Ok(uri) = uri else { return self };
        if let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) {
            let host = authority.host().to_owned();
            let http = &mut self.http;
            http.allowed_hosts.0.push(host);
            http.allowed_origins
                .0
                .push(format!("{scheme}://{authority}"));
        }
        self
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Running {
    addresses: Vec<SocketAddr>,
    connections: ConnectionCount,
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

    /// The number of its connections.
    pub fn connections(&self) -> ConnectionCount {
        self.connections.clone()
    }

    /// Adds a background task that shutdown waits for, for instance a final flush to disk.
    pub fn also(&mut self, task: impl Future<Output = Result<(), Error>> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits until every listener and task has ended; returns the first failure.
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

/// Binds every address and serves `router` there until `shutdown`, then drains in-flight requests.
///
/// Errors: an address that cannot be bound, certificate files that cannot be loaded, no address at all.
pub async fn start(
    listens: Vec<Listen>,
    router: Router,
    shutdown: CancellationToken,
) -> Result<Running, Error> {
    let handler = RequestHandler::from(router);
    let listens = listens.into_iter().map(|listen| (listen, handler.clone()));
    start_each(listens.collect(), shutdown).await
}

/// [`start`] with a handler for each address. The limits of clients are those of the first listener, shared by all.
/// The last address is that of the metrics, if the settings name one.
///
/// Errors: as [`start`].
pub async fn start_each(
    mut listens: Vec<(Listen, RequestHandler)>,
    shutdown: CancellationToken,
) -> Result<Running, Error> {
    let Some((first, _)) = listens.first() else {
        return Err(Error::new("starting to listen", "no address is configured"));
    };
    let http = first.http.clone();
    if let Some(address) = http.metrics_address {
        let listen = Listen::new(address, None).with(&http);
        listens.push((listen, health::metrics_route("/metrics").into()));
    }
    refusals::describe();
    let passes = listens
        .iter()
        .any(|(listen, _)| listen.passthrough.is_some());
    let bounds = ClientBounds::new(&http, passes);
    let mut addresses = Vec::with_capacity(listens.len());
    let mut tasks = JoinSet::new();
    for (listen, handler) in listens {
        let doing = || format!("listening on {}", listen.address);
        let listener = TcpListener::bind(listen.address).doing(doing)?;
        rustix::net::listen(&listener, BACKLOG).doing(doing)?;
        listener.set_nonblocking(true).doing(doing)?;
        if let Some(bytes) = listen.unsent_bytes {
            // Connections inherit it from their listener.
            SockRef::from(&listener)
                .set_tcp_notsent_lowat(bytes)
                .doing(doing)?;
        }
        addresses.push(listener.local_addr().doing(doing)?);
        let handle = Handle::new();
        tokio::spawn(drain(handle.clone(), shutdown.clone(), listen.drain));
        let service = MakeAdmitted {
            handler,
            rules: Arc::new(bounds.rules(&listen)),
        };
        let admission = bounds.admission.clone();
        let connections = HttpListener {
            listener,
            handle,
            listen: &listen,
            http: &http,
        };
        let served = match listen.tls.clone() {
            None => {
                let acceptor = AdmittingAcceptor::new(SendfileAcceptor, admission);
                connections.serve(acceptor, service)
            }
            Some(config) => {
                let shutdown = shutdown.clone();
                let control = &listen.certificates;
                let acceptor = TlsAcceptor {
                    admission,
                    certificates: tls::reloading(config, listen.speaks_http2, control, shutdown)
                        .await?,
                    passthrough: listen.passthrough.clone(),
                };
                connections.serve(acceptor, service)
            }
        };
        let served = served.doing(doing)?;
        let doing = doing();
        tasks.spawn(async move { served.await.doing(doing) });
    }
    let connections = ConnectionCount(bounds.admission.connections);
    Ok(Running {
        addresses,
        connections,
        tasks,
    })
}

/// Limits of a server's clients, shared by its listeners.
struct ClientBounds {
    admission: ConnectionAdmission,
    requests: ClientQuota,
    waiting: WaitingBytes,
    body: BodyLimits,
    http: HttpSettings,
}

impl ClientBounds {
    fn new(http: &HttpSettings, passes: bool) -> Self {
        let (files, limit) = (
            FILES_OF_CONNECTION[usize::from(passes)],
            open_files::limit(),
        );
        let max = open_files::connections(http.max_connections, files, limit);
        if max < http.max_connections {
            let wanted = http.max_connections;
            tracing::warn!(
                max,
                wanted,
                files = limit,
                "MAX_CONNECTIONS is more than the limit of open files allows: raise that limit (ulimit -n)"
            );
        }
        Self {
            admission: ConnectionAdmission {
                connections: Connections::new(max, http.max_connections_per_client),
                trusted: http.proxies(),
                write_timeout: http.write_timeout,
                header_timeout: http.header_timeout,
            },
            requests: ClientQuota::new(0, http.max_requests_per_client),
            waiting: WaitingBytes::new(http.max_waiting_bytes, http.max_waiting_bytes_per_client),
            body: BodyLimits {
                idle: http.body_idle_timeout,
                min_rate: http.body_min_rate,
                total: http.body_timeout,
            },
            http: http.clone(),
        }
    }

    fn rules(&self, listen: &Listen) -> AdmissionRules {
        let has_tls = listen.tls.is_some();
        let every = ["*".to_owned()];
        let allowed = if listen.routes_by_host {
            &every[..]
        } else {
            &listen.http.allowed_hosts
        };
        AdmissionRules {
            hosts: HostRule::new(has_tls, allowed),
            sources: SourceRule::new(listen.address.port(), &listen.http.allowed_origins),
            trusted: self.http.proxies(),
            requests: self.requests.clone(),
            waiting: self.waiting.clone(),
            body: self.body,
            is_plain: !has_tls,
            access_log: listen.access_log.clone(),
        }
    }
}

/// A listener of HTTP before it serves.
struct HttpListener<'a> {
    listener: TcpListener,
    handle: Handle<SocketAddr>,
    listen: &'a Listen,
    http: &'a HttpSettings,
}

impl HttpListener<'_> {
    /// Serves connections of `acceptor`, until the handle ends it.
    ///
    /// Errors: a listener that cannot be used.
    fn serve<A>(
        self,
        acceptor: A,
        service: MakeAdmitted,
    ) -> io::Result<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>
    where
        A: Accept<TcpStream, Admitted> + Clone + Send + Sync + 'static,
        A::Stream: AsyncRead + AsyncWrite + Unpin + Send,
        A::Service: SendService<http::Request<Incoming>> + Send,
        A::Future: Send + 'static,
    {
        let mut server = axum_server::from_tcp(self.listener)?
            .acceptor(OpeningAcceptor::new(acceptor, self.http.header_timeout))
            .handle(self.handle);
        configure(server.http_builder(), self.listen.http2, self.http);
        if !self.listen.speaks_http2 {
            server = server.http1_only();
        }
        Ok(Box::pin(server.serve(service)))
    }
}

fn configure(builder: &mut Builder<TokioExecutor>, http2: Http2, http: &HttpSettings) {
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(http.idle_timeout.max(http.header_timeout))
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
    /// Enough for a slow machine.
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

    /// Sends `first` and then a byte from time to time, until the server closes.
    async fn drip(mut stream: TcpStream, first: &str) {
        stream.write_all(first.as_bytes()).await.unwrap();
        let (mut reader, mut writer) = stream.split();
        let drip = async {
            // Further bytes after the others would be invalid at once.
            let may_drip = first.starts_with("GET") || first == "P";
            while may_drip && writer.write_all(b"x").await.is_ok() {
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
    async fn slow_clients_are_cut_off_and_others_are_served() {
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

    // limit: idle connection
    #[tokio::test]
    async fn an_idle_connection_is_closed_later_than_a_slow_head() {
        let (header_timeout, idle_timeout) = (Duration::from_millis(50), Duration::from_secs(3));
        let router = Router::new().route("/", get(async || "here"));
        let http = HttpSettings {
            header_timeout,
            idle_timeout,
            ..HttpSettings::default()
        };
        let listen = Listen::new("127.0.0.1:0".parse().unwrap(), None).with(&http);
        let running = start(vec![listen], router, CancellationToken::new()).await;
        let running = running.unwrap();
        let address = running.address();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for _ in 0..2 {
            stream.write_all(request).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"here") {
                assert!(stream.read_buf(&mut answer).await.unwrap() > 0);
            }
            tokio::time::sleep(header_timeout * 3).await;
        }
        let idle_since = Instant::now();
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
        assert!(idle_since.elapsed() > header_timeout);
        // A head that has begun.
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(&request[..request.len() - 2])
            .await
            .unwrap();
        stream.read_to_end(&mut Vec::new()).await.ok();
    }

    // limit: request head
    #[tokio::test]
    async fn a_long_request_head_is_refused() {
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
