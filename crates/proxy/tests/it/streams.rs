//! Streaming of bodies, with back-pressure.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http_body_util::BodyExt as _;
use proxy::Settings;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use crate::raw;
use crate::world::{World, client, eventually, soon};

#[tokio::test]
async fn answers_are_streamed() {
    let (sender, receiver) = watch::channel(false);
    let endless = get(move || {
        let mut receiver = receiver.clone();
        async move {
            let rest = stream::once(async move {
                receiver.wait_for(|is_sent| *is_sent).await.unwrap();
                Ok::<_, Infallible>(Bytes::from_static(b"second"))
            });
            let first = stream::iter([Ok(Bytes::from_static(b"first"))]);
            Body::from_stream(first.chain(rest))
        }
    });
    let world = World::start().await;
    let replica = world.replica(Router::new().route("/stream", endless)).await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    let mut response = client().get(world.url("/stream")).send().await.unwrap();
    assert_eq!(soon(response.chunk()).await.unwrap().unwrap(), "first");
    sender.send(true).unwrap();
    assert_eq!(soon(response.chunk()).await.unwrap().unwrap(), "second");
}

/// Memory of a long response that is not read, as its limit counts it. Units: bytes.
const HELD: usize = 112 << 10;

#[tokio::test]
async fn unread_responses_of_a_client_are_limited() {
    let limit = |settings: &mut Settings| settings.http.max_waiting_bytes_per_client = 2 * HELD;
    let world = World::start_with(limit).await;
    let endless = get(async || {
        let pieces = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 4096])));
        Body::from_stream(pieces)
    });
    let replica = world.replica(Router::new().route("/long", endless)).await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    let status = async |path: &str| {
        let response = client().get(world.url(path)).send().await.unwrap();
        (response.status(), response)
    };
    // One more than the limit: the longest is exempt.
    let mut unread = Vec::new();
    for _ in 0..3 {
        let (answered, response) = status("/long").await;
        assert_eq!(answered, StatusCode::OK);
        unread.push(response);
    }
    assert_eq!(status("/long").await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        status("/who").await.0,
        StatusCode::TOO_MANY_REQUESTS,
        "its length is unknown before"
    );
    unread.pop();
    eventually(async || status("/long").await.0 == StatusCode::OK).await;
}

#[tokio::test]
async fn uploads_are_streamed() {
    let (sender, mut received) = mpsc::channel(1);
    let upload = post(async move |mut body: Body| {
        while let Some(Ok(frame)) = body.frame().await {
            sender.send(frame.into_data().unwrap()).await.unwrap();
        }
        "end"
    });
    let world = World::start().await;
    let replica = world.replica(Router::new().route("/upload", upload)).await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    let mut stream = TcpStream::connect(world.proxy).await.unwrap();
    let head = b"POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head).await.unwrap();
    for chunk in ["one", "two"] {
        let sent = format!("{:x}\r\n{chunk}\r\n", chunk.len());
        stream.write_all(sent.as_bytes()).await.unwrap();
        assert_eq!(soon(received.recv()).await.unwrap(), chunk);
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    raw::read_until(&mut stream, "end").await;
}

#[tokio::test]
async fn a_get_may_have_a_body() {
    let (world, _replicas) = World::with_replicas(1).await;
    for body in [
        "Content-Length: 3\r\n\r\nabc",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ] {
        let request = format!("GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{body}");
        let answer = raw::ask(world.proxy, &request).await;
        assert!(answer.contains("\"length\":3"), "{answer}");
    }
}

/// Units: bytes. More than the kernel's buffers hold; never read ahead.
const AHEAD: usize = 64 << 20;
const CHUNK: usize = 1 << 16;
static FILLER: [u8; CHUNK] = [7; CHUNK];

#[tokio::test]
async fn a_slow_client_slows_the_replica() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let endless = get(move || {
        let counted = counted.clone();
        async move {
            Body::from_stream(stream::repeat_with(move || {
                counted.fetch_add(CHUNK, Ordering::Relaxed);
                Ok::<_, Infallible>(Bytes::from_static(&FILLER))
            }))
        }
    });
    let world = World::start().await;
    let replica = world
        .replica(Router::new().route("/endless", endless))
        .await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    let mut stream = TcpStream::connect(world.proxy).await.unwrap();
    let request = b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request).await.unwrap();
    raw::read_until(&mut stream, "\r\n\r\n").await;
    stalled(&made).await;
}

#[tokio::test]
async fn a_slow_replica_slows_the_client() {
    let world = World::start().await;
    let never = post(|body: Body| async move {
        let _body = body;
        std::future::pending::<()>().await;
    });
    let replica = world.replica(Router::new().route("/never", never)).await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let endless = stream::repeat_with(move || {
        counted.fetch_add(CHUNK, Ordering::Relaxed);
        Ok::<_, Infallible>(Bytes::from_static(&FILLER))
    });
    let request = client().post(world.url("/never"));
    let sending = tokio::spawn(request.body(reqwest::Body::wrap_stream(endless)).send());
    stalled(&made).await;
    sending.abort();
}

/// Waits until back-pressure stalls the producer.
async fn stalled(made: &AtomicUsize) {
    let mut last = 0;
    let mut same = 0;
    eventually(async || {
        let now = made.load(Ordering::Relaxed);
        assert!(now < AHEAD, "{now} bytes are held somewhere");
        same = if now == last && now > 0 { same + 1 } else { 0 };
        last = now;
        same == 40
    })
    .await;
}
