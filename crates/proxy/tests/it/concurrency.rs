//! Concurrency limits of an upstream: slow clients hold no permit.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::routing::{get, post};
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use crate::slow_clients;
use crate::world::{Replica, World, client, eventually, json_of, soon};

#[tokio::test]
async fn half_sent_bodies_take_no_permits() {
    let (world, _replicas) = World::with_replicas(1).await;
    let slow = slow_clients::half_sent(world.proxy, "/reply").await;
    for _ in 0..20 {
        let from = Ipv4Addr::new(127, 0, 3, 1).into();
        let answer = soon(slow_clients::post(from, world.proxy, "/reply")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("\"length\":5"), "{answer}");
        let response = client().get(world.url("/who")).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{} slow", slow.len());
    }
}

/// A replica whose responses at `/hold` wait.
struct WaitingReplica {
    _replica: Replica,
    /// A permit for each response.
    gate: Arc<Semaphore>,
    /// A permit of each request that has come.
    held: Arc<Semaphore>,
}

async fn hold(world: &World) -> WaitingReplica {
    let (gate, held) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let route = {
        let (gate, held) = (gate.clone(), held.clone());
        async move || {
            held.add_permits(1);
            gate.acquire().await.unwrap().forget();
        }
    };
    let replica = world
        .replica(Router::new().route("/hold", get(route)))
        .await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    WaitingReplica {
        _replica: replica,
        gate,
        held,
    }
}

// limit: forwarded requests of a client whose responses have not begun
#[tokio::test]
async fn a_client_has_so_many_turns_at_a_time() {
    const TURNS: u32 = 64;
    let world = World::start().await;
    let WaitingReplica { gate, held, .. } = &hold(&world).await;
    let mut open = tokio::task::JoinSet::new();
    for _ in 0..TURNS + 3 {
        open.spawn(client().get(world.url("/hold")).send());
    }
    soon(held.acquire_many(TURNS)).await.unwrap().forget();
    let other = Ipv4Addr::new(127, 0, 3, 2).into();
    let answer = soon(slow_clients::post(other, world.proxy, "/reply")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(held.available_permits(), 0, "the others wait");
    gate.add_permits(usize::try_from(TURNS).unwrap() + 3);
    soon(held.acquire_many(3)).await.unwrap().forget();
    while let Some(answered) = open.join_next().await {
        assert_eq!(answered.unwrap().unwrap().status(), StatusCode::OK);
    }
}

// limit: forwarded requests and tunnels
#[tokio::test]
async fn concurrent_requests_are_limited() {
    let world = World::start_with(|settings| settings.forward.max_forwarded_requests = 2).await;
    let WaitingReplica { gate, held, .. } = &hold(&world).await;
    let mut open = tokio::task::JoinSet::new();
    for _ in 0..2 {
        open.spawn(client().get(world.url("/hold")).send());
    }
    soon(held.acquire_many(2)).await.unwrap().forget();
    let refused = client().get(world.url("/who")).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(json_of(refused).await["code"], 503);
    gate.add_permits(2);
    while let Some(answered) = open.join_next().await {
        assert_eq!(answered.unwrap().unwrap().status(), StatusCode::OK);
    }
    eventually(async || {
        let response = client().get(world.url("/who")).send().await.unwrap();
        response.status() == StatusCode::OK
    })
    .await;
}

/// A client in the middle of an upload.
async fn upload(from: u8, proxy: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let client: IpAddr = Ipv4Addr::new(127, 0, 4, from).into();
    socket.bind(SocketAddr::new(client, 0)).unwrap();
    let mut stream = socket.connect(proxy).await.unwrap();
    let head = "POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nhalf";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn is_refused(mut upload: TcpStream) -> bool {
    let mut answer = [0; 12];
    soon(upload.read_exact(&mut answer)).await.unwrap();
    answer == *b"HTTP/1.1 503"
}

// limit: forwarded uploads (bodies above 64 KiB or of unknown length)
// limit: forwarded uploads of a client
// share: forwarded uploads (bodies above 64 KiB or of unknown length)
#[tokio::test]
async fn uploads_leave_permits_to_other_requests_and_clients() {
    // Eight for uploads, two for each client.
    let world = World::start_with(|settings| settings.forward.max_forwarded_requests = 32).await;
    let begun = Arc::new(Semaphore::new(0));
    let receive = {
        let begun = begun.clone();
        async move |request: Request| {
            begun.add_permits(1);
            axum::body::to_bytes(request.into_body(), usize::MAX)
                .await
                .ok();
        }
    };
    let replica = world
        .replica(Router::new().route("/upload", post(receive)))
        .await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    let mut uploads = Vec::new();
    for from in 1..=4 {
        for _ in 0..2 {
            uploads.push(upload(from, world.proxy).await);
            soon(begun.acquire()).await.unwrap().forget();
        }
        assert!(is_refused(upload(from, world.proxy).await).await);
    }
    assert!(is_refused(upload(5, world.proxy).await).await);
    assert_eq!(world.answered_by(3).await[&replica.ip], 3);
    uploads.pop();
    eventually(async || {
        let _upload = upload(5, world.proxy).await;
        let begins = tokio::time::timeout(std::time::Duration::from_millis(100), begun.acquire());
        begins.await.is_ok()
    })
    .await;
}
