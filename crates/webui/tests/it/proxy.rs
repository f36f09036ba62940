//! Forwarding of `/api`, and the page's own paths.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use http::{StatusCode, header};
use net::resolve::{Resolver, ResolverOptions};
use service::server::{ClientAddress, HttpSettings};
use service::settings::Setting;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::{server, slow_clients};

/// Long enough for a busy machine; a test that reaches it has failed.
const DEADLINE: Duration = Duration::from_secs(30);

/// Responds with the request.
async fn mirror(request: Request) -> Response {
    let headers: Vec<(String, String)> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    let path = request.uri().to_string();
    let body = axum::body::to_bytes(request.into_body(), 1 << 24)
        .await
        .unwrap();
    let answer = serde_json::json!({ "path": path, "headers": headers, "length": body.len() });
    Json(answer).into_response()
}

async fn mirrored(response: reqwest::Response) -> serde_json::Value {
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

fn header_of<'a>(answer: &'a serde_json::Value, name: &str) -> Option<&'a str> {
    answer["headers"]
        .as_array()?
        .iter()
        .find(|pair| pair[0] == name)?[1]
        .as_str()
}

fn client() -> reqwest::Client {
    service::http_client(None, false).unwrap()
}

/// Sends `head` from a loopback address; returns the response.
async fn ask_from(client: [u8; 4], server: SocketAddr, head: &str) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((client, 0).into()).unwrap();
    let mut stream = socket.connect(server).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_api_believes_addresses_of_the_web_ui_alone() {
    let shown = async |Extension(client): Extension<ClientAddress>| client.ip.to_string();
    let http = HttpSettings {
        trusted_proxies: Setting::parse("127.0.0.1").unwrap(),
        trusted_proxy_secret: "of both".into(),
        ..HttpSettings::default()
    };
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let api = server::api_with(address, Router::new().fallback(shown), http).await;
    let webui = server::webui_with(api.address, |settings| {
        settings.http.trusted_proxy_secret = "of both".into();
    })
    .await;
    let head = |more: &str| {
        format!("GET /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n")
    };
    let forged = "X-Forwarded-For: 192.0.2.7\r\n";
    for (to, from, more, expected) in [
        (webui.address, [127, 0, 1, 5], "", "127.0.1.5"),
        (webui.address, [127, 0, 1, 5], forged, "127.0.1.5"),
        (api.address, [127, 0, 0, 1], forged, "127.0.0.1"),
        (
            api.address,
            [127, 0, 0, 1],
            "X-Forwarded-For: 192.0.2.7\r\nX-Atoll-Proxy-Secret: guessed\r\n",
            "127.0.0.1",
        ),
    ] {
        let answer = ask_from(from, to, &head(more)).await;
        assert!(answer.ends_with(expected), "{more:?}: {answer}");
    }
}

