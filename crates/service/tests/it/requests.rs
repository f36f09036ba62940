//! Bounds of requests: in flight, and of the time that a body takes.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use service::server::{HttpSettings, IpNetworks};
use service::settings::Setting as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;

use crate::world::{client, eventually, server, soon, status};

/// Answers `/hold` when `gate` has a permit, and anything else at once.
fn holding(gate: &Arc<Semaphore>, held: &Arc<Semaphore>) -> Router {
    let (gate, held) = (gate.clone(), held.clone());
    let hold = async move || {
        held.add_permits(1);
        gate.acquire().await.unwrap().forget();
        "held"
    };
    Router::new()
        .route("/hold", get(hold))
        .fallback(async || "at once")
}

// limit: requests of a client in flight
#[tokio::test]
async fn requests_in_flight_of_a_client_are_limited() {
    let (gate, held) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let server = server(
        holding(&gate, &held),
        HttpSettings {
            max_requests_per_client: 2,
            trusted_proxies: IpNetworks::parse("127.0.1.9").unwrap(),
            ..HttpSettings::default()
        },
    )
    .await;
    let server = Arc::new(server);
    // Each client has its own limit, also behind a trusted proxy; the reports of other peers are ignored.
    for (from, line, other) in [
        (client(1), "X-Forwarded-For: 192.0.2.7\r\n", ""),
        (
            client(9),
            "X-Forwarded-For: 6.6.6.6, 192.0.2.8\r\n",
            "X-Forwarded-For: 6.6.6.6, 192.0.2.9\r\n",
        ),
    ] {
        let mut open = tokio::task::JoinSet::new();
        for _ in 0..2 {
            let server = server.clone();
            open.spawn(async move { server.get(from, "/hold", line).await });
        }
        held.acquire_many(2).await.unwrap().forget();
        let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{line}\r\n");
        let refused = server.ask(from, &head).await;
        assert_eq!(status(&refused), "429", "{refused}");
        assert!(refused.contains("retry-after: 1"), "{refused}");
        let neighbour = if other.is_empty() { client(2) } else { from };
        assert_eq!(server.get(neighbour, "/", other).await, "200");
        gate.add_permits(2);
        while let Some(answered) = open.join_next().await {
            assert_eq!(answered.unwrap(), "200");
        }
        eventually(async || server.get(from, "/", line).await == "200").await;
    }
}

#[tokio::test]
async fn a_body_that_stops_gets_408() {
    let router = Router::new().route("/", post(async |body: String| body));
    let server = server(
        router,
        HttpSettings {
            body_idle_timeout: Duration::from_millis(200),
            ..HttpSettings::default()
        },
    )
    .await;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
    let mut stream = server.connect(client(1)).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"half").await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(status(&answer), "408", "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(answer.contains("\"code\":408"), "{answer}");
    let whole =
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwhole";
    assert!(server.ask(client(1), whole).await.ends_with("whole"));
}
