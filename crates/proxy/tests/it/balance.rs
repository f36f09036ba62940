//! Load balancing while replicas come and go.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Path;
use axum::routing::post;
use http::{StatusCode, header};
use reqwest::Client;
use tokio::net::TcpListener;

use crate::world::{Replica, World, client, eventually, json_of, soon};

fn even(replicas: &[Replica], each: usize) -> BTreeMap<IpAddr, usize> {
    replicas.iter().map(|replica| (replica.ip, each)).collect()
}

#[tokio::test]
async fn requests_are_balanced_evenly() {
    let (world, replicas) = World::with_replicas(3).await;
    assert_eq!(world.answered_by(9).await, even(&replicas, 3));
    assert_eq!(world.answered_by(300).await, even(&replicas, 100));
}

#[tokio::test]
async fn replicas_follow_the_addresses_of_the_name() {
    let (world, mut replicas) = World::with_replicas(2).await;
    replicas.push(world.replica(Router::new()).await);
    world.wait_for(&replicas).await;
    let gone = replicas.remove(0);
    world.names.remove(gone.ip);
    world.wait_for(&replicas).await;
    assert_eq!(world.answered_by(10).await, even(&replicas, 5));
}

#[tokio::test]
async fn known_replicas_stay_when_resolution_fails() {
    let (world, replicas) = World::with_replicas(2).await;
    world.names.break_down().await;
    assert_eq!(world.answered_by(4).await, even(&replicas, 2));
}

#[tokio::test]
async fn unready_replicas_are_not_picked() {
    let (world, replicas) = World::with_replicas(3).await;
    replicas[0].set_unready(true);
    world.wait_for(&replicas[1..]).await;
    replicas[1].freeze();
    world.wait_for(&replicas[2..]).await;
    assert_eq!(world.answered_by(5).await, even(&replicas[2..], 5));
    replicas[0].set_unready(false);
    eventually(async || world.answered_by(2).await.len() == 2).await;
}

