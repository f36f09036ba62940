//! Requests as replicas get them, and responses as clients get them.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::raw;
use crate::world::{World, client, eventually, soon};

/// Head and body of an answer.
fn parts(answer: &str) -> (String, &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body)
}

fn header_of<'a>(asked: &'a Value, name: &str) -> Option<&'a str> {
    let pairs = asked["headers"].as_array()?;
    pairs.iter().find(|pair| pair[0] == name)?[1].as_str()
}

async fn asked(world: &World, request: &str) -> Value {
    let answer = raw::ask(world.proxy, request).await;
    let (head, body) = parts(&answer);
    assert!(head.contains(" 200 "), "{answer}");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[tokio::test]
async fn paths_hosts_and_headers_pass_untouched() {
    let (world, _replicas) = World::with_replicas(1).await;
    for path in ["/", "//a//b?x=%2F&y=%zz", "/%2e%2e/x", "/a;b=c?", "/health"] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: ui.example:8080\r\nAuthorization: Bearer x\r\nConnection: close, x-hop\r\nX-Hop: 1\r\n\r\n"
        );
        let asked = asked(&world, &request).await;
        assert_eq!(asked["path"], path);
        assert_eq!(header_of(&asked, "host"), Some("ui.example:8080"));
        assert_eq!(header_of(&asked, "authorization"), Some("Bearer x"));
        assert_eq!(header_of(&asked, "x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(header_of(&asked, "x-hop"), None);
    }
}

#[tokio::test]
async fn the_host_of_an_absolute_target_wins() {
    let (world, _replicas) = World::with_replicas(1).await;
    let request = "GET http://user@real.example/x HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n";
    let asked = asked(&world, request).await;
    assert_eq!(asked["path"], "/x");
    assert_eq!(header_of(&asked, "host"), Some("real.example"));
}

#[tokio::test]
async fn old_clients_are_served() {
    let routes = Router::new().route(
        "/chunks",
        get(|| async {
            let chunks = futures_util::stream::iter(["a", "b"].map(Ok::<_, std::io::Error>));
            Body::from_stream(chunks)
        }),
    );
    let world = World::start().await;
    let replica = world.replica(routes).await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    let asked = asked(&world, "GET /x HTTP/1.0\r\n\r\n").await;
    assert_eq!(header_of(&asked, "host"), Some(world.upstream.as_str()));
    let answer = raw::ask(world.proxy, "GET /chunks HTTP/1.0\r\n\r\n").await;
    let (head, body) = parts(&answer);
    assert!(!head.contains("transfer-encoding"), "{answer}");
    assert_eq!(body, "ab");
}

#[tokio::test]
async fn http_2_clients_are_served() {
    let (world, _replicas) = World::with_replicas(1).await;
    service::tls::install_provider();
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .no_proxy()
        .build()
        .unwrap();
    let response = client
        .post(world.url("/x"))
        .body("text")
        .send()
        .await
        .unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    let asked = crate::world::json_of(response).await;
    assert_eq!(asked["length"], 4);
    let host = world.proxy.to_string();
    assert_eq!(header_of(&asked, "host"), Some(host.as_str()));
}

/// Sends the same raw response to every request.
async fn by_hand(world: &World, answer: &'static str) {
    let listener = TcpListener::bind(world.named_address()).await.unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = raw::accept(&listener).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
}

#[tokio::test]
async fn answers_without_a_body_keep_their_headers() {
    for (method, answer, expected) in [
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\nAccept-Ranges: bytes\r\n\r\n",
            Some("content-length: 5000000000"),
        ),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            None,
        ),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
            None,
        ),
        ("DELETE", "HTTP/1.1 204 No Content\r\n\r\n", None),
        (
            "POST",
            "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
            Some("content-length: 0"),
        ),
    ] {
        let world = World::start().await;
        by_hand(&world, answer).await;
        let request = format!("{method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = raw::ask(world.proxy, &request).await;
        let (head, body) = parts(&answer);
        assert_eq!(body, "", "{answer}");
        let length = head.lines().find(|line| line.starts_with("content-length"));
        assert_eq!(length, expected, "{answer}");
    }
}

#[tokio::test]
async fn hop_by_hop_headers_of_the_replica_are_removed() {
    let world = World::start().await;
    let answer = "HTTP/1.1 200 OK\r\nConnection: keep-alive, x-private\r\nKeep-Alive: timeout=5\r\nX-Private: 1\r\n\
                  X-Kept: 1\r\nContent-Length: 0\r\n\r\n";
    by_hand(&world, answer).await;
    let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answer = raw::ask(world.proxy, request).await.to_lowercase();
    assert!(answer.contains("x-kept: 1"), "{answer}");
    for dropped in ["x-private", "keep-alive"] {
        assert!(!answer.contains(dropped), "{answer}");
    }
}

#[tokio::test]
async fn informational_responses_precede_the_final_one() {
    let world = World::start().await;
    let answer = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    by_hand(&world, answer).await;
    let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answer = raw::ask(world.proxy, request).await;
    let (head, body) = parts(&answer);
    assert!(head.starts_with("http/1.1 200"), "{answer}");
    assert_eq!(body, "ok");
}

