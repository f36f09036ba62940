//! Uploads in flight at a graceful shutdown.

use std::io;
use std::time::Duration;

use oci::Digest;
use reqwest::header::RANGE;
use reqwest::{Method, Response, StatusCode};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinHandle;

use crate::server::{Server, eventually, header};

const HALF: usize = 600_000;

/// A piece that is sent as it comes.
struct Sending {
    pieces: Sender<io::Result<Vec<u8>>>,
    answer: JoinHandle<reqwest::Result<Response>>,
    /// Without the server's address, which is another after each start.
    path: String,
}

/// Half of an upload has arrived, the rest is still to come.
async fn half(server: &Server) -> Sending {
    let location = server.upload("a").await;
    let path = location.strip_prefix(&server.base).unwrap().to_owned();
    let (pieces, coming) = channel::<io::Result<Vec<u8>>>(1);
    let body = futures_util::stream::unfold(coming, async |mut coming| {
        Some((coming.recv().await?, coming))
    });
    let request = server.request(Method::PATCH, &location);
    let request = request.body(reqwest::Body::wrap_stream(body)).send();
    let answer = tokio::spawn(request);
    pieces.send(Ok(vec![1; HALF])).await.unwrap();
    let id = location.rsplit('/').next().unwrap();
    let data = server.content(&format!("repositories/a/_uploads/{id}/data"));
    let has_come = async || std::fs::metadata(&data).is_ok_and(|data| data.len() > 0);
    eventually(has_come).await;
    Sending {
        pieces,
        answer,
        path,
    }
}

#[tokio::test]
async fn an_upload_that_is_on_its_way_at_the_end_still_finishes() {
    let server = Server::plain().await;
    let address = server.address();
    let sending = half(&server).await;
    let restarting = tokio::spawn(server.restart());
    eventually(async || TcpStream::connect(address).await.is_err()).await;
    sending.pieces.send(Ok(vec![2; HALF])).await.unwrap();
    drop(sending.pieces);
    let answer = sending.answer.await.unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    let server = restarting.await.unwrap();
    let range = header(&server.get(&sending.path).await, &RANGE);
    assert_eq!(range, format!("0-{}", 2 * HALF - 1));
    let content = [vec![1; HALF], vec![2; HALF]].concat();
    let digest = Digest::sha256(&content).to_string();
    let done = server.finish(&sending.path, &digest, b"").await;
    assert_eq!(done.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn an_upload_that_takes_longer_goes_on_after_the_next_start() {
    let server = Server::with(|settings| {
        settings.registry_http_draintimeout = Duration::ZERO;
    })
    .await;
    let sending = half(&server).await;
    let server = server.restart().await;
    assert!(sending.answer.await.unwrap().is_err());
    let range = header(&server.get(&sending.path).await, &RANGE);
    let last: usize = range.strip_prefix("0-").unwrap().parse().unwrap();
    assert!((1..HALF).contains(&last), "{range}");
    let rest = vec![1; HALF - last - 1];
    let digest = Digest::sha256(&vec![1; HALF]).to_string();
    let done = server.finish(&sending.path, &digest, &rest).await;
    assert_eq!(done.status(), StatusCode::CREATED);
}
