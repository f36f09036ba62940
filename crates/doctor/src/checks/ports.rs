//! Ports of this machine: free, or held by our services.

use std::io::ErrorKind;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::{SubjectFinding, each};
use crate::site::{PortUse, ServicePort, SiteFacts};

const REMEDY: &str = "find the program with `ss -ltnp`";

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
            let remedy = format!("start {}, unless it is not wanted", port.service);
            return SubjectFinding::warning(name, "free: the service does not run", remedy);
        }
        Err(error) => {
            let remedy = "check the firewall of this machine";
            return SubjectFinding::failed(name, format!("not reachable: {error}"), remedy);
        }
    }
    let (path, scheme) = match port.protocol {
        ServicePort::Other => return SubjectFinding::passed(name, "answers"),
        ServicePort::Http => ("health", "http"),
        ServicePort::Registry => ("v2/", "https"),
    };
    let url = format!("{scheme}://{}/{path}", port.address);
    // Its certificate is another check.
    let answer = match super::services::client(None, true) {
        Ok(client) => client.get(&url).send().await.map_err(|_| ()),
        Err(_) => Err(()),
    };
    let is_ours = answer.is_ok_and(|answer| match port.protocol {
        ServicePort::Registry => answer
            .headers()
            .contains_key("docker-distribution-api-version"),
        _ => answer.status().is_success(),
    });
    if is_ours {
        SubjectFinding::passed(name, format!("held by {}", port.service))
    } else {
        let remedy = format!(
            "end that program, or choose another port with {}",
            port.setting
        );
        SubjectFinding::failed(name, "held by another program", remedy)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
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
                let mut head = [0; 1024];
                let _read = socket.read(&mut head).await;
                socket.write_all(answer.as_bytes()).await.ok();
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
        let as_registry = PortUse {
            protocol: ServicePort::Registry,
            ..ours.clone()
        };
        assert_eq!(found(as_registry).await.status, CheckStatus::Failed);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let one = found(PortUse { address, ..ours }).await;
        assert_eq!(one.status, CheckStatus::Warning);
        assert!(one.remedy.contains("start api-server"), "{one:?}");
    }
}
