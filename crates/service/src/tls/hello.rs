//! The first message of a TLS client.

use std::io;
use std::sync::Arc;

use rustls::server::{Accepted, Acceptor};
use rustls::{ServerConfig, SignatureScheme};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Bytes that are read at once; most messages are shorter.
const READ_BYTES: usize = 4096;
/// Longest first message: far above those of clients with post-quantum keys and long tickets, far below the 64 KiB that
/// rustls collects, since a connection has its bytes twice in memory before anything else is known of its client.
pub(crate) const HELLO_BYTES: usize = 16 << 10;
/// A fatal alert, `decode_error`. Source: RFC 8446, section 6.
const DECODE_ERROR: &[u8] = b"\x15\x03\x03\x00\x02\x02\x32";

/// A first message, and the bytes that brought it.
pub(crate) struct Hello {
    pub(crate) accepted: Accepted,
    /// With those behind the message, if any came along.
    pub(crate) received: Vec<u8>,
}

impl Hello {
    /// Reads the message, in however many records and packets it comes.
    ///
    /// Errors: no TLS, or a message that is too long, which the client gets an alert of; an end before that of the message.
    pub(crate) async fn read(stream: &mut TcpStream) -> io::Result<Self> {
        let mut acceptor = Acceptor::default();
        let mut received = Vec::new();
        loop {
            let mut chunk = [0; READ_BYTES];
            let count = stream.read(&mut chunk).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            received.extend_from_slice(&chunk[..count]);
            let mut unread = &chunk[..count];
            while !unread.is_empty() {
                if acceptor.read_tls(&mut unread)? == 0 {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            match acceptor.accept() {
                Ok(None) if received.len() < HELLO_BYTES => {}
                Ok(None) => {
                    stream.write_all(DECODE_ERROR).await?;
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the first message of TLS is too long",
                    ));
                }
                Ok(Some(accepted)) => return Ok(Self { accepted, received }),
                Err((error, mut alert)) => {
                    let mut bytes = Vec::new();
                    alert.write_all(&mut bytes)?;
                    stream.write_all(&bytes).await?;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
    }

    /// The schemes of signatures that the client verifies.
    pub(crate) fn signature_schemes(&self) -> Vec<SignatureScheme> {
        self.accepted.client_hello().signature_schemes().to_vec()
    }

    /// `config`, without its protocols if the client offers none of them: such a client is served without one, as by
    /// HAProxy, where rustls would refuse it.
    pub(crate) fn agreeable(&self, config: Arc<ServerConfig>) -> Arc<ServerConfig> {
        let hello = self.accepted.client_hello();
        let own = &config.alpn_protocols;
        let is_agreed = hello.alpn().is_none_or(|mut offered| {
            offered.any(|name| own.iter().any(|one| one.as_slice() == name))
        });
        if is_agreed || own.is_empty() {
            return config;
        }
        let mut config = (*config).clone();
        config.alpn_protocols.clear();
        Arc::new(config)
    }

    /// The server name that the client asks for, in lower case.
    pub(crate) fn server_name(&self) -> Option<String> {
        let hello = self.accepted.client_hello();
        hello.server_name().map(str::to_ascii_lowercase)
    }
}
