//! Scripted servers: they send raw responses and record their requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The server and the heads of the requests it has seen.
#[derive(Debug)]
pub struct Wire {
    /// Where it listens, for plain HTTP.
    pub address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Wire {
    /// Each connection gets the next response, cut off where the text ends.
    pub async fn start(answers: impl Fn(SocketAddr) -> Vec<String>) -> Self {
        let listener = listener().await;
        let answers = listener.local_addr().map(answers).unwrap_or_default();
        let mut answers = answers.into_iter();
        Self::on(listener, move |_| answers.next().unwrap_or_default())
    }

    /// Each connection gets the answer to the head of its request.
    pub async fn answering(answer: impl FnMut(&str) -> String + Send + 'static) -> Self {
        Self::on(listener().await, answer)
    }

    fn on(listener: TcpListener, mut answer: impl FnMut(&str) -> String + Send + 'static) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some((text, mut stream)) = head(stream).await else {
                    continue;
                };
                // TLS is tried first, and is not spoken here.
                if !text.contains("HTTP/1.1") {
                    continue;
                }
                let is_probe = text.starts_with("GET /v2/ ");
                let answer = if is_probe {
                    self::answer("200 OK", "", "")
                } else {
                    answer(&text)
                };
                seen.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(text);
                stream.write_all(answer.as_bytes()).await.ok();
            }
        });
        Self { address, heads }
    }

    /// First lines and headers, in the order of arrival, without the probe for the scheme.
    pub fn requests(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads
            .iter()
            .filter(|head| !head.starts_with("GET /v2/ "))
            .cloned()
            .collect()
    }
}

/// An answer with a body, after which the connection ends. Headers end with their line breaks.
pub fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Whether the head of a request has a login.
pub fn has_login(head: &str) -> bool {
    head.to_ascii_lowercase().contains("authorization:")
}

async fn listener() -> TcpListener {
    let bound = TcpListener::bind("127.0.0.1:0").await;
    bound.expect("the loopback address has free ports")
}

/// Reads up to the end of the head.
pub async fn head(mut stream: TcpStream) -> Option<(String, TcpStream)> {
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