const EXPECTING: &str = "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn the_replica_decides_whether_a_body_is_sent() {
    let world = World::start().await;
    let listener = TcpListener::bind(world.named_address()).await.unwrap();
    let mut client = TcpStream::connect(world.proxy).await.unwrap();
    client.write_all(EXPECTING.as_bytes()).await.unwrap();
    let (mut replica, head) = raw::accept(&listener).await;
    assert!(
        head.to_lowercase().contains("expect: 100-continue"),
        "{head}"
    );
    replica
        .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
        .await
        .unwrap();
    let head = raw::read_until(&mut client, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 100"), "{head}");
    client.write_all(b"body").await.unwrap();
    raw::read_until(&mut replica, "body").await;
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    replica.write_all(answer).await.unwrap();
    raw::read_until(&mut client, "ok").await;
}

#[tokio::test]
async fn a_refused_upload_gets_no_100_continue() {
    let world = World::start().await;
    let answer = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno";
    by_hand(&world, answer).await;
    let answer = raw::ask(world.proxy, EXPECTING).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[tokio::test]
async fn large_headers_pass_and_too_large_ones_are_refused() {
    let (world, _replicas) = World::with_replicas(1).await;
    let request = |size: usize| {
        let value = "v".repeat(size);
        format!("GET /x HTTP/1.1\r\nHost: x\r\nX-Large: {value}\r\nConnection: close\r\n\r\n")
    };
    let asked = asked(&world, &request(60_000)).await;
    assert_eq!(header_of(&asked, "x-large").unwrap().len(), 60_000);
    let mut stream = TcpStream::connect(world.proxy).await.unwrap();
    // The proxy stops reading in the middle.
    stream.write_all(request(100_000).as_bytes()).await.ok();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.ok();
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
}

/// All requests that a replica gets on one connection, until the proxy closes it.
async fn smuggled(request: &str) -> (String, Vec<String>) {
    let world = World::start().await;
    let listener = TcpListener::bind(world.named_address()).await.unwrap();
    let seen = tokio::spawn(async move {
        let mut seen = Vec::new();
        loop {
            let (mut stream, mut head) = raw::accept(&listener).await;
            if head.starts_with("GET /last ") {
                return seen;
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            let mut rest = Vec::new();
            soon(stream.read_to_end(&mut rest)).await.ok();
            head.push_str(&String::from_utf8(rest).unwrap());
            seen.push(head);
        }
    });
    let answer = raw::ask(world.proxy, request).await;
    let last = client().get(world.url("/last")).send();
    let seen = tokio::select! {
        seen = seen => seen.unwrap(),
        _ = last => panic!("the last request has no response"),
    };
    (answer, seen)
}

#[tokio::test]
async fn ambiguous_lengths_are_refused() {
    for headers in [
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4, 5\r\n",
        "Content-Length: +4\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
    ] {
        let request =
            format!("POST /x HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n0\r\n\r\n");
        let (answer, seen) = smuggled(&request).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{headers}: {answer}");
        assert_eq!(seen, Vec::<String>::new(), "{headers}");
    }
}

#[tokio::test]
async fn a_chunked_body_with_a_length_has_one_meaning() {
    let request = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                   0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let (answer, seen) = smuggled(request).await;
    let is_refused = answer.starts_with("HTTP/1.1 400");
    assert_eq!(seen.len(), usize::from(!is_refused), "{answer}");
    for seen in &seen {
        let seen = seen.to_lowercase();
        assert!(!seen.contains("smuggled"), "{seen}");
        assert!(!seen.contains("content-length"), "{seen}");
    }
}

/// Switches to a protocol that sends every byte back.
pub(crate) async fn echo(mut request: Request) -> Response {
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut stream = TokioIo::new(upgrade.await.unwrap());
        let mut buffer = [0; 4];
        while stream.read_exact(&mut buffer).await.is_ok() {
            stream.write_all(&buffer).await.unwrap();
        }
    });
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("echo"));
    response
}

#[tokio::test]
async fn upgrades_pass_through() {
    let world = World::start().await;
    let replica = world.replica(Router::new().route("/echo", get(echo))).await;
    world.wait_for(std::slice::from_ref(&replica)).await;
    let mut stream = TcpStream::connect(world.proxy).await.unwrap();
    let request = b"GET /echo HTTP/1.1\r\nHost: ui\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let head = raw::read_until(&mut stream, "\r\n\r\n")
        .await
        .to_lowercase();
    assert!(head.starts_with("http/1.1 101"), "{head}");
    assert!(head.contains("upgrade: echo"), "{head}");
    for _ in 0..3 {
        stream.write_all(b"ping").await.unwrap();
        raw::read_until(&mut stream, "ping").await;
    }
}

#[tokio::test]
async fn an_upgraded_connection_ends_with_its_replica() {
    let world = World::start().await;
    let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    by_hand(&world, answer).await;
    let mut stream = TcpStream::connect(world.proxy).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: ui\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    stream.write_all(request).await.unwrap();
    raw::read_until(&mut stream, "\r\n\r\n").await;
    // The replica has closed: further bytes are refused, and the client's side has to close.
    eventually(async || stream.write_all(b"ping").await.is_err()).await;
}

#[tokio::test]
async fn connect_is_refused() {
    let (world, _replicas) = World::with_replicas(1).await;
    let request = "CONNECT other:22 HTTP/1.1\r\nHost: other:22\r\nConnection: close\r\n\r\n";
    let answer = raw::ask(world.proxy, request).await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
}
