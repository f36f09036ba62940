//! Services that are reached by their names through the network, as from within a container.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use net::resolve::{self, Resolver};
use reqwest::header::{CONTENT_TYPE, HeaderValue, TE};
use tokio::net::TcpStream;

use super::certificates::{CheckedChain, check_chain};
use super::clients::{handshake, http2_client};
use super::findings::{SubjectFinding, SubjectProblem, each};
use crate::report::CheckStatus::{Failed, Warning};
use crate::site::{RemoteCheck, RemoteService, SiteFacts};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Source: gRPC, "GRPC Health Checking Protocol".
const HEALTH: &str = "/grpc.health.v1.Health/Check";
/// A message without fields, and one whose first field is SERVING, each behind the five bytes of gRPC's framing.
const EMPTY: [u8; 5] = [0; 5];
const SERVING: [u8; 7] = [0, 0, 0, 0, 2, 8, 1];
const RENEWAL: &str =
    "renew it: `atoll certs` that of the proxy, `atoll pod init` that of the registry";

pub(super) async fn connections(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    each_with(&site, RemoteCheck::Connection, async |service| {
        connect(service).await?;
        Ok("accepts connections".to_owned())
    })
    .await
}

/// Certificates, by their validity: those of a port without a name for it, and of authorities that are not known here.
pub(super) async fn certificates(site: &SiteFacts) -> Vec<SubjectFinding> {
    each_with(site, RemoteCheck::Tls, async |service| {
        let address = connect(service).await?;
        let chain = handshake(address, &service.host).await;
        let chain = chain.map_err(|error| {
            let remedy = format!("look at the log of {}", service.host);
            (Failed, format!("no TLS at {service}: {error}"), remedy)
        })?;
        check_chain(&CheckedChain {
            chain: &chain,
            shown: "its certificate",
            names: &[],
            authority: None,
            renewal: RENEWAL,
            now: SystemTime::now(),
        })
    })
    .await
}

/// Catalog servers. A name that does not exist is no problem: engines know the names of running containers alone, and many
/// sites have no catalogs.
pub(super) async fn catalogs(site: &SiteFacts) -> Vec<SubjectFinding> {
    each_with(site, RemoteCheck::Catalogs, async |service| {
        if let Err(resolve::Error::Unknown { .. }) = Resolver::system().lookup(&service.host).await
        {
            return Ok(format!("there is no catalog server {}", service.host));
        }
        let address = connect(service).await?;
        let failed = |finding: String| {
            let remedy =
                "correct the sources of CATALOGS; the log of the catalog server has the reason";
            (Failed, finding, remedy.to_owned())
        };
        match is_serving(address).await {
            Ok(true) => Ok("its catalogs are served".to_owned()),
            Ok(false) => Err(failed("has loaded no catalog".to_owned())),
            Err(reason) => Err(failed(format!("does not answer by gRPC: {reason}"))),
        }
    })
    .await
}

async fn each_with(
    site: &SiteFacts,
    check: RemoteCheck,
    find: impl AsyncFn(&RemoteService) -> Result<String, SubjectProblem>,
) -> Vec<SubjectFinding> {
    let services = site.remote.iter().filter(|one| one.check == check);
    let services = services.map(|one| (one.to_string(), one)).collect();
    let find = &find;
    each(
        services,
        "check that the service runs",
        |name, service| async move { SubjectFinding::of(name, find(service).await) },
    )
    .await
}

/// An address that accepts connections.
///
/// Errors: none does.
async fn connect(service: &RemoteService) -> Result<SocketAddr, SubjectProblem> {
    let RemoteService { host, port, .. } = service;
    let addresses = Resolver::system().lookup(host).await.map_err(|error| {
        let remedy = format!("start {host}, or correct its name in {}", service.setting);
        (Warning, error.to_string(), remedy)
    })?;
    let mut reasons = Vec::new();
    for address in addresses {
        let address = SocketAddr::new(address, *port);
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return Ok(address),
            Ok(Err(error)) => reasons.push(format!("{address}: {error}")),
            Err(_) => reasons.push(format!("{address}: no answer")),
        }
    }
    let remedy = format!(
        "check that the service runs and that no firewall is between, or correct {}",
        service.setting
    );
    Err((
        Failed,
        format!("not reachable: {}", reasons.join("; ")),
        remedy,
    ))
}