#[tokio::test]
async fn the_catalog_server_is_below_services() {
    let api = server::api(Router::new().fallback(mirror)).await;
    let catalogs = server::api(Router::new().fallback(mirror)).await;
    let ca = tempfile::NamedTempFile::new().unwrap();
    let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(ca.path(), format!("{pem}secret")).unwrap();
    let with = server::webui_with(api.address, |settings| {
        settings.catalog_server_url = Some(format!("http://{}", catalogs.address));
        settings.registry_page_url = Some("https://registry.example/ui/".to_owned());
        settings.registry_ca_file = Some(ca.path().to_owned());
    })
    .await;
    let without = server::webui(api.address).await;
    let listed = async |server: &server::Server| {
        let response = client().get(server.url("/services")).send().await.unwrap();
        mirrored(response).await
    };
    let all = serde_json::json!({
        "catalogs": true, "registry": "https://registry.example/ui/", "registry_api": false, "registry_ca": true, "downloads": null,
    });
    assert_eq!(listed(&with).await, all);
    assert_eq!(listed(&without).await["catalogs"], false);
    let download = with.url("/services/registry-ca.crt");
    let response = client().get(download).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), pem);
    let none = without.url("/services/registry-ca.crt");
    let response = client().get(none).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    for (path, seen) in [
        ("/services/catalogs", Some("/catalogs")),
        (
            "/services/catalogs/a/api/v1/metas?schema=olm.package",
            Some("/catalogs/a/api/v1/metas?schema=olm.package"),
        ),
        ("/services/registry", None),
    ] {
        let request = client().get(with.url(path)).header("cookie", "a=b");
        let response = request.bearer_auth("secret").send().await.unwrap();
        match seen {
            Some(seen) => {
                let answer = mirrored(response).await;
                assert_eq!(answer["path"], seen);
                assert_eq!(header_of(&answer, "cookie"), None);
                assert_eq!(header_of(&answer, "authorization"), None);
            }
            None => assert_eq!(response.status(), StatusCode::NOT_FOUND),
        }
        let response = client().get(without.url(path)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn paths_and_hosts_pass_untouched() {
    let api = server::api(Router::new().fallback(mirror)).await;
    let webui = server::webui(api.address).await;
    for path in [
        "/api/assisted-install/v2/clusters//default-config",
        "/api/assisted-install/v2/clusters/?a=%2F&b=%zz",
        "/api/%2e%2e/x",
        "/api",
        "/api/",
        "/api//",
    ] {
        // Raw: client libraries normalise paths.
        let answer = raw(webui.address, path).await;
        assert_eq!(answer["path"], path);
        assert_eq!(header_of(&answer, "host"), Some("ui.example:8080"));
        assert_eq!(header_of(&answer, "x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(header_of(&answer, "x-forwarded-proto"), Some("http"));
        assert_eq!(header_of(&answer, "x-dropped"), None);
    }
}

async fn raw(address: SocketAddr, path: &str) -> serde_json::Value {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: ui.example:8080\r\nConnection: close, x-dropped\r\nX-Dropped: 1\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test]
async fn half_sent_bodies_block_no_request() {
    let api = server::api(Router::new().fallback(mirror)).await;
    let webui = server::webui(api.address).await;
    let slow = slow_clients::half_sent(webui.address, "/api/reply").await;
    for _ in 0..20 {
        let from = Ipv4Addr::new(127, 0, 3, 1).into();
        let posting = slow_clients::post(from, webui.address, "/api/reply");
        let answer = tokio::time::timeout(DEADLINE, posting).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("\"length\":5"), "{answer}");
        let response = client().get(webui.url("/api/who")).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{} slow", slow.len());
    }
}

#[tokio::test]
async fn an_unavailable_api_gets_an_error_in_its_own_shape() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let webui = server::webui(address).await;
    let response = client().get(webui.url("/api/x")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key(header::RETRY_AFTER));
    let body = mirrored(response).await;
    assert_eq!(body["code"], 503);
    assert!(body["message"].as_str().unwrap().contains("API"), "{body}");
    let ready = client().get(webui.url("/ready")).send().await.unwrap();
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    let health = client().get(webui.url("/health")).send().await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
}

#[tokio::test]
async fn ready_once_the_api_is() {
    let api = server::api(Router::new().route("/ready", get(|| async {}))).await;
    let webui = server::webui(api.address).await;
    let url = webui.url("/ready");
    let ready = async {
        while !client()
            .get(&url)
            .send()
            .await
            .unwrap()
            .status()
            .is_success()
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, ready).await.unwrap();
    let page = client().get(webui.url("/apiary")).send().await.unwrap();
    assert!(page.text().await.unwrap().contains("<title>Atoll"));
}

#[tokio::test]
async fn all_replicas_of_the_api_are_used() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    let ips: Vec<IpAddr> = (1..=3)
        .map(|last| Ipv4Addr::new(127, 8, 0, last).into())
        .collect();
    let mut replicas = Vec::new();
    for ip in &ips {
        let name = ip.to_string();
        let routes = Router::new()
            .route("/ready", get(|| async {}))
            .route("/api/who", get(|| async { name }));
        replicas.push(server::api_on(SocketAddr::new(*ip, port), routes).await);
    }
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    let line = |ip| format!("{ip} api-server\n");
    std::fs::write(&hosts, ips.iter().map(line).collect::<String>()).unwrap();
    let names = Resolver::new(ResolverOptions {
        hosts,
        ..ResolverOptions::default()
    });
    let webui = server::webui_by_name(&format!("api-server:{port}"), names).await;
    let round = async || {
        let mut seen = BTreeMap::new();
        for _ in 0..9 {
            let response = client().get(webui.url("/api/who")).send().await.unwrap();
            *seen.entry(response.text().await.unwrap()).or_insert(0) += 1;
        }
        seen
    };
    let even: BTreeMap<String, i32> = ips.iter().map(|ip| (ip.to_string(), 3)).collect();
    // Unchecked replicas come last.
    let evenly = async { while round().await != even {} };
    tokio::time::timeout(DEADLINE, evenly).await.unwrap();
}
