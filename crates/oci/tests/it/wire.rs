//! A server that answers each request with the next of some prepared texts, whatever was asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The server and the heads of the requests it has seen.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Wire {
    /// Each connection gets one answer, cut off where the text ends.
    pub(crate) async fn start(answers: impl Fn(SocketAddr) -> Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, answers) = (Arc::clone(&heads), answers(address));
        tokio::spawn(async move {
            let mut answers = answers.into_iter();
            while let Ok((stream, _)) = listener.accept().await {
                let Some(head) = head(stream).await else {
                    continue;
                };
                let (text, mut stream) = head;
                // TLS is tried first, and is not spoken here.
                if !text.contains("HTTP/1.1") {
                    continue;
                }
                let is_probe = text.starts_with("GET /v2/ ");
                seen.lock().unwrap().push(text);
                let answer = if is_probe {
                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
                } else {
                    answers.next().unwrap_or_default()
                };
                stream.write_all(answer.as_bytes()).await.ok();
            }
        });
        Self { address, heads }
    }

    /// First lines and headers, in the order of arrival, without the probe for the scheme.
    pub(crate) fn requests(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        heads
            .iter()
            .filter(|head| !head.starts_with("GET /v2/ "))
            .cloned()
            .collect()
    }
}

/// Reads up to the end of the head.
pub(crate) async fn head(mut stream: TcpStream) -> Option<(String, TcpStream)> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 1024];
        let n = stream.read(&mut buffer).await.ok()?;
        bytes.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if n == 0 || text.contains("\r\n\r\n") || !text.is_ascii() || bytes.first() == Some(&0x16) {
            return Some((text, stream));
        }
    }
}
