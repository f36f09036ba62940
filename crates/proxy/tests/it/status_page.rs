//! The status page.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use service::forward::Upstream;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::raw;
use crate::site_process::{SiteProcess, free_port};
use crate::site_world::{SiteWorld, json_of, made, parsed, upstream};
use crate::world::eventually;

async fn got(page: SocketAddr, path: &str, headers: &str) -> (StatusCode, HeaderMap, String) {
    let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    parsed(&raw::ask(page, &request).await)
}

async fn state(page: SocketAddr) -> Value {
    let (status, headers, body) = got(page, "/status.json", "Host: localhost\r\n").await;
    assert_eq!(status, 200);
    assert_eq!(headers["content-type"], "application/json");
    json_of(&body)
}

/// Answers at `release`; with 503 on `/busy`.
async fn held(release: &Arc<Notify>) -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let release = release.clone();
    let router = Router::new().fallback(async move |request: Request| {
        match request.uri().path() {
            "/hold" => release.notified().await,
            "/busy" => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
            _ => {}
        }
        "here".into_response()
    });
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Upstream::parse(&origin).unwrap()
}

#[tokio::test]
async fn the_page_shows_routes_replicas_certificates_and_connections() {
    let release = Arc::new(Notify::new());
    let (api, web) = (held(&release).await, upstream("web").await);
    let (origin, web_origin) = (api.to_string(), web.to_string());
    let site = SiteWorld::start_with(|settings| {
        settings.site.api_url = api;
        settings.site.web_url = web;
        settings.status_page_port = Some(0);
    })
    .await;
    let page = site.page.unwrap();
    assert_eq!(page.ip(), IpAddr::from(Ipv4Addr::LOCALHOST));
    fs::write(site.certs.path().join("broken.pem"), "broken").unwrap();
    fs::write(
        site.certs.path().join("crt-list.txt"),
        "site.pem\nbroken.pem\n",
    )
    .unwrap();
    let mut stream = site.connect(&site.wildcard, "api.site.test").await.unwrap();
    stream
        .write_all(b"GET /hold?token=s3cret HTTP/1.1\r\nHost: api.site.test\r\n\r\n")
        .await
        .unwrap();
    let (status, ..) = site.asked("api.site.test", "api.site.test", "").await;
    assert_eq!(status, 200);
    let mut busy = site.connect(&site.wildcard, "api.site.test").await.unwrap();
    busy.write_all(b"GET /busy HTTP/1.1\r\nHost: api.site.test\r\n\r\n")
        .await
        .unwrap();
    raw::read_until(&mut busy, "\r\n\r\n").await;
    eventually(async || {
        let state = state(page).await;
        let replica = &state["routes"][0]["replicas"][0];
        replica["requests_in_flight"] == 1
            && replica["failures"] == 1
            && replica["is_ready"] == true
            && state["certificates"]["certificates"][1]["problem"].is_string()
    })
    .await;
    let report = state(page).await;
    let routes = report["routes"].as_array().unwrap();
    assert_eq!(routes.len(), 2);
    assert_eq!(routes[0]["requests"], json!(["api.site.test"]));
    assert_eq!(routes[0]["origin"], origin);
    assert_eq!(
        routes[1]["requests"],
        json!(["web.site.test", "service.site.test"])
    );
    assert_eq!(routes[1]["origin"], web_origin);
    let certificates = &report["certificates"]["certificates"];
    assert_eq!(
        certificates[0]["names"],
        json!(["*.site.test", "site.test"])
    );
    assert_eq!(certificates[0]["is_in_force"], true);
    assert!(certificates[0]["expires"].is_string() && certificates[0]["problem"].is_null());
    assert_eq!(certificates[1]["is_in_force"], false);
    assert_eq!(report["registry"]["server_name"], "registry.site.test");
    assert!(report["connections"]["open"].as_u64().unwrap() >= 2);
    assert_eq!(report["last_reload"], Value::Null);

    let html = "Host: localhost\r\nAccept: text/html,*/*\r\n";
    let (status, headers, body) = got(page, "/", html).await;
    assert_eq!(
        (status.as_u16(), &headers["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    for text in [
        &origin,
        "api.site.test",
        "*.site.test",
        "not in force",
        "broken.pem",
    ] {
        assert!(body.contains(text), "{text}: {body}");
    }
    assert!(
        !body.contains("<script") && !body.contains("s3cret"),
        "{body}"
    );
    // Not for pages of other names that resolve to this address.
    let (status, ..) = got(page, "/", "Host: evil.example\r\n").await;
    assert_eq!(status, StatusCode::MISDIRECTED_REQUEST);
    release.notify_one();
    raw::read_until(&mut stream, "here").await;
    eventually(async || state(page).await["routes"][0]["replicas"][0]["requests_in_flight"] == 0)
        .await;
}

#[tokio::test]
async fn the_page_is_off_unless_it_has_a_port() {
    assert!(SiteWorld::start().await.page.is_none());
}

#[tokio::test]
async fn the_page_shows_the_last_reload() {
    let trusted = made(&["*.site.test"]);
    let api = upstream("api").await;
    let port = free_port(Ipv4Addr::LOCALHOST.into());
    let page = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let common = format!("STATUS_PAGE_PORT={port}\n");
    let site = SiteProcess::start(&trusted, &format!("{common}API_URL={api}\n")).await;
    eventually(async || tokio::net::TcpStream::connect(page).await.is_ok()).await;
    site.set(&format!("{common}API_URL=https://user:s3cret@x\n"));
    site.process.hang_up();
    eventually(async || state(page).await["last_reload"].is_object()).await;
    let report = state(page).await;
    assert_eq!(report["last_reload"]["problems"][0][0], "API_URL");
    assert!(!report.to_string().contains("s3cret"), "{report}");
    let (_, _, body) = got(page, "/", "Host: localhost\r\nAccept: text/html\r\n").await;
    assert!(
        body.contains("refused, the old settings are in force"),
        "{body}"
    );
    site.set(&format!("{common}API_URL={api}\nFILES_PORT=1\n"));
    site.process.hang_up();
    eventually(async || state(page).await["last_reload"]["needs_restart"] == json!(["FILES_PORT"]))
        .await;
    assert_eq!(state(page).await["last_reload"]["problems"], json!([]));
}
