//! Bounds of connections, in all and of one client address.

use std::net::IpAddr;

use axum::Router;
use axum::routing::get;
use service::server::{HttpSettings, IpNetworks};
use service::settings::Setting as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Server, client, eventually, server, soon};

async fn here(http: HttpSettings) -> Server {
    server(Router::new().route("/", get(async || "here")), http).await
}

/// A connection that has been answered and is kept, unless the server closes it at once.
async fn kept(server: &Server, client: IpAddr) -> Option<TcpStream> {
    let mut stream = server.connect(client).await;
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.ok()?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"here") {
        answer.push(soon(stream.read_u8()).await.ok()?);
    }
    Some(stream)
}

// limit: connections of a client
#[tokio::test]
async fn connections_of_a_client_are_limited() {
    let server = here(HttpSettings {
        max_connections_per_client: 3,
        ..HttpSettings::default()
    })
    .await;
    let mut own = Vec::new();
    for _ in 0..3 {
        own.push(kept(&server, client(1)).await.unwrap());
    }
    assert!(kept(&server, client(1)).await.is_none());
    assert!(kept(&server, client(2)).await.is_some());
    own.pop();
    eventually(async || kept(&server, client(1)).await.is_some()).await;
}

// limit: connections
#[tokio::test]
async fn connections_are_limited_in_all() {
    let server = here(HttpSettings {
        max_connections: 4,
        ..HttpSettings::default()
    })
    .await;
    let mut heavy = Vec::new();
    for _ in 0..3 {
        heavy.push(kept(&server, client(1)).await.unwrap());
    }
    let mut light = kept(&server, client(2)).await.unwrap();
    assert!(kept(&server, client(1)).await.is_none());
    // A client with fewer evicts the one that has been idle for the longest.
    let _newcomer = kept(&server, client(3)).await.unwrap();
    let evicted = soon(heavy.remove(0).read(&mut [0])).await;
    assert!(matches!(evicted, Ok(0) | Err(_)), "{evicted:?}");
    for stream in heavy.iter_mut().chain([&mut light]) {
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        assert_eq!(soon(stream.read_u8()).await.unwrap(), b'H');
    }
}

#[tokio::test]
async fn trusted_proxies_are_exempt_from_the_limit_per_client() {
    let server = here(HttpSettings {
        max_connections_per_client: 1,
        trusted_proxies: IpNetworks::parse("127.0.1.9").unwrap(),
        ..HttpSettings::default()
    })
    .await;
    let _first = kept(&server, client(9)).await.unwrap();
    assert!(kept(&server, client(9)).await.is_some());
    let _first = kept(&server, client(1)).await.unwrap();
    assert!(kept(&server, client(1)).await.is_none());
}
