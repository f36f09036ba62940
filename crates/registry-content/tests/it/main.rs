//! Readings of a large registry that sends no notifications: a fake one, which counts requests.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use oci::Reference;
use oci_client::{Client, ClientOptions};
use registry_content::{ContentReader, EarlierReadings, HeldRelease, RegistryContent};
use serde_json::json;

const RELEASES: usize = 200;
const REPOSITORIES: usize = 5_000;
/// Readings until nothing is left that was not asked for.
const ROUND: usize = 48;

/// Paths of requests since they were last taken.
type Requests = Arc<Mutex<Vec<String>>>;

fn tag(number: usize) -> String {
    format!("4.18.{number}-x86_64")
}

fn digest(number: usize) -> String {
    format!("sha256:{number:064}")
}

async fn answer(State(requests): State<Requests>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    requests.lock().unwrap().push(path.clone());
    if path == "/v2/_catalog" {
        let others = (1..REPOSITORIES).map(|number| format!("apps/a{number}"));
        let names: Vec<_> = others
            .chain(["openshift/release-images".to_owned()])
            .collect();
        return Json(json!({ "repositories": names })).into_response();
    }
    if path.ends_with("/tags/list") {
        let none = |number: u32| format!("1.{number}");
        let tags: Vec<String> = if path.contains("/release-images/") {
            (0..RELEASES).map(tag).collect()
        } else {
            (0..2).map(none).collect()
        };
        return Json(json!({ "tags": tags })).into_response();
    }
    let number = (0..RELEASES).find(|number| path.ends_with(&tag(*number)));
    match number {
        Some(number) => [("docker-content-digest", digest(number))].into_response(),
        None => StatusCode::OK.into_response(),
    }
}

#[tokio::test]
async fn an_hour_costs_less_than_a_request_for_each_release() {
    let requests = Requests::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new()
        .fallback(any(answer))
        .with_state(Arc::clone(&requests));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let take = || std::mem::take(&mut *requests.lock().unwrap());

    let place: Reference = format!("{address}/a").parse().unwrap();
    let reader = ContentReader {
        client: Client::new(ClientOptions {
            insecure: true,
            ..ClientOptions::default()
        })
        .unwrap(),
        registry: place.registry,
        namespace: String::new(),
        scratch: "/nonexistent".into(),
    };
    let release = |number: usize| HeldRelease {
        image: format!("{address}/openshift/release-images:{}", tag(number)),
        digest: digest(number),
        version: format!("4.18.{number}"),
        architectures: vec!["x86_64".to_owned()],
        ..HeldRelease::default()
    };
    let known = RegistryContent {
        releases: (0..RELEASES).map(release).collect(),
        ..RegistryContent::default()
    };
    let mut earlier = EarlierReadings::default();
    reader.read(&known, &mut earlier).await.unwrap();
    take();
    let mut asked = BTreeSet::new();
    for hour in 1..=ROUND {
        reader.read(&known, &mut earlier).await.unwrap();
        let of_hour = take();
        assert!(of_hour.len() <= RELEASES, "hour {hour}: {}", of_hour.len());
        asked.extend(of_hour);
    }
    let of = |end: &str| asked.iter().filter(|path| path.contains(end)).count();
    assert_eq!(
        (of("/tags/list"), of("/manifests/")),
        (REPOSITORIES, RELEASES)
    );

    // A report is followed at once, also for a repository that had no release.
    let name = "apps/a7".to_owned();
    let changed = BTreeSet::from([name.clone()]);
    earlier.forget(&changed);
    reader.read_changed(&known, &changed).await.unwrap();
    let paths = take();
    assert!(
        paths.contains(&format!("/v2/{name}/tags/list")),
        "{paths:?}"
    );
    assert_eq!(paths.len(), 2, "{paths:?}");
}
