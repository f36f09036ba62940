//! A site under load while replicas are killed, certificates are renewed and descriptors run out.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::pki_types::CertificateDer;
use service::forward::Upstream;
use tokio::task::JoinSet;

use crate::site_process::{FileReplica, SiteProcess, free_port, own_address};
use crate::site_world::{KeepAlive, Made, SiteWorld, made};
use crate::world::{Names, eventually};

/// Clients of each load.
const CLIENTS: usize = 20;
/// Requests of a client on one connection; the next connection follows.
const REQUESTS: usize = 200;

/// Clients that keep their connections, and their observations.
pub(crate) struct ClientLoad {
    is_over: AtomicBool,
    answers: AtomicUsize,
    failures: Mutex<Vec<String>>,
    certificates: Mutex<Vec<CertificateDer<'static>>>,
}

impl ClientLoad {
    /// Starts clients of `path` on `api.site.test`; an answer that `is_right` refuses is a failure.
    pub(crate) fn start(
        https: SocketAddr,
        trusted: &Arc<Vec<Made>>,
        path: &'static str,
        is_right: fn(u16, &str) -> bool,
    ) -> (Arc<Self>, JoinSet<()>) {
        let load = Arc::new(Self {
            is_over: AtomicBool::new(false),
            answers: AtomicUsize::new(0),
            failures: Mutex::default(),
            certificates: Mutex::default(),
        });
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let (load, trusted) = (load.clone(), trusted.clone());
            clients.spawn(async move {
                while !load.is_over.load(Ordering::Relaxed) {
                    let connection = load.connection(https, &trusted, path, is_right);
                    if let Err(failure) = connection.await {
                        load.failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
        (load, clients)
    }

    async fn connection(
        &self,
        https: SocketAddr,
        trusted: &[Made],
        path: &str,
        is_right: fn(u16, &str) -> bool,
    ) -> Result<(), String> {
        let client = KeepAlive::connect(https, trusted, "api.site.test").await;
        let mut client = client.map_err(|error| format!("connect: {error}"))?;
        let certificate = client.certificate();
        {
            let mut seen = self.certificates.lock().unwrap();
            if !seen.contains(&certificate) {
                seen.push(certificate);
            }
        }
        for _ in 0..REQUESTS {
            let answer = client.get("api.site.test", path).await;
            let (status, body) = answer.map_err(|error| format!("read: {error}"))?;
            if !is_right(status, &body) {
                return Err(format!("{status}: {body}"));
            }
            self.answers.fetch_add(1, Ordering::Relaxed);
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits for `count` more answers.
    pub(crate) async fn more(&self, count: usize) {
        let before = self.answers.load(Ordering::Relaxed);
        eventually(async || self.answers.load(Ordering::Relaxed) >= before + count).await;
    }

    /// Ends the clients; their answers. Fails for any failure.
    pub(crate) async fn end(&self, clients: JoinSet<()>) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        clients.join_all().await;
        let failures = self.failures.lock().unwrap();
        let (count, first) = (failures.len(), failures.first());
        assert_eq!(count, 0, "failures, of which the first is {first:?}");
        self.answers.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_replica_fails_no_safe_request() {
    let names = Names::new("api-killed.test".to_owned());
    let (one, other) = (own_address(), own_address());
    let port = free_port(one);
    let mut replicas = Vec::new();
    for (ip, content) in [(one, "one"), (other, "other")] {
        replicas.push(FileReplica::start(SocketAddr::new(ip, port), content).await);
        names.add(ip);
    }
    let origin = Upstream::parse(&format!("http://api-killed.test:{port}")).unwrap();
    let site = SiteWorld::start_among(names.resolver(), |settings| {
        settings.site.api_url = origin;
    })
    .await;
    let trusted = Arc::new(vec![site.wildcard.copy()]);
    let mut both = KeepAlive::connect(site.at.https, &trusted, "api.site.test")
        .await
        .unwrap();
    eventually(async || {
        let first = both.get("api.site.test", "/who").await.unwrap();
        let second = both.get("api.site.test", "/who").await.unwrap();
        first.0 == 200 && second.0 == 200 && first.1 != second.1
    })
    .await;
    let is_right = |status, body: &str| status == 200 && matches!(body, "one" | "other");
    let (load, clients) = ClientLoad::start(site.at.https, &trusted, "/who", is_right);
    load.more(500).await;
    replicas[0].process.kill();
    load.more(500).await;
    let back = FileReplica::start(replicas[0].address, "one").await;
    load.more(500).await;
    replicas[1].process.kill();
    load.more(500).await;
    load.end(clients).await;
    drop(back);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewed_certificates_fail_no_client() {
    let renewals: Vec<_> = (0..6).map(|_| made(&["*.site.test"])).collect();
    let trusted = Arc::new(renewals);
    let api = crate::site_world::upstream("api").await;
    let settings = format!("API_URL={api}\n");
    let site = SiteProcess::start(&trusted[0], &settings).await;
    let is_right = |status, body: &str| status == 200 && body.contains("\"api\"");
    let (load, clients) = ClientLoad::start(site.https, &trusted, "/x", is_right);
    load.more(200).await;
    for (renewal, count) in trusted[1..].iter().zip(1..) {
        site.set_certificate(renewal);
        site.process.hang_up();
        site.process.log.until("certificate reloaded", count).await;
        load.more(200).await;
        let client = KeepAlive::connect(site.https, &trusted, "api.site.test").await;
        assert_eq!(client.unwrap().certificate(), renewal.der);
    }
    let answers = load.end(clients).await;
    assert!(answers >= 6 * 200);
}

// limit: connections
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_connections_than_descriptors_harm_no_others() {
    let certificate = made(&["*.site.test"]);
    let api = crate::site_world::upstream("api").await;
    let settings = format!("API_URL={api}\n");
    let mut site = SiteProcess::start_limited(&certificate, &settings, Some(256)).await;
    fs::write(site.path("files").join("file"), "content").unwrap();
    let trusted = [certificate];
    let mut busy = Vec::new();
    for _ in 0..20 {
        let client = KeepAlive::connect(site.https, &trusted, "api.site.test").await;
        busy.push(client.unwrap());
    }
    let mut idle = Vec::new();
    for _ in 0..400 {
        // Those beyond the limit are refused, or wait.
        let connecting = KeepAlive::connect(site.https, &trusted, "api.site.test");
        let limit = std::time::Duration::from_millis(50);
        if let Ok(Ok(client)) = tokio::time::timeout(limit, connecting).await {
            idle.push(client);
        }
        for client in &mut busy {
            let (status, body) = client.get("api.site.test", "/x").await.unwrap();
            assert_eq!(status, 200, "{} idle: {body}", idle.len());
        }
    }
    for (host, path) in [("api.site.test", "/x"), ("files.site.test", "/file")] {
        let (status, body) = busy[0].get(host, path).await.unwrap();
        assert_eq!(status, 200, "{body}");
    }
    drop(idle);
    eventually(async || {
        let client = KeepAlive::connect(site.https, &trusted, "api.site.test").await;
        client.is_ok()
    })
    .await;
    assert!(!site.process.has_ended());
    assert!(site.process.log.with("\"ERROR\"").is_empty());
}
