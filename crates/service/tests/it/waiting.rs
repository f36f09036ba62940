//! Bounds of the bytes in memory that wait for clients which do not read.

use std::net::IpAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::routing::{get, post};
use futures_util::{StreamExt as _, stream};
use service::server::HttpSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Server, client, eventually, server, soon, status};

/// Far more than the buffers of the kernel hold. Units: bytes.
const LONG: usize = 16 << 20;
/// Memory of responses beside their bytes. Units: bytes.
const MARGIN: usize = 4 << 10;

/// A server with a long response of each number at `/{number}`, to a GET and to a POST, and a stream of it.
async fn here() -> Server {
    let long = async |Path(number): Path<u8>| vec![number; LONG];
    let chunks = async |Path(number): Path<u8>| {
        let chunk = vec![number; LONG / 1024];
        Body::from_stream(
            stream::repeat(chunk)
                .map(Ok::<_, std::io::Error>)
                .take(1024),
        )
    };
    let router = Router::new()
        .route("/{number}", get(long).merge(post(long)))
        .route("/stream/{number}", get(chunks));
    let http = HttpSettings {
        max_waiting_bytes_per_client: 2 * LONG + MARGIN,
        max_waiting_bytes: 3 * LONG + MARGIN,
        ..HttpSettings::default()
    };
    server(router, http).await
}

/// A connection whose client reads the head of a response only; and the status.
async fn unread(server: &Server, from: IpAddr, request: &str) -> (TcpStream, String) {
    let mut stream = server.connect(from).await;
    let head = format!("{request} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    soon(stream.read_exact(&mut start)).await.unwrap();
    let start = String::from_utf8_lossy(&start).into_owned();
    (stream, status(&start).to_owned())
}

// limit: bytes that wait for a client
// limit: bytes that wait for clients
#[tokio::test]
async fn responses_that_nobody_reads_are_limited() {
    let server = here().await;
    let mut unread_ones = Vec::new();
    for (from, request, expected) in [
        (1, "GET /1", "200"),
        (1, "GET /2", "200"),
        // At the bound of a client, which does not count the longest.
        (1, "GET /3", "200"),
        (1, "GET /4", "429"),
        // Equal responses count once, and streams do not count.
        (1, "GET /3", "200"),
        (1, "GET /stream/4", "200"),
        (2, "GET /3", "200"),
        // At the bound of the server.
        (2, "GET /4", "200"),
        (3, "GET /5", "503"),
        (3, "GET /4", "200"),
    ] {
        let (stream, status) = unread(&server, client(from), request).await;
        assert_eq!(status, expected, "{request} of {from}");
        unread_ones.push(stream);
    }
    let refused = "GET /6 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let refused = server.ask(client(3), refused).await;
    assert!(refused.contains("retry-after: 1"), "{refused}");
    assert!(refused.contains("(MAX_WAITING_BYTES)"), "{refused}");
    // A retry would make a change twice.
    let changed =
        "POST /6 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let changed = server.ask(client(3), changed).await;
    assert!(changed.contains("was carried out"), "{changed}");
    assert!(!changed.contains("retry-after"), "{changed}");
    drop(unread_ones);
    eventually(async || server.get(client(3), "/6", "").await == "200").await;
}

#[tokio::test]
async fn responses_that_are_read_are_not_limited() {
    let server = here().await;
    for number in 1..=9 {
        let request =
            format!("GET /{number} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = server.ask(client(1), &request).await;
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        assert!(body.len() == LONG && body.bytes().all(|byte| byte == number));
        assert!(answer.contains(&format!("content-length: {LONG}\r\n")));
    }
}
