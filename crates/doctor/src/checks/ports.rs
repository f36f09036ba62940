//! Ports of this machine: free, or held by our services.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use net::certificate;
use reqwest::header::{HOST, HeaderMap, LOCATION};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::clients::{client, handshake};
use super::findings::{SubjectFinding, each};
use super::port_holder::PortHolder;
use crate::site::{PortUse, ServicePort, SiteFacts};

const REMEDY: &str = "find the program with `ss -ltnp`";
/// Programs of other protocols may wait for more input; our services on a busy machine respond later than usual.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);
/// Source: PostgreSQL's documentation, "Message Formats", SSLRequest.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// Lowest port that programs without root may listen at.
const UNPRIVILEGED: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

pub(super) async fn ports(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let subjects = site.ports.iter().cloned();
    let subjects = subjects
        .map(|port| (format!("{}/{}", port.service, port.address.port()), port))
        .collect();
    each(subjects, REMEDY, |name, port| async move {
        check(name, &port).await
    })
    .await
}

async fn check(name: String, port: &PortUse) -> SubjectFinding {
    match TcpStream::connect(port.address).await {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            let remedy = remedy_of_free(port, lowest_port());
            return SubjectFinding::warning(name, "free: the service does not run", remedy);
        }
        Err(error) => {
            let remedy = "check the firewall of this machine";
            return SubjectFinding::failed(name, format!("not reachable: {error}"), remedy);
        }
    }
    let is_ours = tokio::time::timeout(ANSWER_TIMEOUT, is_ours(port)).await;
    if is_ours == Ok(true) {
        return SubjectFinding::passed(name, format!("held by {}", port.service));
    }
    let address = port.address;
    let holder = tokio::task::spawn_blocking(move || PortHolder::of(Path::new("/proc"), address));
    let finding = match holder.await {
        Ok(Some(holder)) => format!("held by another program: {holder}"),
        _ => "held by another program".to_owned(),
    };
    let remedy = format!(
        "end that program, or choose another port with {}",
        port.setting
    );
    SubjectFinding::failed(name, finding, remedy)
}

/// The lowest port for a program without root; none for root.
fn lowest_port() -> Option<u16> {
    if rustix::process::geteuid().is_root() {
        return None;
    }
    let text = std::fs::read_to_string(UNPRIVILEGED).ok()?;
    text.trim().parse().ok()
}

fn remedy_of_free(port: &PortUse, lowest: Option<u16>) -> String {
    match lowest.filter(|lowest| port.address.port() < *lowest) {
        Some(lowest) => format!(
            "start {} as root, or set {} to a port from {lowest} on",
            port.service, port.setting
        ),
        None => format!("start {}, unless it is not wanted", port.service),
    }
}

/// Whether the service itself answers. Its certificate is another check.
async fn is_ours(port: &PortUse) -> bool {
    let address = port.address;
    match &port.protocol {
        ServicePort::Http => {
            let answer = get(&format!("http://{address}/health"), None).await;
            answer.is_some_and(|(status, _)| status.is_success())
        }
        ServicePort::Registry => {
            let answer = get(&format!("https://{address}/v2/"), None).await;
            answer
                .is_some_and(|(_, headers)| headers.contains_key("docker-distribution-api-version"))
        }
        ServicePort::Redirect(host) => {
            let answer = get(&format!("http://{address}/"), Some(host)).await;
            answer.is_some_and(|(_, headers)| {
                let target = headers
                    .get(LOCATION)
                    .map(reqwest::header::HeaderValue::as_bytes);
                target
                    .is_some_and(|target| target.starts_with(format!("https://{host}").as_bytes()))
            })
        }
        ServicePort::Tls { name, authority } => {
            let roots = std::fs::read(authority).unwrap_or_default();
            is_of_authority(address, name, &roots).await
        }
        ServicePort::Postgres => is_postgres(address).await.unwrap_or_default(),
    }
}

async fn get(url: &str, host: Option<&str>) -> Option<(reqwest::StatusCode, HeaderMap)> {
    let client = client(None, true).ok()?;
    let request = client.get(url);
    let request = match host {
        Some(host) => request.header(HOST, host),
        None => request,
    };
    let answer = request.send().await.ok()?;
    Some((answer.status(), answer.headers().clone()))
}

