//! The registry's API below `/services/registry`.

use std::net::SocketAddr;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::server::{self, Server};

/// Concurrent requests that the server passes on.
const REQUESTS: usize = 64;
/// Of one client.
const OF_CLIENT: usize = 16;
const PATH: &str = "/services/registry/v2/a/tags/list?n=5&last=%2F";

/// A registry that wants a login, and responds with the request.
async fn registry(request: Request) -> Response {
    let text = |name: &str| {
        let value = request.headers().get(name);
        value.map(|value| value.to_str().unwrap().to_owned())
    };
    let seen = json!({
        "method": request.method().as_str(), "target": request.uri().to_string(), "host": text("host"),
        "authorization": text("authorization"), "cookie": text("cookie"), "accept": text("accept"),
    });
    let status = match text("authorization") {
        Some(_) => StatusCode::OK,
        None => StatusCode::UNAUTHORIZED,
    };
    let headers = [
        ("www-authenticate", "Basic realm=\"Registry\""),
        ("link", "</v2/_catalog?last=a>; rel=\"next\""),
        ("set-cookie", "a=b"),
        ("docker-content-digest", "sha256:0"),
    ];
    (status, headers, Json(seen)).into_response()
}

async fn in_front_of(registry: SocketAddr) -> Server {
    server::webui_with(registry, |settings| {
        settings.registry_url = Some(format!("http://{registry}"));
    })
    .await
}

fn request(server: &Server, method: Method, path: &str) -> reqwest::RequestBuilder {
    let client = service::http_client(None, false).unwrap();
    client.request(method, server.url(path))
}

#[tokio::test]
async fn the_registrys_login_passes_and_its_challenge_does_not() {
    let registry = server::api(Router::new().fallback(registry)).await;
    let webui = in_front_of(registry.address).await;
    let without = request(&webui, Method::GET, PATH).send().await.unwrap();
    assert_eq!(without.status(), StatusCode::UNAUTHORIZED);
    for name in ["www-authenticate", "set-cookie"] {
        assert_eq!(without.headers().get(name), None, "{name}");
    }
    let with = request(&webui, Method::GET, PATH).basic_auth("user", Some("secret"));
    let with = with.header("cookie", "session=1").header("accept", "a/b");
    let with = with.send().await.unwrap();
    let headers = with.headers().clone();
    assert_eq!(headers["docker-content-digest"], "sha256:0");
    assert_eq!(headers["link"], "</v2/_catalog?last=a>; rel=\"next\"");
    // Pushed content is no page of this server.
    assert_eq!(
        headers["content-security-policy"],
        "sandbox; default-src 'none'"
    );
    assert_eq!(headers["content-disposition"], "attachment");
    let seen: Value = serde_json::from_str(&with.text().await.unwrap()).unwrap();
    let expected = json!({
        "method": "GET", "target": "/v2/a/tags/list?n=5&last=%2F", "host": registry.address.to_string(),
        "authorization": "Basic dXNlcjpzZWNyZXQ=", "cookie": null, "accept": "a/b",
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn foreign_pages_change_nothing_in_the_registry() {
    let registry = server::api(Router::new().fallback(registry)).await;
    let webui = in_front_of(registry.address).await;
    for (method, site, expected) in [
        (Method::DELETE, Some("same-origin"), StatusCode::OK),
        (Method::POST, Some("same-origin"), StatusCode::OK),
        (Method::DELETE, Some("cross-site"), StatusCode::FORBIDDEN),
        (Method::POST, Some("same-site"), StatusCode::FORBIDDEN),
        // A program, with a login of its own.
        (Method::POST, None, StatusCode::OK),
        (
            Method::PUT,
            Some("same-origin"),
            StatusCode::METHOD_NOT_ALLOWED,
        ),
        (
            Method::PATCH,
            Some("same-origin"),
            StatusCode::METHOD_NOT_ALLOWED,
        ),
    ] {
        let mut sent = request(&webui, method.clone(), PATH).bearer_auth("token");
        if let Some(site) = site {
            sent = sent.header("sec-fetch-site", site);
        }
        let response = sent.send().await.unwrap();
        assert_eq!(response.status(), expected, "{method} {site:?}");
    }
    for path in [
        "/services/registry",
        "/services/registry/ui/",
        "/services/registry/v2",
    ] {
        let response = request(&webui, Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_registry_that_is_away_is_named() {
    let webui = in_front_of(SocketAddr::from(([127, 0, 0, 1], 1))).await;
    let response = request(&webui, Method::GET, PATH).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    let text = response.text().await.unwrap();
    assert!(text.contains("The registry cannot be reached"), "{text}");
}

/// A request from the loopback address with that last number.
async fn from(server: &Server, last: u8) -> reqwest::Result<reqwest::Response> {
    let tls = net::trust::client_config(None, false).unwrap();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .local_address(std::net::IpAddr::from([127, 0, 0, last]));
    client.build()?.get(server.url(PATH)).send().await
}

// limit: requests of a client to the registry in flight
// share: requests to the registry in flight
#[tokio::test(flavor = "multi_thread")]
async fn one_client_has_a_share_of_the_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let webui = in_front_of(listener.local_addr().unwrap()).await;
    let silent = async {
        let mut open = Vec::new();
        while open.len() < OF_CLIENT {
            open.push(listener.accept().await.unwrap());
        }
        let further = from(&webui, 1).await.unwrap();
        assert_eq!(further.status(), StatusCode::SERVICE_UNAVAILABLE);
        // Another client is served.
        tokio::select! {
            accepted = listener.accept() => drop(accepted.unwrap()),
            other = from(&webui, 2) => panic!("{:?}", other.map(|it| it.status())),
        }
    };
    let all = join_all((0..OF_CLIENT).map(|_| from(&webui, 1)));
    tokio::select! {
        () = silent => {}
        _ = all => panic!("ended too early"),
    }
}

// limit: requests to the registry in flight
// limit: time for the registry's response
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_registry_takes_no_more_than_its_share() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let webui = in_front_of(listener.local_addr().unwrap()).await;
    let silent = async {
        let mut open = Vec::new();
        while open.len() < REQUESTS {
            open.push(listener.accept().await.unwrap());
        }
        // One that has its share, and one that has none.
        for last in [1, 9] {
            let further = from(&webui, last).await.unwrap();
            assert_eq!(further.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(further.headers()["retry-after"], "2");
        }
        // Kept open: the server's own timeout ends the requests.
        std::future::pending::<()>().await;
        drop(open);
    };
    let clients = (1..=4).cycle();
    let requests = clients.take(REQUESTS).map(|last| from(&webui, last));
    let all = join_all(requests);
    tokio::select! {
        () = silent => unreachable!(),
        responses = all => {
            for response in responses {
                assert_eq!(response.unwrap().status(), StatusCode::GATEWAY_TIMEOUT);
            }
        }
    }
}
