//! Notifications of pushes and pulls.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Redirect};
use axum::routing::post;
use oci::Digest;
use registry::{Endpoints, Settings};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use service::settings::Setting as _;
use testkit::ports::free_port;

use crate::server::{OCI_MANIFEST, Server, eventually};

/// An endpoint.
#[derive(Clone, Default)]
struct Receiver {
    events: Arc<Mutex<Vec<Value>>>,
    headers: Arc<Mutex<HeaderMap>>,
    /// Status of its replies.
    status: Arc<Mutex<StatusCode>>,
    /// Target of its redirects.
    location: Arc<Mutex<Option<String>>>,
}

impl Receiver {
    /// Listens on `port`, or on any.
    async fn listen(&self, port: u16) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port));
        let listener = listener.await.unwrap();
        let address = listener.local_addr().unwrap();
        let moved = async || Redirect::temporary("/events");
        let router = Router::new().route("/events", post(take));
        let router = router.route("/moved", post(moved));
        let router = router.with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    fn events(&self) -> Vec<Value> {
        self.events.lock().unwrap().clone()
    }

    /// Action, repository and tag of each event.
    fn reported(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let reported = self.events().into_iter().map(|event| {
            let target = &event["target"];
            let (name, tag) = (text(&target["repository"]), text(&target["tag"]));
            format!("{} {name} {tag}", text(&event["action"]))
        });
        reported.collect()
    }
}

async fn take(
    State(receiver): State<Receiver>,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let status = *receiver.status.lock().unwrap();
    let location = receiver.location.lock().unwrap().clone();
    if status.is_success() {
        let body: Value = serde_json::from_slice(&body).unwrap();
        let events = body["events"].as_array().unwrap().clone();
        receiver.events.lock().unwrap().extend(events);
        *receiver.headers.lock().unwrap() = headers;
    }
    (status, location.map(|url| [(LOCATION, url)]), ())
}

fn endpoint(settings: &mut Settings, address: SocketAddr, more: &[(&str, &str)]) {
    let url = format!("http://{address}/events");
    let first = [
        ("0_url", url.as_str()),
        ("0_threshold", "1"),
        ("0_backoff", "10ms"),
    ];
    let parts = first.iter().chain(more).copied().collect();
    settings.registry_notifications_endpoints = Endpoints::parse_parts(&parts).unwrap();
}

