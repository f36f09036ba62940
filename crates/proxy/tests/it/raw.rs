//! Raw requests and replicas: client libraries normalise theirs.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::soon;

/// Sends `request` and reads until the proxy closes.
pub(crate) async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Reads until `end`, which is included.
pub(crate) async fn read_until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end.as_bytes()) {
        let byte = soon(stream.read_u8()).await;
        let so_far = || String::from_utf8_lossy(&read).into_owned();
        let byte = byte.unwrap_or_else(|error| panic!("{error} after {:?}", so_far()));
        read.push(byte);
    }
    String::from_utf8(read).unwrap()
}

/// The next connection with a request, and its head; health checks in between are answered.
pub(crate) async fn accept(listener: &TcpListener) -> (TcpStream, String) {
    loop {
        let (mut stream, _) = soon(listener.accept()).await.unwrap();
        let head = read_until(&mut stream, "\r\n\r\n").await;
        if !head.starts_with("GET /ready ") {
            return (stream, head);
        }
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}
