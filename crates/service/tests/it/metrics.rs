//! Metrics under clients that send arbitrary methods.

use axum::Router;
use axum::routing::get;
use service::health::{self, Health};
use service::server::HttpSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{client, server, soon};

/// Requests with a method of its own each.
const REQUESTS: usize = 2000;
/// Units: bytes.
const METHOD_BYTES: usize = 60_000;

/// Units: bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<usize>().unwrap() * 1024
}

#[tokio::test]
async fn methods_of_clients_take_no_memory_and_no_series() {
    let metrics_address = Some("127.0.0.1:0".parse().unwrap());
    let http = HttpSettings {
        metrics_address,
        ..HttpSettings::default()
    };
    let routes = Router::new().route("/", get(async || "here"));
    let router = routes.merge(health::routes(Health::new(), false));
    let server = server(service::layers::apply(router, "flooded"), http).await;
    let mut stream = server.connect(client(1)).await;
    let before = resident();
    for number in 0..REQUESTS {
        let method = format!("M{number:0width$}", width = METHOD_BYTES - 1);
        let request = format!("{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(soon(stream.read_u8()).await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 405"), "{head:?}");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");

    let metrics = server.running.addresses()[1];
    let text = asks(metrics, "/metrics").await;
    let series = text.lines().filter(|line| line.contains("\"flooded\""));
    let methods = series.filter(|line| line.contains("method="));
    let count = methods.clone().count();
    assert!(methods.clone().all(|line| line.contains("OTHER")), "{text}");
    assert!((1..50).contains(&count), "{count} series");
    assert!(text.len() < 256 << 10, "{} bytes", text.len());
    // Not on the public port.
    let text = asks(server.address, "/metrics").await;
    assert!(text.starts_with("HTTP/1.1 404"), "{text}");
    assert!(text.contains("METRICS_ADDRESS"), "{text}");
}

async fn asks(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}