/// Whether the certificate for `name` is one of the authority, also an expired one.
async fn is_of_authority(address: SocketAddr, name: &str, roots: &[u8]) -> bool {
    let Ok(chain) = handshake(address, name).await else {
        return false;
    };
    let Ok(roots) = certificate::of_pem(roots) else {
        return false;
    };
    let leaf = chain.first().and_then(|leaf| certificate::read(leaf).ok());
    leaf.is_some_and(|leaf| {
        let mut names = leaf.names.iter();
        names.any(|own| certificate::verify(&chain, &roots, own, leaf.not_before).is_ok())
    })
}

/// Whether the answer to a request for TLS is one of the two that PostgreSQL has.
async fn is_postgres(address: SocketAddr) -> std::io::Result<bool> {
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(&SSL_REQUEST).await?;
    let mut answer = [0; 2];
    let length = socket.read(&mut answer).await?;
    Ok(matches!(answer[..length], [b'S' | b'N']))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::CheckStatus;

    async fn found(port: PortUse) -> SubjectFinding {
        let site = SiteFacts {
            ports: vec![port],
            ..SiteFacts::default()
        };
        ports(Arc::new(site)).await.remove(0)
    }

    /// A server that answers every request with `answer`.
    async fn server(answer: &'static str) -> PortUse {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut head = [0; 1024];
                    let _read = socket.read(&mut head).await;
                    socket.write_all(answer.as_bytes()).await.ok();
                });
            }
        });
        PortUse {
            service: "api-server",
            setting: "PUBLISH_API",
            address,
            protocol: ServicePort::Http,
        }
    }

    #[tokio::test]
    async fn ports_of_others_fail() {
        let ours = server("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(found(ours.clone()).await.status, CheckStatus::Passed);
        let foreign = server("SSH-2.0-OpenSSH_9.2\r\n").await;
        let one = found(foreign.clone()).await;
        assert_eq!(one.status, CheckStatus::Failed);
        assert!(one.remedy.contains("PUBLISH_API"), "{one:?}");
        // The program is this one.
        let own = format!("process {}", std::process::id());
        assert!(one.finding.contains(&own), "{one:?}");
        for protocol in [
            ServicePort::Registry,
            ServicePort::Postgres,
            ServicePort::Redirect("api.lab.example".to_owned()),
            ServicePort::Tls {
                name: "api.lab.example".to_owned(),
                authority: "/nowhere/ca.crt".into(),
            },
        ] {
            let port = PortUse {
                protocol,
                ..ours.clone()
            };
            let one = found(port).await;
            assert_eq!(one.status, CheckStatus::Failed, "{one:?}");
        }
    }

    #[tokio::test]
    async fn free_ports_warn() {
        let ours = server("").await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let port = PortUse { address, ..ours };
        let one = found(port.clone()).await;
        assert_eq!(one.status, CheckStatus::Warning);
        assert!(one.remedy.contains("start api-server"), "{one:?}");
        let remedy = remedy_of_free(&port, Some(address.port()));
        assert!(!remedy.contains("root"), "{remedy}");
        let above = address.port().checked_add(1);
        let remedy = remedy_of_free(&port, above);
        assert_eq!(remedy.contains("as root"), above.is_some(), "{remedy}");
    }

    #[tokio::test]
    async fn redirects_and_databases_are_recognised() {
        let redirect = "HTTP/1.1 301 Moved Permanently\r\nlocation: https://api.lab.example/\r\ncontent-length: 0\r\n\r\n";
        for (answer, protocol) in [
            (
                redirect,
                ServicePort::Redirect("api.lab.example".to_owned()),
            ),
            ("S", ServicePort::Postgres),
            ("N", ServicePort::Postgres),
        ] {
            let port = PortUse {
                protocol,
                ..server(answer).await
            };
            let one = found(port).await;
            assert_eq!(one.status, CheckStatus::Passed, "{one:?}");
        }
    }
}
