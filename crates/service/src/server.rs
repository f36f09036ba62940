//! Listening and ending: plain or TLS, with bounds for slow clients, drained on shutdown.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::sendfile::{self, WireAcceptor};
use crate::{Error, tls};

/// A client that has not sent its request head by then is cut off; how often one with HTTP/2 is asked whether it is
/// still there.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Units: bytes. What is kept for a client that reads slowly, and the longest request head: hyper's own 400 KiB
/// would be most of the memory of a server with many downloads.
const MAX_BUFFER: usize = 64 * 1024;
/// How long open requests may take to finish: longer ones are resumable downloads.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Port 0 lets the system choose.
    pub address: SocketAddr,
    /// Plain HTTP when absent.
    pub tls: Option<tls::Config>,
    /// Whether HTTP/2 is spoken, too.
    pub speaks_http2: bool,
    /// How long open requests may take to finish after shutdown began.
    pub drain: Duration,
}

impl Listen {
    /// An address with what suits most servers.
    pub fn new(address: SocketAddr, tls: Option<tls::Config>) -> Self {
        Self {
            address,
            tls,
            speaks_http2: true,
            drain: DRAIN_TIMEOUT,
        }
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
    if listens.is_empty() {
        return Err(Error::new("starting to listen", "no address is configured"));
    }
    let mut addresses = Vec::with_capacity(listens.len());
    let mut tasks = JoinSet::new();
    for listen in listens {
        let doing = || format!("listening on {}", listen.address);
        let listener = TcpListener::bind(listen.address).map_err(|e| Error::new(doing(), e))?;
        listener
            .set_nonblocking(true)
            .map_err(|e| Error::new(doing(), e))?;
        addresses.push(listener.local_addr().map_err(|e| Error::new(doing(), e))?);
        let handle = Handle::new();
        tokio::spawn(drain(handle.clone(), shutdown.clone(), listen.drain));
        let router = match listen.tls {
            None => sendfile::allow(router.clone()),
            Some(_) => router.clone(),
        };
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let doing = doing();
        match listen.tls {
            None => {
                let mut server = axum_server::from_tcp(listener)
                    .map_err(|e| Error::new(doing.clone(), e))?
                    .acceptor(WireAcceptor)
                    .handle(handle);
                bound(server.http_builder());
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
                    // Else the end of an answer may wait for the client's word on its beginning.
                    .map(|acceptor| acceptor.acceptor(NoDelayAcceptor))
                    .handle(handle);
                bound(server.http_builder());
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

fn bound(builder: &mut Builder<TokioExecutor>) {
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_BUFFER)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HEADER_TIMEOUT)
        .max_send_buf_size(MAX_BUFFER);
}

async fn drain(handle: Handle<SocketAddr>, shutdown: CancellationToken, limit: Duration) {
    shutdown.cancelled().await;
    handle.graceful_shutdown(Some(limit));
}
