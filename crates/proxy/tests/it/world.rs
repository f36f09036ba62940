//! A name, the replicas behind it, and the proxy in front.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use net::resolve::{Resolver, ResolverOptions};
use proxy::{ForwardEntry, Forwards, Settings};
use serde_json::{Value, json};
use service::CancellationToken;
use service::forward::Upstream;
use service::server::{HttpSettings, Listen, Running};
use service::settings::CommaList;
use tempfile::TempDir;
use tokio::net::UdpSocket;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Long enough for a busy machine; a test that reaches it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// A hosts file with the addresses of the upstream's name.
pub(crate) struct Names {
    name: String,
    addresses: Mutex<BTreeSet<IpAddr>>,
    folder: TempDir,
}

impl Names {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            addresses: Mutex::default(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn resolver(&self) -> Resolver {
        Resolver::new(ResolverOptions {
            resolv_conf: self.folder.path().join("resolv.conf"),
            hosts: self.folder.path().join("hosts"),
            attempts: 1,
            ..ResolverOptions::default()
        })
    }

    pub(crate) fn add(&self, ip: IpAddr) {
        self.change(|addresses| addresses.insert(ip));
    }

    pub(crate) fn remove(&self, ip: IpAddr) {
        self.change(|addresses| addresses.remove(&ip));
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeSet<IpAddr>) -> T) {
        let mut addresses = self.addresses.lock().unwrap();
        change(&mut addresses);
        let line = |ip| format!("{ip} {}\n", self.name);
        self.write("hosts", &addresses.iter().map(line).collect::<String>());
    }

    /// Atomic replace: readers see the old text or the new one.
    fn write(&self, file: &str, text: &str) {
        let new = self.folder.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.folder.path().join(file)).unwrap();
    }

    /// Makes resolution fail from now on; returns after two failures.
    pub(crate) async fn break_down(&self) {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let line = format!("nameserver [127.0.0.1]:{port}\n");
        self.write("resolv.conf", &line);
        self.change(BTreeSet::clear);
        // A resolution queries both address families: with the fifth query, the third resolution has begun.
        for _ in 0..5 {
            let mut message = [0; 512];
            let (length, client) = soon(server.recv_from(&mut message)).await.unwrap();
            // The query is returned as SERVFAIL.
            message[2] |= 0x80;
            message[3] = 2;
            server.send_to(&message[..length], client).await.unwrap();
        }
    }
}

/// A server in a runtime of its own, so that it can be killed.
pub(crate) struct Replica {
    pub(crate) ip: IpAddr,
    readiness: Arc<Readiness>,
    shutdown: CancellationToken,
    running: Option<Running>,
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct Readiness {
    is_unready: AtomicBool,
    is_frozen: AtomicBool,
}

impl Replica {
    /// Sets its readiness.
    pub(crate) fn set_unready(&self, is_unready: bool) {
        self.readiness
            .is_unready
            .store(is_unready, Ordering::Relaxed);
    }

    /// Accepts connections but never responds from now on.
    pub(crate) fn freeze(&self) {
        self.readiness.is_frozen.store(true, Ordering::Relaxed);
    }

    /// Graceful shutdown: in-flight requests finish.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        self.running.take().unwrap().wait().await.unwrap();
    }

    /// Ends at once, with requests in flight.
    pub(crate) fn kill(mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Allows every host: names in tests resolve to no loopback address.
fn any_host() -> HttpSettings {
    HttpSettings {
        allowed_hosts: CommaList(vec!["*".to_owned()]),
        ..HttpSettings::default()
    }
}

/// The proxy, the upstream's name, and the shared port of its replicas.
pub(crate) struct World {
    pub(crate) names: Names,
    pub(crate) proxy: SocketAddr,
    pub(crate) status: SocketAddr,
    pub(crate) shutdown: CancellationToken,
    /// Name and port of the upstream.
    pub(crate) upstream: String,
    network: u8,
    port: u16,
    last: AtomicU8,
    ended: Option<JoinHandle<()>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(ended) = self.ended.take() {
            ended.abort();
        }
    }
}

impl World {
    /// A proxy whose upstream has no replicas yet.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// [`Self::start`] with other settings.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Settings)) -> Self {
        static NETWORKS: AtomicU8 = AtomicU8::new(1);
        let network = NETWORKS.fetch_add(1, Ordering::Relaxed);
        // The replicas share a port, as those of one service do.
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = free.local_addr().unwrap().port();
        // Metrics are global to the process: the name makes these series distinct.
        let name = format!("api{network}.test");
        let upstream = format!("{name}:{port}");
        let names = Names::new(name);
        let shutdown = CancellationToken::new();
        let mut settings = Settings {
            listen_address: Ipv4Addr::LOCALHOST.into(),
            forwards: Forwards(vec![ForwardEntry {
                port: 0,
                upstream: Upstream::parse(&format!("http://{upstream}")).unwrap(),
            }]),
            proxy_status_port: 0,
            http: any_host(),
            ..Settings::default()
        };
        change(&mut settings);
        let started = proxy::start_with(settings, names.resolver(), shutdown.clone())
            .await
            .unwrap();
        Self {
            names,
            proxy: started.forwards()[0],
            status: started.status(),
            shutdown,
            upstream,
            network,
            port,
            last: AtomicU8::new(0),
            ended: Some(tokio::spawn(async { started.wait().await.unwrap() })),
        }
    }