#[tokio::test]
async fn every_action_is_an_event_in_distributions_format() {
    let receiver = Receiver::default();
    let address = receiver.listen(0).await;
    let server = Server::with(|settings| {
        endpoint(
            settings,
            address,
            &[("0_headers_authorization_0", "Bearer t")],
        );
        settings.registry_notifications_events_includereferences = true;
    })
    .await;
    let body = server.push_image("a", "t", "layer").await;
    let (layer, digest) = (Digest::sha256(b"layer"), Digest::sha256(body.as_bytes()));
    server.get("/v2/a/manifests/t").await;
    server.get(&format!("/v2/a/blobs/{layer}")).await;
    // Looking is not pulling.
    server.head("/v2/a/manifests/t").await;
    server.head(&format!("/v2/a/blobs/{layer}")).await;
    server.get("/v2/a/manifests/none").await;
    let mount = format!("/v2/b/blobs/uploads/?mount={layer}&from=a");
    server.request(Method::POST, &mount).send().await.unwrap();
    server.delete("/v2/a/manifests/t").await;
    server.delete(&format!("/v2/a/manifests/{digest}")).await;
    server.delete(&format!("/v2/a/blobs/{layer}")).await;
    let expected = [
        "push a -",
        "push a -",
        "push a t",
        "pull a t",
        "pull a -",
        "mount b -",
        "delete a t",
        "delete a -",
        "delete a -",
    ];
    eventually(async || receiver.reported().len() >= expected.len()).await;
    assert_eq!(receiver.reported(), expected);

    let events = receiver.events();
    let target = &events[2]["target"];
    assert_eq!(target["mediaType"], OCI_MANIFEST);
    assert_eq!(target["digest"], digest.to_string());
    assert_eq!(target["size"], body.len());
    assert_eq!(target["length"], body.len());
    assert_eq!(
        target["url"],
        format!("{}/v2/a/manifests/{digest}", server.base)
    );
    assert_eq!(target["references"].as_array().unwrap().len(), 2);
    assert_eq!(target["references"][1]["digest"], layer.to_string());
    let request = &events[2]["request"];
    assert_eq!(request["method"], "PUT");
    assert_eq!(request["host"], server.address().to_string());
    assert!(request["addr"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert_eq!(events[1]["target"]["mediaType"], "application/octet-stream");
    assert_eq!(events[1]["target"]["size"], "layer".len());
    assert_eq!(events[5]["target"]["fromRepository"], "a");
    assert_eq!(events[7]["target"]["digest"], digest.to_string());
    for member in ["id", "timestamp"] {
        assert!(events[0][member].is_string(), "{member}");
    }
    assert!(events[0]["source"]["instanceID"].is_string());
    assert_ne!(events[0]["id"], events[1]["id"]);
    let headers = receiver.headers.lock().unwrap().clone();
    assert_eq!(headers["authorization"], "Bearer t");
    let kind = "application/vnd.docker.distribution.events.v2+json";
    assert_eq!(headers["content-type"], kind);
}

#[tokio::test]
async fn ignored_actions_and_media_types_are_not_delivered() {
    let receiver = Receiver::default();
    let address = receiver.listen(0).await;
    let ignore = [
        ("0_ignore_actions_0", "pull"),
        ("0_ignoredmediatypes_0", "application/octet-stream"),
    ];
    let server = Server::with(|settings| endpoint(settings, address, &ignore)).await;
    server.push_image("a", "t", "x").await;
    server.get("/v2/a/manifests/t").await;
    server.delete("/v2/a/manifests/t").await;
    eventually(async || receiver.reported().len() >= 2).await;
    assert_eq!(receiver.reported(), ["push a t", "delete a t"]);
}

#[tokio::test]
async fn refused_events_are_retried_in_order() {
    let receiver = Receiver::default();
    *receiver.status.lock().unwrap() = StatusCode::INTERNAL_SERVER_ERROR;
    let address = receiver.listen(0).await;
    let ignore = [("0_ignoredmediatypes_0", "application/octet-stream")];
    let server = Server::with(|settings| endpoint(settings, address, &ignore)).await;
    // No push waits for it.
    for tag in ["t1", "t2", "t3"] {
        server.push_image("a", tag, tag).await;
    }
    let refused = async || {
        let numbers = server.get("/metrics").await.text().await.unwrap();
        numbers.contains("registry_notifications_status_total{code=\"500 Internal Server Error\"")
    };
    eventually(refused).await;
    assert!(receiver.reported().is_empty());
    *receiver.status.lock().unwrap() = StatusCode::OK;
    eventually(async || receiver.reported().len() >= 3).await;
    assert_eq!(receiver.reported(), ["push a t1", "push a t2", "push a t3"]);
}

/// Neither its events nor its headers reach an address that an endpoint names, such as a service on loopback or the
/// metadata of a cloud.
#[tokio::test]
async fn redirects_to_other_servers_are_refusals() {
    let (receiver, trap) = (Receiver::default(), Receiver::default());
    let (address, trapped) = (receiver.listen(0).await, trap.listen(0).await);
    let more = [
        ("0_ignoredmediatypes_0", "application/octet-stream"),
        ("0_headers_x-api-key_0", "hidden"),
    ];
    let server = Server::with(|settings| endpoint(settings, address, &more)).await;
    let mut expected = Vec::new();
    for status in [301, 302, 303, 307, 308] {
        let status = StatusCode::from_u16(status).unwrap();
        *receiver.location.lock().unwrap() =
            Some(format!("http://u:p@{trapped}/events?key=hidden"));
        *receiver.status.lock().unwrap() = status;
        let tag = format!("t{}", status.as_u16());
        server.push_image("a", &tag, &tag).await;
        expected.push(format!("push a {tag}"));
        let refused = async || {
            let numbers = server.get("/metrics").await.text().await.unwrap();
            numbers.contains(&format!(
                "registry_notifications_status_total{{code=\"{status}\""
            ))
        };
        eventually(refused).await;
        assert_eq!(receiver.reported().len(), expected.len() - 1);
        *receiver.location.lock().unwrap() = None;
        *receiver.status.lock().unwrap() = StatusCode::OK;
        eventually(async || receiver.reported() == expected).await;
    }
    assert!(trap.events().is_empty() && trap.headers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn redirects_within_a_server_are_followed() {
    let receiver = Receiver::default();
    let address = receiver.listen(0).await;
    let url = format!("http://{address}/moved");
    let more = [
        ("0_url", url.as_str()),
        ("0_ignoredmediatypes_0", "application/octet-stream"),
        ("0_headers_x-api-key_0", "hidden"),
    ];
    let server = Server::with(|settings| endpoint(settings, address, &more)).await;
    server.push_image("a", "t", "x").await;
    eventually(async || receiver.reported() == ["push a t"]).await;
    assert_eq!(receiver.headers.lock().unwrap()["x-api-key"], "hidden");
}

#[tokio::test]
async fn whoever_never_answers_delays_nobody() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::with(|settings| {
        endpoint(settings, address, &[("0_timeout", "1h")]);
    })
    .await;
    // The connection is taken and held.
    server.push_image("a", "t", "x").await;
    let _held = listener.accept().await.unwrap();
    let body = server.push_image("a", "t", "y").await;
    let got = server.get("/v2/a/manifests/t").await;
    assert_eq!(got.text().await.unwrap(), body);
    // Nor does the end wait.
    server.restart().await;
}

#[tokio::test]
async fn pending_events_are_delivered_after_a_restart() {
    let ignore = [("0_ignoredmediatypes_0", "application/octet-stream")];
    // No server listens there.
    let port = free_port().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let server = Server::with(|settings| endpoint(settings, address, &ignore)).await;
    server.push_image("a", "t1", "x").await;
    let server = server.restart().await;
    server.push_image("a", "t2", "y").await;
    let receiver = Receiver::default();
    receiver.listen(port).await;
    eventually(async || receiver.reported().len() >= 2).await;
    assert_eq!(receiver.reported(), ["push a t1", "push a t2"]);
}

#[tokio::test]
async fn events_survive_kill_9() {
    let talker = Server::plain().await;
    let root = tempfile::tempdir().unwrap();
    let (port, there) = (free_port().unwrap(), free_port().unwrap());
    let start = || {
        let url = format!("http://127.0.0.1:{there}/events");
        let mut command = Command::new(env!("CARGO_BIN_EXE_registry"));
        command
            .env("REGISTRY_HTTP_ADDR", format!("127.0.0.1:{port}"))
            .env("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", root.path())
            .env("REGISTRY_NOTIFICATIONS_ENDPOINTS_0_URL", url)
            .env("REGISTRY_NOTIFICATIONS_ENDPOINTS", "")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let base = format!("http://127.0.0.1:{port}");
    let is_up = async || {
        talker
            .http
            .get(format!("{base}/health"))
            .send()
            .await
            .is_ok()
    };
    let mut process = start();
    eventually(is_up).await;
    let digest = Digest::sha256(b"x");
    let upload = format!("{base}/v2/a/blobs/uploads/?digest={digest}");
    let push = talker.request(Method::POST, &upload).body("x");
    assert_eq!(push.send().await.unwrap().status(), StatusCode::CREATED);
    let journals = root.path().join(".atoll/notifications");
    let waits = || {
        let entries = std::fs::read_dir(&journals).unwrap().flatten();
        let mut sizes = entries.map(|entry| entry.metadata().unwrap().len());
        sizes.any(|size| size > 0)
    };
    eventually(async || waits()).await;
    process.kill().unwrap();
    process.wait().unwrap();
    let receiver = Receiver::default();
    receiver.listen(there).await;
    let mut process = start();
    eventually(async || !receiver.reported().is_empty()).await;
    assert_eq!(receiver.reported()[0], "push a -");
    process.kill().unwrap();
    process.wait().unwrap();
}
