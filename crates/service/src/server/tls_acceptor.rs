//! Acceptance of TLS connections: admitted, then decrypted with the certificate of their server name, or passed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum_server::accept::Accept;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::StartHandshake;
use tokio_rustls::server::TlsStream;
use tower_http::add_extension::AddExtension;

use super::connection::{AdmittedStream, ConnectionAdmission, eviction};
use super::connections::RequestCounter;
use crate::tls::hello::Hello;
use crate::tls::{
    HostAdmission, Passthrough, PassthroughTarget, ServedCertificates, TlsVersion, plain_http,
};

/// Longest time from the first byte of a client to the end of its handshake.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// A fatal alert, `unrecognized_name`. Source: RFC 6066, section 3.
const UNRECOGNIZED_NAME: &[u8] = b"\x15\x03\x03\x00\x02\x02\x70";

/// Accepts TLS connections.
#[derive(Debug, Clone)]
pub(super) struct TlsAcceptor {
    pub(super) admission: ConnectionAdmission,
    pub(super) certificates: ServedCertificates,
    pub(super) passthrough: Option<Passthrough>,
}

/// An accepted connection.
enum Accepted {
    Decrypted(Box<TlsStream<TcpStream>>, HostAdmission),
    /// It belongs to another server.
    Passed {
        stream: TcpStream,
        received: Vec<u8>,
        to: Arc<PassthroughTarget>,
    },
}

impl<S: Send + 'static> Accept<TcpStream, S> for TlsAcceptor {
    type Stream = AdmittedStream<Box<TlsStream<TcpStream>>>;
    type Service = AddExtension<AddExtension<S, HostAdmission>, RequestCounter>;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let acceptor = self.clone();
        Box::pin(async move {
            // Before anything is read: refusing a client costs no handshake.
            let connection = acceptor.admission.admit(stream.peer_addr()?)?;
            let evicted = || std::future::poll_fn(|cx| connection.poll_evicted(cx));
            let accepted = tokio::select! {
                accepted = acceptor.handshake(stream) => accepted?,
                () = evicted() => return Err(eviction()),
            };
            match accepted {
                Accepted::Decrypted(stream, hosts) => {
                    let version = stream.get_ref().1.protocol_version();
                    if let Some(version) = version.and_then(TlsVersion::of) {
                        connection.set_tls(version);
                    }
                    let service = AddExtension::new(service, hosts);
                    let service = AddExtension::new(service, connection.requests());
                    let stream = acceptor.admission.admitted(stream, connection);
                    Ok((stream, service))
                }
                Accepted::Passed {
                    stream,
                    received,
                    to,
                } => {
                    // As an upgraded connection, it is not idle while it is silent.
                    connection.requests().upgrade();
                    tokio::select! {
                        ended = to.carry(stream, received) => ended?,
                        () = evicted() => return Err(eviction()),
                    }
                    // There is nothing to serve.
                    Err(io::ErrorKind::ConnectionAborted.into())
                }
            }
        })
    }
}

impl TlsAcceptor {
    async fn handshake(&self, mut stream: TcpStream) -> io::Result<Accepted> {
        // Without it, Nagle's algorithm delays the end of a response until its start is acknowledged.
        stream.set_nodelay(true)?;
        plain_http::refuse(&mut stream).await?;
        let handshake = async {
            let hello = Hello::read(&mut stream).await?;
            let name = hello.server_name();
            let passthrough = self.passthrough.as_ref();
            if let Some(to) = passthrough.and_then(|all| all.route(name.as_deref())) {
                let received = hello.received;
                return Ok(Accepted::Passed {
                    stream,
                    received,
                    to,
                });
            }
            let schemes = hello.signature_schemes();
            let chosen = self.certificates.choose(name.as_deref(), &schemes);
            let Some((config, hosts)) = chosen else {
                stream.write_all(UNRECOGNIZED_NAME).await?;
                return Err(io::Error::other(
                    "the line of the server name is out of force",
                ));
            };
            let config = hello.agreeable(config);
            let start = StartHandshake::from_parts(hello.accepted, stream);
            let stream = start.into_stream(config).await?;
            Ok(Accepted::Decrypted(Box::new(stream), hosts))
        };
        timeout(HANDSHAKE_TIMEOUT, handshake).await?
    }
}
