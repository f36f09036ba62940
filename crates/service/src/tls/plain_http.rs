//! Plain HTTP on a port for TLS: clients get a text that says so, instead of a closed connection.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Timeout of the first byte of a connection.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of draining the request, so that a reset of the connection does not lose the text.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Most bytes of the request that are drained.
const DRAIN_LIMIT_BYTES: u64 = 64 * 1024;
/// Source: Go, `net/http`.
const TEXT: &str = "Client sent an HTTP request to an HTTPS server.\n";

/// Answers a client of plain HTTP; returns for others once their first byte is there.
///
/// Errors: plain HTTP; no byte in time.
pub(crate) async fn refuse(stream: &mut TcpStream) -> io::Result<()> {
    let mut first = [0];
    let count = timeout(FIRST_BYTE_TIMEOUT, stream.peek(&mut first)).await??;
    // Records of TLS begin with a control character, requests with a method.
    if count == 0 || !first[0].is_ascii_uppercase() {
        return Ok(());
    }
    answer(stream).await?;
    Err(io::Error::new(io::ErrorKind::InvalidData, TEXT.trim_end()))
}

async fn answer(stream: &mut TcpStream) -> io::Result<()> {
    let length = TEXT.len();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{TEXT}"
    );
    let drained = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        let mut rest = stream.take(DRAIN_LIMIT_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    timeout(DRAIN_TIMEOUT, drained).await?.map(drop)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::Router;
    use axum::routing::get;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::server::{Listen, start};
    use crate::tls::{CertificateFiles, install_provider};

    async fn asked(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        // Anything but HTTP may be answered by a reset.
        stream.read_to_end(&mut answer).await.ok();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn plain_http_on_a_port_for_tls_gets_a_text() {
        install_provider();
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let files = CertificateFiles {
            cert: folder.path().join("cert.pem"),
            key: folder.path().join("key.pem"),
        };
        std::fs::write(&files.cert, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        let shutdown = CancellationToken::new();
        let router = Router::new().route("/", get(async || "here"));
        let listen = Listen::new("127.0.0.1:0".parse().unwrap(), Some(files.into()));
        let running = start(vec![listen], router, shutdown.clone()).await.unwrap();
        let address = running.address();
        let upload = [
            b"PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\n".as_slice(),
            &[b'x'; 9],
        ]
        .concat();
        for request in [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".as_slice(),
            &upload,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            let answer = asked(address, request).await;
            assert!(
                answer.starts_with("HTTP/1.1 400 ") && answer.ends_with(TEXT),
                "{answer}"
            );
        }
        assert!(
            !asked(address, b"\x16\x03\x01\x00\x01x")
                .await
                .contains("HTTP")
        );
        let client = crate::http_client(Some(made.cert.pem().as_bytes()), false).unwrap();
        let url = format!("https://{address}/");
        let text = client.get(url).send().await.unwrap().text().await.unwrap();
        assert_eq!(text, "here");
        shutdown.cancel();
        running.wait().await.unwrap();
    }
}
