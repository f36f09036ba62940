//! Retries when replicas close connections, freeze or die.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Notify;

use crate::raw;
use crate::world::{World, client, eventually, json_of, soon};

/// A path that counts its requests and answers all but the first.
fn slow(asked: &Arc<AtomicUsize>) -> Router {
    let asked = asked.clone();
    let handler = async move || {
        if asked.fetch_add(1, Ordering::SeqCst) == 0 {
            std::future::pending::<()>().await;
        }
        "done"
    };
    let path = get(handler.clone()).post(async move |_: String| handler().await);
    Router::new().route("/slow", path)
}

async fn killed_under(method: reqwest::Method) -> (StatusCode, usize) {
    let world = World::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let first = world.replica(slow(&asked)).await;
    world.wait_for(std::slice::from_ref(&first)).await;
    let request = client().request(method, world.url("/slow")).body("text");
    let answer = tokio::spawn(request.send());
    eventually(async || asked.load(Ordering::SeqCst) == 1).await;
    let second = world.replica(slow(&asked)).await;
    eventually(async || {
        let counts = world.answered_by(2).await;
        counts.contains_key(&second.ip)
    })
    .await;
    first.kill();
    let status = soon(answer).await.unwrap().unwrap().status();
    (status, asked.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_get_on_a_killed_replica_is_retried() {
    assert_eq!(
        killed_under(reqwest::Method::GET).await,
        (StatusCode::OK, 2)
    );
}

#[tokio::test]
async fn a_post_on_a_killed_replica_is_not_retried() {
    let expected = (StatusCode::BAD_GATEWAY, 1);
    assert_eq!(killed_under(reqwest::Method::POST).await, expected);
}

#[tokio::test]
async fn a_get_on_a_frozen_replica_is_retried() {
    let world = World::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let first = world.replica(slow(&asked)).await;
    world.wait_for(std::slice::from_ref(&first)).await;
    let answer = tokio::spawn(client().get(world.url("/slow")).send());
    eventually(async || asked.load(Ordering::SeqCst) == 1).await;
    let _second = world.replica(slow(&asked)).await;
    first.freeze();
    let response = soon(answer).await.unwrap().unwrap();
    assert_eq!(response.text().await.unwrap(), "done");
}

#[tokio::test]
async fn a_truncated_response_fails() {
    for head in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
        let world = World::start().await;
        let listener = TcpListener::bind(world.named_address()).await.unwrap();
        let replica = tokio::spawn(async move {
            let (mut stream, _) = raw::accept(&listener).await;
            let begin = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nbegin\r\n");
            stream.write_all(begin.as_bytes()).await.unwrap();
            listener
        });
        // Its head may have been sent before the failure, or not.
        let read = async { client().get(world.url("/iso")).send().await?.bytes().await };
        assert!(soon(read).await.is_err(), "{head}");
        replica.await.unwrap();
    }
}

#[tokio::test]
async fn the_retry_budget_is_one_retry() {
    let world = World::start().await;
    let listener = TcpListener::bind(world.named_address()).await.unwrap();
    let asked = tokio::spawn(async move {
        for _ in 0..2 {
            let (stream, head) = raw::accept(&listener).await;
            assert!(head.starts_with("GET /x "), "{head}");
            drop(stream);
        }
        listener
    });
    let response = client().get(world.url("/x")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    soon(asked).await.unwrap();
}

#[tokio::test]
async fn a_refused_connection_is_retried_with_its_body() {
    let (world, mut replicas) = World::with_replicas(3).await;
    // The name still resolves to it: the next requests find its port closed.
    replicas.remove(1).stop().await;
    for size in [0, 10, 5 << 20] {
        for _ in 0..6 {
            let request = client().post(world.url("/x")).body(vec![7; size]);
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{size}");
            assert_eq!(json_of(response).await["length"], size);
        }
    }
}

#[tokio::test]
async fn an_unread_request_is_retried() {
    let world = World::start().await;
    let address = world.named_address();
    let listener = TcpListener::bind(address).await.unwrap();
    let replica = tokio::spawn(async move {
        let (mut stream, head) = raw::accept(&listener).await;
        assert!(head.starts_with("POST /first "), "{head}");
        raw::read_until(&mut stream, "first body").await;
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        // The second request comes on this connection, and is there when it is closed.
        let mut byte = [0];
        soon(stream.peek(&mut byte)).await.unwrap();
        drop(stream);
        let (mut stream, head) = raw::accept(&listener).await;
        assert!(head.starts_with("POST /second "), "{head}");
        raw::read_until(&mut stream, "second body").await;
        stream.write_all(answer).await.unwrap();
        listener
    });
    for path in ["first", "second"] {
        let url = world.url(&format!("/{path}"));
        let request = client().post(url).body(format!("{path} body"));
        assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
    }
    soon(replica).await.unwrap();
}

#[tokio::test]
async fn a_replica_may_respond_early_to_an_upload() {
    let world = World::start().await;
    let listener = TcpListener::bind(world.named_address()).await.unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = raw::accept(&listener).await;
            let answer = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno";
            stream.write_all(answer).await.unwrap();
        }
    });
    let client = TcpStream::connect(world.proxy).await.unwrap();
    let (mut answer, mut upload) = client.into_split();
    let head = b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 33554432\r\n\r\n";
    upload.write_all(head).await.unwrap();
    // The client may find its connection closed while it still sends; the answer is there to be read.
    let sending = tokio::spawn(async move { upload.write_all(&vec![7; 32 << 20]).await });
    let answer = raw::read_until(&mut answer, "no").await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    soon(sending).await.unwrap().ok();
}

