//! Large, malformed and many requests.

use std::time::{Duration, Instant};

use catalog::api::{Bundle, GetPackageRequest, ListBundlesRequest, Package};
use catalog_server::grpc::GrpcOptions;
use prost::Message as _;
use tokio::task::JoinSet;
use tonic::{Code, Request};

use crate::client::Client;
use crate::server::{CATALOG, Server};

/// Generous deadline for slow machines.
const DEADLINE: Duration = Duration::from_mins(2);

fn named(length: usize) -> GetPackageRequest {
    let name = "n".repeat(length);
    GetPackageRequest { name }
}

#[tokio::test]
async fn request_messages_are_bounded() {
    let options = GrpcOptions {
        max_request: 1000,
        ..GrpcOptions::default()
    };
    let server = Server::empty(options).await;
    server.serve(CATALOG);
    let plain = server.client().await;
    let code = async |length: usize| {
        let answer = plain.one::<_, Package>("GetPackage", named(length)).await;
        answer.unwrap_err().code()
    };
    assert_eq!(code(900).await, Code::Unknown);
    assert_eq!(code(1001).await, Code::ResourceExhausted);
    assert_eq!(code(1 << 20).await, Code::ResourceExhausted);
    // Decompressed, it is as large.
    let small = server.client().await.gzipped();
    let answer = small.one::<_, Package>("GetPackage", named(100_000)).await;
    assert_eq!(answer.unwrap_err().code(), Code::ResourceExhausted);
}

/// Posts `body`; returns the HTTP status and the `grpc-status` header.
async fn posted(server: &Server, headers: &[(&str, &str)], body: Vec<u8>) -> (u16, Option<String>) {
    let client = service::http_client(None, false).unwrap();
    let mut request = client
        .post(format!("{}/api.Registry/GetPackage", server.address()))
        .body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    let status = response.headers().get("grpc-status");
    let status = status.map(|value| value.to_str().unwrap().to_owned());
    (response.status().as_u16(), status)
}

#[tokio::test]
async fn malformed_calls_are_refused() {
    let server = Server::start().await;
    let kind = ("content-type", "application/grpc");
    let message = named(1).encode_to_vec();
    let framed = |flag: u8, length: u8| [&[flag, 0, 0, 0, length][..], &message].concat();
    let good = framed(0, 3);
    let internal = Some("13".to_owned());
    assert_eq!(
        posted(&server, &[kind], good.clone()).await,
        (200, Some("2".to_owned()))
    );
    assert_eq!(posted(&server, &[], good.clone()).await, (415, None));
    assert_eq!(
        posted(
            &server,
            &[("content-type", "application/json")],
            good.clone()
        )
        .await,
        (415, None)
    );
    assert_eq!(
        posted(&server, &[kind], Vec::new()).await,
        (200, internal.clone())
    );
    assert_eq!(
        posted(&server, &[kind], framed(0, 9)).await,
        (200, internal.clone())
    );
    assert_eq!(
        posted(&server, &[kind], framed(1, 3)).await,
        (200, internal.clone())
    );
    assert_eq!(
        posted(&server, &[kind], vec![0, 0, 0, 0, 1, 7]).await,
        (200, internal.clone())
    );
    let gzip = ("grpc-encoding", "gzip");
    assert_eq!(
        posted(&server, &[kind, gzip], framed(1, 3)).await,
        (200, internal)
    );
    let deflate = ("grpc-encoding", "deflate");
    assert_eq!(
        posted(&server, &[kind, deflate], good).await,
        (200, Some("12".to_owned()))
    );
}

#[tokio::test]
async fn only_compressed_requests_get_compressed_replies() {
    let server = Server::start().await;
    let encoding = async |client: crate::client::Client| {
        let request = Request::new(ListBundlesRequest {});
        let answer = client
            .response::<_, Bundle>("api.Registry", "ListBundles", request)
            .await
            .unwrap();
        answer.metadata().get("grpc-encoding").cloned()
    };
    assert_eq!(encoding(server.client().await.accepting_gzip()).await, None);
    let gzip = encoding(server.client().await.gzipped()).await;
    assert_eq!(gzip.unwrap(), "gzip");
}

