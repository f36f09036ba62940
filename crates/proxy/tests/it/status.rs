//! The proxy's own status, and the status paths of upstreams.

use axum::Router;
use axum::routing::get;
use http::StatusCode;

use crate::world::{World, client, eventually, json_of};

#[tokio::test]
async fn ready_lists_upstreams_without_a_ready_replica() {
    let world = World::start().await;
    let url = |path: &str| format!("http://{}{path}", world.status);
    let health = client().get(url("/health")).send().await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
    let ready = client().get(url("/ready")).send().await.unwrap();
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    let waiting = json_of(ready).await["waiting"]["upstreams"].to_string();
    assert!(waiting.contains(&world.upstream), "{waiting}");

    let replica = world.replica(Router::new()).await;
    let is_ready = async || {
        let response = client().get(url("/ready")).send().await.unwrap();
        response.status() == StatusCode::OK
    };
    eventually(is_ready).await;
    replica.set_unready(true);
    eventually(async || !is_ready().await).await;
    let ready = client().get(url("/ready")).send().await.unwrap();
    let waiting = json_of(ready).await["waiting"]["upstreams"].to_string();
    assert!(waiting.contains("answers 503"), "{waiting}");
}

#[tokio::test]
async fn status_paths_of_upstreams_are_forwarded() {
    let world = World::start().await;
    let routes = Router::new()
        .route("/health", get(|| async { "their health" }))
        .route("/metrics", get(|| async { "their metrics" }));
    let replica = world.replica(routes).await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    for (path, text) in [("/health", "their health"), ("/metrics", "their metrics")] {
        let response = client().get(world.url(path)).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), text);
    }
}

#[tokio::test]
async fn requests_failures_and_replicas_are_counted() {
    let (world, replicas) = World::with_replicas(2).await;
    let value = async |name: &str| {
        let url = format!("http://{}/metrics", world.status);
        let text = client().get(url).send().await.unwrap();
        let text = text.text().await.unwrap();
        let series = format!("{name}{{upstream=\"{}\"}} ", world.upstream);
        let line = text.lines().find(|line| line.starts_with(&series));
        let value: f64 = line?.strip_prefix(&series)?.parse().unwrap();
        Some(value)
    };
    assert_eq!(value("atoll_forward_replicas").await, Some(2.0));
    assert_eq!(value("atoll_forward_ready_replicas").await, Some(2.0));
    let requests = value("atoll_forward_requests_total").await.unwrap();
    let failures = value("atoll_forward_failures_total").await.unwrap();
    world.answered_by(5).await;
    let after = value("atoll_forward_requests_total").await;
    assert_eq!(after, Some(requests + 5.0));
    let after = value("atoll_forward_failures_total").await;
    assert_eq!(after, Some(failures));
    for replica in replicas {
        replica.stop().await;
    }
    client().get(world.url("/")).send().await.unwrap();
    let after = value("atoll_forward_failures_total").await;
    assert_eq!(after, Some(failures + 1.0));
}
