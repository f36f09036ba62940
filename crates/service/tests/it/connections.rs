//! Bounds of connections, in all and of one client address.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures_util::{StreamExt as _, stream};
use service::CancellationToken;
use service::server::{HttpSettings, IpNetworks};
use service::settings::Setting as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Server, client, eventually, server, soon};

/// A server with a short response at `/`, and one at `/long` that ends with the token.
async fn here(http: HttpSettings) -> (Server, CancellationToken) {
    let end = CancellationToken::new();
    let ended = end.clone();
    let long = async move || {
        let end = stream::once(ended.cancelled_owned()).map(|()| "end");
        let parts = stream::once(async { "here" }).chain(end);
        Body::from_stream(parts.map(Ok::<_, Infallible>))
    };
    let router = Router::new()
        .route("/", get(async || "here"))
        .route("/long", get(long));
    (server(router, http).await, end)
}

/// A connection with a response that has begun, unless the server closes it at once.
async fn kept(server: &Server, client: IpAddr, path: &str) -> Option<TcpStream> {
    let mut stream = server.connect(client).await;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    read_until(&mut stream, b"here").await.then_some(stream)
}

/// Reads until `end`; false when the server closes before.
async fn read_until(stream: &mut TcpStream, end: &[u8]) -> bool {
    let mut answer = Vec::new();
    while !answer.ends_with(end) {
        let Ok(byte) = soon(stream.read_u8()).await else {
            return false;
        };
        answer.push(byte);
    }
    true
}

/// Waits until the server closes.
async fn closed(mut stream: TcpStream) {
    soon(stream.read_to_end(&mut Vec::new())).await.ok();
}

// limit: connections of a client
// share: connections
#[tokio::test]
async fn connections_of_a_client_are_limited() {
    let (server, _end) = here(HttpSettings {
        max_connections_per_client: 3,
        ..HttpSettings::default()
    })
    .await;
    let mut own = Vec::new();
    for _ in 0..3 {
        own.push(kept(&server, client(1), "/").await.unwrap());
    }
    assert!(kept(&server, client(1), "/").await.is_none());
    assert!(kept(&server, client(2), "/").await.is_some());
    own.pop();
    eventually(async || kept(&server, client(1), "/").await.is_some()).await;
}

// limit: connections
#[tokio::test]
async fn connections_are_limited_in_all() {
    let (server, end) = here(HttpSettings {
        max_connections: 4,
        ..HttpSettings::default()
    })
    .await;
    let mut heavy = Vec::new();
    for _ in 0..3 {
        heavy.push(kept(&server, client(1), "/long").await.unwrap());
    }
    let light = kept(&server, client(2), "/long").await.unwrap();
    assert!(kept(&server, client(1), "/").await.is_none());
    // A client with fewer evicts the quietest.
    let _newcomer = kept(&server, client(3), "/long").await.unwrap();
    closed(heavy.remove(0)).await;
    end.cancel();
    for stream in heavy.iter_mut().chain([light].iter_mut()) {
        assert!(read_until(stream, b"end").await);
    }
}

// limit: connections
#[tokio::test]
async fn idle_connections_make_room() {
    let (server, end) = here(HttpSettings {
        max_connections: 3,
        ..HttpSettings::default()
    })
    .await;
    let mut long = kept(&server, client(1), "/long").await.unwrap();
    let first = kept(&server, client(2), "/").await.unwrap();
    let second = kept(&server, client(3), "/").await.unwrap();
    // Idle after a second.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let _newcomer = kept(&server, client(4), "/").await.unwrap();
    // Either: both may have had their response in the same millisecond.
    tokio::select! {
        () = closed(first) => {}
        () = closed(second) => {}
    }
    end.cancel();
    assert!(read_until(&mut long, b"end").await);
}

#[tokio::test]
async fn trusted_proxies_are_exempt_from_the_limit_per_client() {
    let (server, _end) = here(HttpSettings {
        max_connections_per_client: 1,
        trusted_proxies: IpNetworks::parse("127.0.1.9").unwrap(),
        ..HttpSettings::default()
    })
    .await;
    let _first = kept(&server, client(9), "/").await.unwrap();
    assert!(kept(&server, client(9), "/").await.is_some());
    let _first = kept(&server, client(1), "/").await.unwrap();
    assert!(kept(&server, client(1), "/").await.is_none());
}