#[tokio::test]
async fn ten_thousand_concurrent_streams_are_served() {
    const CONNECTIONS: usize = 10;
    const STREAMS: usize = 1000;
    let server = Server::for_requests(CONNECTIONS * STREAMS).await;
    let mut calls = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let client = server.client().await;
        for _ in 0..STREAMS {
            let client = client.clone();
            calls.spawn(async move {
                let all = client
                    .all::<_, Bundle>("ListBundles", ListBundlesRequest {})
                    .await;
                all.unwrap().len()
            });
        }
    }
    let all = async {
        while let Some(count) = calls.join_next().await {
            assert_eq!(count.unwrap(), 7);
        }
    };
    tokio::time::timeout(DEADLINE, all).await.unwrap();
}

/// A catalog whose list has some megabytes.
fn long() -> String {
    let filling = "x".repeat(10_000);
    let entry = |number: usize| match number {
        0 => r#"{"name":"v0"}"#.to_owned(),
        _ => format!(r#"{{"name":"v{number}","replaces":"v{}"}}"#, number - 1),
    };
    let bundle = |number: usize| {
        format!(
            r#"{{"schema":"olm.bundle","package":"long","name":"v{number}","image":"quay.io/x/y:1","properties":[
                {{"type":"olm.package","value":{{"packageName":"long","version":"{number}.0.0"}}}},
                {{"type":"filling","value":"{filling}"}}]}}"#
        )
    };
    let entries: Vec<_> = (0..400).map(entry).collect();
    let entries = entries.join(",");
    let channel =
        format!(r#"{{"schema":"olm.channel","package":"long","name":"c","entries":[{entries}]}}"#);
    let package = r#"{"schema":"olm.package","name":"long","defaultChannel":"c"}"#.to_owned();
    [package, channel]
        .into_iter()
        .chain((0..400).map(bundle))
        .collect()
}

#[tokio::test]
async fn stalled_streams_block_no_others() {
    const STREAMS: usize = 100;
    let server = Server::empty(GrpcOptions::default()).await;
    server.serve(&long());
    let slow = server.client().await;
    let mut begun = Vec::new();
    for _ in 0..STREAMS {
        let request = Request::new(ListBundlesRequest {});
        begun.push(
            slow.begin::<_, Bundle>("api.Registry", "ListBundles", request)
                .await
                .unwrap(),
        );
    }
    let client = server.client().await;
    let all: Vec<Bundle> = client
        .all("ListBundles", ListBundlesRequest {})
        .await
        .unwrap();
    assert_eq!(all.len(), 400);
    // Their catalog may be replaced meanwhile.
    server.serve(CATALOG);
    let mut one = begun.pop().unwrap();
    drop(begun);
    let deadline = Instant::now() + DEADLINE;
    let mut count = 0;
    while one.message().await.unwrap().is_some() {
        assert!(Instant::now() < deadline);
        count += 1;
    }
    assert_eq!(count, 400);
}

#[tokio::test]
async fn ten_thousand_cancelled_streams_block_no_others() {
    const STREAMS: usize = 10_000;
    let server = Server::empty(GrpcOptions::default()).await;
    server.serve(&long());
    let mut rude = Client::narrow(&server.address()).await;
    for _ in 0..STREAMS {
        let request = Request::new(ListBundlesRequest {});
        // Far more data is pending than is in flight.
        let begun = rude.begin::<_, Bundle>("api.Registry", "ListBundles", request);
        if begun.await.is_err() {
            // The client closes the connection when data for reset streams exceeds its limit.
            rude = Client::narrow(&server.address()).await;
        }
    }
    let client = server.client().await;
    let all = client.all::<_, Bundle>("ListBundles", ListBundlesRequest {});
    let all = tokio::time::timeout(DEADLINE, all).await.unwrap();
    assert_eq!(all.unwrap().len(), 400);
}