/// Whether the server at `address` is serving, by gRPC's health protocol.
///
/// Errors: no connection; the answer is none of gRPC.
async fn is_serving(address: SocketAddr) -> Result<bool, String> {
    let client = http2_client()?;
    let request = client
        .post(format!("http://{address}{HEALTH}"))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
        .header(TE, HeaderValue::from_static("trailers"))
        .body(EMPTY.to_vec());
    let answer = request
        .send()
        .await
        .map_err(|error| model::error::chain(&error.without_url()))?;
    let is_grpc = answer
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    if !is_grpc {
        return Err(format!("status {}", answer.status()));
    }
    let mut answer = answer;
    let body = answer
        .chunk()
        .await
        .map_err(|error| error.without_url().to_string())?;
    Ok(body.is_some_and(|body| *body == SERVING))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::super::certificates::tests::make;
    use super::super::served_certificates::tests::server;
    use super::*;
    use crate::CheckStatus::{self, Passed};

    fn site(scheme: &str, address: SocketAddr) -> Arc<SiteFacts> {
        let service = RemoteService::parse(&format!("{scheme}://{address}"), "DOCTOR_SERVICES");
        Arc::new(SiteFacts {
            remote: vec![service.unwrap()],
            ..SiteFacts::default()
        })
    }

    fn is(found: &[SubjectFinding], status: CheckStatus, finding: &str, remedy: &str) {
        let [one] = found else { panic!("{found:?}") };
        assert_eq!(one.status, status, "{one:?}");
        assert!(one.finding.contains(finding), "{one:?}");
        assert!(one.remedy.contains(remedy), "{one:?}");
    }

    #[test]
    fn services_are_urls_with_a_port() {
        let parse = |text| RemoteService::parse(text, "DOCTOR_SERVICES");
        let service = parse("grpc://[fd00::1]:50051").unwrap();
        assert_eq!((service.host.as_str(), service.port), ("fd00::1", 50051));
        assert_eq!(service.to_string(), "[fd00::1]:50051");
        assert_eq!(parse("tls://proxy:8443").unwrap().check, RemoteCheck::Tls);
        for wrong in [
            "proxy:8443",
            "https://proxy:8443",
            "tls://proxy",
            "tls://:1",
            "tcp://a:b",
            "tcp://a/b:1",
            "tcp://u@a:1",
        ] {
            assert!(
                parse(wrong).unwrap_err().contains("tcp://HOST:PORT"),
                "{wrong}"
            );
        }
    }

    #[tokio::test]
    async fn a_port_that_is_closed_fails() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = site("tcp", listener.local_addr().unwrap());
        is(&connections(site.clone()).await, Passed, "accepts", "");
        drop(listener);
        is(
            &connections(site).await,
            Failed,
            "refused",
            "DOCTOR_SERVICES",
        );
    }

    #[tokio::test]
    async fn certificates_that_end_are_found_without_a_name() {
        for (days, status, finding) in [
            ([-1, 60], Passed, "59 more days"),
            ([-1, 29], Warning, "28 more days"),
            ([-9, -1], Failed, "has expired"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let file = make(dir.path(), &["api.lab.example"], days);
            let site = site("tls", server(&file).await);
            let remedy = if status == Passed { "" } else { "atoll certs" };
            is(&certificates(&site).await, status, finding, remedy);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = site("tls", listener.local_addr().unwrap());
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        is(&certificates(&site).await, Failed, "no TLS", "log");
    }

    /// The server itself is in the tests of `atoll doctor`.
    #[tokio::test]
    async fn servers_of_other_protocols_are_no_catalogs() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = site("grpc", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                socket
                    .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    .await
                    .ok();
            }
        });
        is(&catalogs(&site).await, Failed, "by gRPC", "CATALOGS");
        serving.abort();
        serving.await.unwrap_err();
        is(&catalogs(&site).await, Failed, "refused", "DOCTOR_SERVICES");
    }
}
