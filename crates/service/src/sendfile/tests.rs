use std::io::Write as _;
use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::server::{self, Listen, Running};

/// Larger than any socket's buffer, and no multiple of anything.
const SIZE: usize = 20_000_003;

struct TestFile {
    file: tempfile::NamedTempFile,
    bytes: Vec<u8>,
}

impl TestFile {
    fn new() -> Self {
        let bytes: Vec<u8> = (0..SIZE)
            .map(|n| u8::try_from(n % 251).unwrap() ^ u8::try_from(n / 65_536 % 256).unwrap())
            .collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        Self { file, bytes }
    }

    /// Answers `/<first>/<length>` with that part.
    async fn serve(&self) -> (Running, SocketAddr) {
        let path = self.file.path().to_owned();
        let answer = async move |request: Request| -> Response {
            let (head, _) = request.into_parts();
            if !is_possible(&head) {
                return StatusCode::NOT_IMPLEMENTED.into_response();
            }
            let mut numbers = head.uri.path()[1..].split('/').map(|n| n.parse().unwrap());
            let (first, length) = (numbers.next().unwrap(), numbers.next().unwrap());
            let bytes = part(File::open(&path).unwrap(), first, length).unwrap();
            Body::from(bytes).into_response()
        };
        let router = Router::new().route("/{*part}", get(answer));
        let listen = Listen::new("127.0.0.1:0".parse().unwrap(), None);
        let running = server::start(vec![listen], router, CancellationToken::new());
        let running = running.await.unwrap();
        let address = running.address();
        (running, address)
    }
}

async fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

fn body(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    &answer[end.unwrap() + 4..]
}

#[tokio::test]
async fn any_range_is_sent_whole() {
    let content = TestFile::new();
    let (_running, address) = content.serve().await;
    for (first, length) in [
        (0, SIZE),
        (0, 1),
        (4097, 1_000_000),
        (SIZE - 1, 1),
        (SIZE, 0),
        (7, SIZE - 7),
    ] {
        let mut answer = Vec::new();
        let mut stream = ask(address, &format!("/{first}/{length}")).await;
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(
            body(&answer) == &content.bytes[first..first + length],
            "{length} from {first}"
        );
    }
}

#[tokio::test]
async fn uncached_content_is_sent() {
    let content = TestFile::new();
    content.file.as_file().sync_all().unwrap();
    rustix::fs::fadvise(&content.file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let (_running, address) = content.serve().await;
    let mut answer = Vec::new();
    let mut stream = ask(address, &format!("/0/{SIZE}")).await;
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(body(&answer) == content.bytes);
}

#[tokio::test]
async fn several_responses_share_a_connection() {
    let content = TestFile::new();
    let (_running, address) = content.serve().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = |n: usize, connection: &str| {
        format!("GET /{n}/100000 HTTP/1.1\r\nhost: localhost\r\nconnection: {connection}\r\n\r\n")
    };
    let requests: Vec<_> = (0..49).map(|n| request(n, "keep-alive")).collect();
    let requests = requests.concat() + &request(49, "close");
    let (mut reader, mut writer) = stream.split();
    let send = async { writer.write_all(requests.as_bytes()).await.unwrap() };
    let mut answers = Vec::new();
    let receive = reader.read_to_end(&mut answers);
    tokio::join!(send, async { receive.await.unwrap() });
    let mut rest = answers.as_slice();
    for n in 0..50 {
        let bytes = body(rest);
        assert!(bytes[..100_000] == content.bytes[n..n + 100_000], "{n}");
        rest = &bytes[100_000..];
    }
    assert!(rest.is_empty());
}

/// Also proves that the mapping is never read: that would end the process.
#[tokio::test]
async fn a_file_that_became_shorter_ends_the_connection() {
    let content = TestFile::new();
    let (_running, address) = content.serve().await;
    let mut stream = ask(address, &format!("/0/{SIZE}")).await;
    let mut first = [0; 1000];
    stream.read_exact(&mut first).await.unwrap();
    content.file.as_file().set_len(1_000_000).unwrap();
    let mut rest = Vec::new();
    // A reset is as good an end.
    stream.read_to_end(&mut rest).await.ok();
    assert!(first.len() + rest.len() < SIZE);
    let mut answer = Vec::new();
    let mut stream = ask(address, "/0/1000").await;
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(body(&answer) == &content.bytes[..1000]);
}

#[tokio::test]
async fn a_closed_connection_frees_its_mapping() {
    let content = TestFile::new();
    let (_running, address) = content.serve().await;
    let file = content.file.path().to_str().unwrap().to_owned();
    let is_mapped = || {
        std::fs::read_to_string("/proc/self/maps")
            .unwrap()
            .contains(&file)
    };
    let mut stream = ask(address, &format!("/0/{SIZE}")).await;
    stream.read_exact(&mut [0; 1000]).await.unwrap();
    assert!(is_mapped());
    drop(stream);
    while is_mapped() {
        tokio::task::yield_now().await;
    }
}