#[tokio::test]
async fn without_a_ready_replica_the_response_of_one_is_returned() {
    let (world, replicas) = World::with_replicas(2).await;
    for replica in &replicas {
        replica.set_unready(true);
    }
    let status = format!("http://{}/ready", world.status);
    eventually(async || {
        let response = client().get(&status).send().await.unwrap();
        response.status() == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    assert_eq!(world.answered_by(4).await, even(&replicas, 2));
}

#[tokio::test]
async fn without_a_live_replica_requests_get_503() {
    let (world, replicas) = World::with_replicas(3).await;
    for replica in replicas {
        replica.stop().await;
    }
    let response = client().get(world.url("/who")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key(header::RETRY_AFTER));
    let body = json_of(response).await;
    let message = body["message"].as_str().unwrap();
    for word in [world.upstream.as_str(), "3 replicas"] {
        assert!(message.contains(word), "{message}");
    }
    let back = world.replica(Router::new()).await;
    world.wait_for(&[back]).await;
}

#[tokio::test]
async fn an_unresolved_name_gets_503() {
    let world = World::start().await;
    let response = client().get(world.url("/who")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = json_of(response).await;
    assert!(body["message"].as_str().unwrap().contains("resolved"));
}

#[tokio::test]
async fn unresponsive_replicas_do_not_delay_requests() {
    let (world, replicas) = World::with_replicas(2).await;
    let frozen = TcpListener::bind(world.named_address()).await.unwrap();
    // It is known now, and its health check has to time out by itself.
    let _look = soon(frozen.accept()).await.unwrap();
    for _ in 0..50 {
        assert_eq!(world.answered_by(2).await, even(&replicas, 1));
    }
}

#[tokio::test]
async fn a_replica_that_fails_requests_but_no_health_checks_is_left_out_for_a_while() {
    let world = World::start().await;
    let broken = Arc::new(AtomicBool::new(true));
    let mut replicas = Vec::new();
    for is_outlier in [true, false, false] {
        let broken = broken.clone();
        let status = move || {
            let is_broken = is_outlier && broken.load(Ordering::Relaxed);
            let status = if is_broken {
                StatusCode::BAD_GATEWAY
            } else {
                StatusCode::OK
            };
            std::future::ready(status)
        };
        let routes = Router::new().route("/work", axum::routing::get(status));
        replicas.push(world.replica(routes).await);
    }
    world.wait_for(&replicas).await;
    let client = client();
    let failures = async || {
        let mut failures = 0;
        for _ in 0..30 {
            let response = client.get(world.url("/work")).send().await.unwrap();
            failures += usize::from(response.status() != StatusCode::OK);
        }
        failures
    };
    // Five failures eject it; without an ejection there would be ten.
    assert_eq!(failures().await, 5);
    assert_eq!(failures().await, 0);
    assert_eq!(world.answered_by(6).await, even(&replicas[1..], 3));
    let metrics = client
        .get(format!("http://{}/metrics", world.status))
        .send();
    let metrics = metrics.await.unwrap().text().await.unwrap();
    for name in ["ejections_total", "ejected_replicas"] {
        let line = format!("atoll_forward_{name}{{upstream=\"{}\"}} 1", world.upstream);
        assert!(metrics.lines().any(|known| known == line), "{line}");
    }
    // It comes back, and one failure is enough now.
    let mut seen = 0;
    eventually(async || {
        seen += failures().await;
        seen > 0
    })
    .await;
    assert_eq!(seen, 1);
    broken.store(false, Ordering::Relaxed);
    eventually(async || world.answered_by(3).await.len() == 3).await;
}

#[tokio::test]
async fn replicas_that_all_fail_stay_in_use() {
    let world = World::start().await;
    let mut replicas = Vec::new();
    for _ in 0..2 {
        let routes = Router::new().route(
            "/work",
            axum::routing::get(|| async { StatusCode::BAD_GATEWAY }),
        );
        replicas.push(world.replica(routes).await);
    }
    world.wait_for(&replicas).await;
    for _ in 0..100 {
        let response = client().get(world.url("/work")).send().await.unwrap();
        // The answer of a replica, not one of the proxy.
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        assert_eq!(response.text().await.unwrap(), "");
    }
    assert_eq!(world.answered_by(4).await.len(), 1, "half of them");
}

/// Results of clients during a test.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    sent: AtomicUsize,
    failures: Mutex<Vec<String>>,
    /// How often each document was stored, by its number.
    stored: Mutex<BTreeMap<usize, usize>>,
}

impl Load {
    fn routes(self: &Arc<Self>) -> Router {
        let load = self.clone();
        let store = move |Path(number): Path<usize>, body: String| {
            let load = load.clone();
            async move {
                *load.stored.lock().unwrap().entry(number).or_default() += 1;
                body
            }
        };
        Router::new().route("/store/{number}", post(store))
    }

    async fn run(self: Arc<Self>, url: String, client: Client, is_post: bool) {
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.sent.fetch_add(1, Ordering::Relaxed);
            let request = if is_post {
                client.post(format!("{url}/store/{number}")).body("content")
            } else {
                client.get(format!("{url}/{number}"))
            };
            let failure = match request.send().await {
                // Read to its end, so that the connection stays.
                Ok(response) if response.status() == StatusCode::OK => response
                    .bytes()
                    .await
                    .err()
                    .map(|error| format!("{error:?}")),
                Ok(response) => Some(format!("{}", response.status())),
                Err(error) => Some(format!("{error:?}")),
            };
            if let Some(failure) = failure {
                let method = if is_post { "POST" } else { "GET" };
                let failure = format!("{method} {number}: {failure}");
                self.failures.lock().unwrap().push(failure);
            } else if is_post {
                let stored = self.stored.lock().unwrap().get(&number).copied();
                assert_eq!(stored, Some(1), "document {number}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_restarts_fail_no_request() {
    let world = World::start().await;
    let load = Arc::new(Load::default());
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(world.replica(load.routes()).await);
    }
    world.wait_for(&replicas).await;
    let clients: Vec<_> = (0..8)
        .map(|index| {
            let running = load.clone().run(world.url(""), client(), index % 2 == 0);
            tokio::spawn(running)
        })
        .collect();
    for _ in 0..6 {
        let before = load.sent.load(Ordering::Relaxed);
        let stopped = replicas.remove(0);
        let ip = stopped.ip;
        stopped.stop().await;
        world.names.remove(ip);
        replicas.push(world.replica(load.routes()).await);
        world.wait_for(&replicas).await;
        eventually(async || load.sent.load(Ordering::Relaxed) > before + 100).await;
    }
    load.is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let failures = load.failures.lock().unwrap();
    assert!(failures.is_empty(), "{failures:#?}");
    let stored = load.stored.lock().unwrap();
    assert!(stored.len() > 100, "{}", stored.len());
    assert!(stored.values().all(|times| *times == 1));
}
