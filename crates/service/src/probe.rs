//! The command `health`: one request to the running server, on this machine.
//!
//! Its connection is a plain one of HTTP/1.1: no proxy of the environment, no name, no redirect is between.

use std::error::Error as StdError;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::{Request, StatusCode, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::server::Listen;
use crate::{Error, ResultExt as _, tls};

/// Timeout of the request: enough for a busy server.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Units: bytes. Longer answers are not shown.
const MAX_ANSWER: usize = 64 * 1024;

type AnyError = Box<dyn StdError + Send + Sync>;

/// Asks the server on `listen` whether it works or, with `ready`, whether it can do its job.
///
/// Errors: no answer in time; any answer but a success; a certificate that cannot be loaded.
pub(crate) async fn ask(listen: &Listen, ready: bool) -> Result<(), Error> {
    let address = reachable(listen.address);
    let scheme = if listen.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let path = if ready { "/ready" } else { "/health" };
    let doing = || format!("asking {scheme}://{address}{path}");
    let answer = tokio::time::timeout(TIMEOUT, get(address, listen.tls.as_ref(), path));
    let answer = answer.await.doing(doing);
    let (status, body) = answer?.doing(doing)?;
    if status.is_success() {
        return Ok(());
    }
    Err(Error::new(doing(), format!("answered {status} {body}")))
}

/// The address at which this machine reaches a server that listens on `address`.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

async fn get(
    address: SocketAddr,
    server: Option<&tls::TlsConfig>,
    path: &'static str,
) -> Result<(StatusCode, String), AnyError> {
    let stream = TcpStream::connect(address).await?;
    let request = Request::get(path)
        .header(header::HOST, address.to_string())
        .header(header::CONNECTION, "close")
        .body(Body::empty())?;
    match server {
        None => exchange(stream, request).await,
        Some(server) => {
            let tls = connector(server).await?;
            let stream = tls.connect(ServerName::from(address.ip()), stream).await?;
            exchange(stream, request).await
        }
    }
}

/// TLS that trusts any certificate, since the server may have any name. A server that asks for client certificates gets
/// its own.
async fn connector(server: &tls::TlsConfig) -> Result<TlsConnector, AnyError> {
    let mut config = net::trust::client_config(None, true)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if let (Some(_), tls::Certificates::Files(files)) = (&server.clients, &server.certificates) {
        config.client_auth_cert_resolver = tls::own_identity(files).await?;
    }
    Ok(Arc::new(config).into())
}

async fn exchange<S>(stream: S, request: Request<Body>) -> Result<(StatusCode, String), AnyError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async move {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = to_bytes(Body::new(response.into_body()), MAX_ANSWER).await;
        let body = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
        Ok((status, body))
    };
    // The connection ends with its only exchange, or with an error that the exchange gets itself.
    let (answer, _) = tokio::join!(exchange, connection);
    answer
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::health;
    use crate::server::{self, Running};
    use crate::tls::{CertificateFiles, Clients, Demand, TlsConfig};

    async fn start(tls: Option<TlsConfig>) -> (Running, Listen, health::Health) {
        tls::install_provider();
        let health = health::Health::new();
        let routes = health::routes(health.clone(), false);
        let mut listen = Listen::new("127.0.0.1:0".parse().unwrap(), tls);
        let running = server::start(vec![listen.clone()], routes, CancellationToken::new()).await;
        let running = running.unwrap();
        // As settings have it.
        listen.address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), running.address().port());
        (running, listen, health)
    }

    #[tokio::test]
    async fn a_server_is_asked_with_and_without_tls() {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).unwrap();
        let files = CertificateFiles {
            cert: folder.path().join("cert.pem"),
            key: folder.path().join("key.pem"),
        };
        std::fs::write(&files.cert, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        let authority = rcgen::generate_simple_self_signed(["clients.example".to_owned()]).unwrap();
        let authorities = vec![folder.path().join("authority.pem")];
        std::fs::write(&authorities[0], authority.cert.pem()).unwrap();
        let demand = Demand::RequireAndVerify;
        let clients = Some(Clients {
            authorities,
            demand,
        });
        let demanding = TlsConfig {
            clients,
            ..TlsConfig::from(files.clone())
        };
        for tls in [None, Some(files.into()), Some(demanding)] {
            let (_running, listen, health) = start(tls).await;
            ask(&listen, false).await.unwrap();
            ask(&listen, true).await.unwrap();
            health.unready("database", "not reached yet");
            ask(&listen, false).await.unwrap();
            let error = ask(&listen, true).await.unwrap_err().to_string();
            assert!(error.contains("answered 503"), "{error}");
            assert!(
                error.contains("\"database\":\"not reached yet\""),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn an_error_has_the_address() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let listen = Listen::new(address, None);
        let error = ask(&listen, false).await.unwrap_err().to_string();
        assert!(
            error.contains(&format!("http://{address}/health")),
            "{error}"
        );
    }
}