    /// A proxy with `count` replicas that all get requests.
    pub(crate) async fn with_replicas(count: usize) -> (Self, Vec<Replica>) {
        let world = Self::start().await;
        let mut replicas = Vec::new();
        for _ in 0..count {
            replicas.push(world.replica(Router::new()).await);
        }
        world.wait_for(&replicas).await;
        (world, replicas)
    }

    /// Adds a replica with `routes`, and [`mirror`] as their fallback; the name resolves to it, too.
    pub(crate) async fn replica(&self, routes: Router) -> Replica {
        let last = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let ip: IpAddr = Ipv4Addr::new(127, 7, self.network, last).into();
        let readiness = Arc::new(Readiness::default());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let ready = {
            let readiness = readiness.clone();
            get(async move || readiness.answer().await)
        };
        let router = routes
            .route("/ready", ready)
            .fallback(async move |request: Request| mirror(ip, request).await);
        let listen = Listen::new(self.address(ip), None).with(&any_host());
        let shutdown = CancellationToken::new();
        let starting = service::server::start(vec![listen], router, shutdown.clone());
        let running = runtime.spawn(starting).await.unwrap().unwrap();
        self.names.add(ip);
        Replica {
            ip,
            readiness,
            shutdown,
            running: Some(running),
            runtime: Some(runtime),
        }
    }

    /// Address of a replica on `ip`.
    pub(crate) fn address(&self, ip: IpAddr) -> SocketAddr {
        SocketAddr::new(ip, self.port)
    }

    /// Address for a replica that the test implements; the name resolves to it, too.
    pub(crate) fn named_address(&self) -> SocketAddr {
        let last = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let ip = Ipv4Addr::new(127, 7, self.network, last).into();
        self.names.add(ip);
        self.address(ip)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.proxy)
    }

    /// Responses of each replica to `requests` sequential requests.
    pub(crate) async fn answered_by(&self, requests: usize) -> BTreeMap<IpAddr, usize> {
        let client = client();
        let mut counts = BTreeMap::new();
        for _ in 0..requests {
            let answer = json_of(client.get(self.url("/who")).send().await.unwrap()).await;
            let ip: IpAddr = answer["replica"].as_str().unwrap().parse().unwrap();
            *counts.entry(ip).or_default() += 1;
        }
        counts
    }

    /// Waits until exactly `replicas` get requests.
    pub(crate) async fn wait_for(&self, replicas: &[Replica]) {
        let expected: BTreeSet<IpAddr> = replicas.iter().map(|replica| replica.ip).collect();
        let client = client();
        eventually(async || {
            let mut seen = BTreeSet::new();
            for _ in 0..expected.len() * 2 {
                let Ok(response) = client.get(self.url("/who")).send().await else {
                    return false;
                };
                if response.status() != StatusCode::OK {
                    return false;
                }
                let answer = json_of(response).await;
                seen.insert(answer["replica"].as_str().unwrap().parse().unwrap());
            }
            seen == expected
        })
        .await;
    }
}

impl Readiness {
    async fn answer(&self) -> StatusCode {
        if self.is_frozen.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.is_unready.load(Ordering::Relaxed) {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::OK
        }
    }
}

/// Responds with the request and the address of the replica.
async fn mirror(ip: IpAddr, request: Request) -> Response {
    let headers: Vec<(String, String)> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    let (method, path) = (request.method().to_string(), request.uri().to_string());
    let Ok(body) = axum::body::to_bytes(request.into_body(), 1 << 26).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    axum::Json(json!({
        "replica": ip, "method": method, "path": path, "headers": headers, "length": body.len(),
    }))
    .into_response()
}

pub(crate) fn client() -> reqwest::Client {
    service::http_client(None, false).unwrap()
}

pub(crate) async fn json_of(response: reqwest::Response) -> Value {
    let text = response.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    let holds = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, holds).await.unwrap();
}

/// The output of `future`, before the deadline of a test.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.unwrap()
}
