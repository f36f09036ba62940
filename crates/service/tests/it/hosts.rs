//! Hosts that requests name.

use axum::Router;
use axum::routing::get;
use service::server::HttpSettings;
use service::settings::CommaList;

use crate::world::{client, server, status};

#[tokio::test]
async fn a_request_names_one_host_that_is_served_here() {
    let router = Router::new().route("/", get(async || "here"));
    let http = HttpSettings {
        allowed_hosts: CommaList(vec!["atoll.example".to_owned()]),
        ..HttpSettings::default()
    };
    let server = server(router, http).await;
    for (head, code) in [
        ("GET / HTTP/1.1\r\n", "400"),
        (
            "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nHost: localhost\r\nHost: rebound.example\r\n",
            "400",
        ),
        ("GET / HTTP/1.1\r\nHost: a b\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost:\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: rebound.example\r\n", "421"),
        (
            "GET http://rebound.example/ HTTP/1.1\r\nHost: localhost\r\n",
            "421",
        ),
        ("GET / HTTP/1.0\r\nHost: rebound.example\r\n", "421"),
        ("GET / HTTP/1.0\r\n", "200"),
        ("GET / HTTP/1.1\r\nHost: atoll.example:8090\r\n", "200"),
        ("GET / HTTP/1.1\r\nHost: localhost:8090\r\n", "200"),
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1:8090\r\n", "200"),
        ("GET / HTTP/1.1\r\nHost: [::1]:8090\r\n", "200"),
    ] {
        let request = format!("{head}Connection: close\r\n\r\n");
        let answer = server.ask(client(1), &request).await;
        assert_eq!(status(&answer), code, "{head}: {answer}");
    }
}