#[tokio::test]
async fn a_post_that_was_read_in_part_is_retried_once_at_most() {
    // A request that fits into one read of a server is read whole, unless it comes late: hence the one retry.
    for (size, tries) in [(20_000, 1), (100, 2)] {
        let world = World::start().await;
        let asked = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let listener = TcpListener::bind(world.named_address()).await.unwrap();
            let asked = asked.clone();
            tokio::spawn(async move {
                loop {
                    let (stream, _) = raw::accept(&listener).await;
                    asked.fetch_add(1, Ordering::SeqCst);
                    drop(stream);
                }
            });
        }
        let request = client().post(world.url("/x")).body(vec![7; size]);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY, "{size}");
        assert_eq!(asked.load(Ordering::SeqCst), tries, "{size}");
    }
}

#[tokio::test]
async fn a_client_that_disconnects_stops_the_replica() {
    let world = World::start().await;
    let address = world.named_address();
    let listener = TcpListener::bind(address).await.unwrap();
    // Before the response, and in the middle of it.
    for head in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin",
    ] {
        let mut client = tokio::net::TcpStream::connect(world.proxy).await.unwrap();
        let request = b"GET /iso HTTP/1.1\r\nHost: x\r\n\r\n";
        client.write_all(request).await.unwrap();
        let (mut stream, _) = raw::accept(&listener).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        if !head.is_empty() {
            raw::read_until(&mut client, "begin").await;
        }
        drop(client);
        let mut rest = Vec::new();
        // The connection ends, closed or reset.
        soon(stream.read_to_end(&mut rest)).await.ok();
        assert!(rest.is_empty());
    }
}

#[tokio::test]
async fn requests_in_flight_finish_at_shutdown() {
    let world = World::start().await;
    let (begun, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = {
        let (begun, finish) = (begun.clone(), finish.clone());
        async move |body: String| {
            begun.notify_one();
            finish.notified().await;
            body
        }
    };
    let routes = Router::new().route("/slow", post(handler));
    let replica = world.replica(routes).await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    let request = client().post(world.url("/slow")).body("text");
    let answer = tokio::spawn(request.send());
    soon(begun.notified()).await;
    world.shutdown.cancel();
    eventually(async || tokio::net::TcpStream::connect(world.proxy).await.is_err()).await;
    finish.notify_one();
    let response = soon(answer).await.unwrap().unwrap();
    assert_eq!(response.text().await.unwrap(), "text");
}

// limit: time until a replica begins its answer
#[tokio::test]
async fn an_answer_that_does_not_begin_is_a_timeout() {
    let limit = Duration::from_secs(3);
    let world =
        World::start_with(|settings| settings.forward.forward_response_timeout = limit).await;
    let late = get(async || {
        std::future::pending::<()>().await;
        "done"
    });
    let routes = Router::new()
        .route("/late", late)
        .route("/early", get("done"));
    let replica = world.replica(routes).await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    for (path, expected) in [
        ("/early", StatusCode::OK),
        ("/late", StatusCode::GATEWAY_TIMEOUT),
    ] {
        let answer = client().get(world.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), expected, "{path}");
    }
}

/// A server that accepts nothing, and whose queue is full: the system leaves further connections unanswered.
async fn full_queue(address: SocketAddr) -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(address).unwrap();
    let listener = socket.listen(1).unwrap();
    let mut waiting = Vec::new();
    let connect = || tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address));
    while let Ok(connected) = connect().await {
        waiting.push(connected.unwrap());
    }
    (listener, waiting)
}

// limit: time until a replica accepts a connection
#[tokio::test]
async fn a_replica_that_does_not_accept_is_left() {
    for (limit, expected) in [
        (Duration::from_millis(100), StatusCode::SERVICE_UNAVAILABLE),
        (Duration::from_mins(1), StatusCode::OK),
    ] {
        let world =
            World::start_with(|settings| settings.forward.forward_connect_timeout = limit).await;
        let (listener, waiting) = full_queue(world.named_address()).await;
        let accepts = expected == StatusCode::OK;
        let server = tokio::spawn(async move {
            if !accepts {
                std::future::pending::<()>().await;
            }
            // The first request waits for a place in the queue.
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(waiting);
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut head = [0; 1024];
                    if stream.read(&mut head).await.is_ok_and(|length| length > 0) {
                        let answer =
                            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                        stream.write_all(answer.as_bytes()).await.ok();
                    }
                });
            }
        });
        eventually(async || {
            let answer = client().get(world.url("/")).send().await.unwrap();
            let status = answer.status();
            // Until the name is resolved, there is no replica to wait for.
            let text = answer.text().await.unwrap();
            status == expected && !text.contains("cannot be resolved")
        })
        .await;
        server.abort();
    }
}
