//! Database, registry and catalog server.

use std::sync::Arc;
use std::time::Duration;

use model::Error;
use net::resolve::Resolver;
use oci::Reference;
use oci_client::{Client, ClientOptions};
use tokio::net::TcpStream;

use super::{SubjectFinding, each};
use crate::site::{SiteFacts, shown};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Units: bytes. Longer reasons are cut.
const MAX_REASON: usize = 512;
/// A repository that need not exist: its answer shows whether the login is accepted.
const PROBE: &str = "atoll/doctor:probe";

/// A client for single requests, without redirects.
pub(super) fn client(ca: Option<&[u8]>, insecure: bool) -> Result<reqwest::Client, String> {
    let tls = net::trust::client_config(ca, insecure).map_err(|e| e.to_string())?;
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Resolver::system())
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(|e| e.to_string())
}

/// A client of the local registry, and of others that have logins beside it.
pub(super) fn registry_client(site: &SiteFacts) -> Result<Client, Error> {
    let credentials = site.registry.as_ref().map(|one| one.credentials.clone());
    Client::new(ClientOptions {
        credentials: credentials.unwrap_or_default(),
        ca_pem: site.ca_pem.clone(),
        mirrors: site.mirrors.clone(),
        insecure: site.is_insecure,
        attempts: Some(1),
        ..ClientOptions::default()
    })
}

pub(super) async fn registry(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let Some(registry) = &site.registry else {
        return Vec::new();
    };
    let address = registry.address.clone();
    let source = registry.source.clone();
    let client = registry_client(&site);
    let reference = format!("{address}/{PROBE}").parse::<Reference>();
    let subjects = vec![(address, ())];
    each(subjects, "check that the registry runs", |address, ()| {
        let (client, reference, source) = (&client, &reference, &source);
        async move {
            let answer = match (client, reference) {
                (Ok(client), Ok(reference)) => client.manifest_digest(reference).await,
                (Err(error), _) | (_, Err(error)) => {
                    let remedy = "correct the registry's address and authority";
                    return SubjectFinding::failed(address, error.to_string(), remedy);
                }
            };
            match answer {
                Ok(_) => SubjectFinding::passed(address, "accepts the login"),
                Err(error) => {
                    let finding = error.chain();
                    let remedy = registry_remedy(&error, source);
                    SubjectFinding::failed(address, finding, remedy)
                }
            }
        }
    })
    .await
}

fn registry_remedy(error: &Error, source: &str) -> String {
    match error {
        Error::Unauthenticated { .. } | Error::Forbidden { .. } => {
            format!(
                "correct the credentials in {source}, or set them with `atoll registry password`"
            )
        }
        error if error.chain().contains("certificate") => {
            "renew the registry's certificate (`atoll pod init`), or trust its authority".to_owned()
        }
        _ => "start the registry, and check that its name resolves".to_owned(),
    }
}

pub(super) async fn database(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let remedy = "start the database, and check DB_HOST and DB_PORT";
    connect(site.database.clone(), remedy, SubjectFinding::failed).await
}

/// Readiness of the installer API.
pub(super) async fn api(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let Some(url) = &site.api else {
        return Vec::new();
    };
    let client = client(site.ca_pem.as_deref(), false);
    let remedy = "start the api-server, and look at its log";
    let subjects = vec![(String::new(), ())];
    each(subjects, remedy, |name, ()| {
        let client = &client;
        async move {
            let answer = match client {
                Ok(client) => ready(client, url).await,
                Err(error) => Err(error.clone()),
            };
            match answer {
                Ok(()) => SubjectFinding::passed(name, format!("{} is ready", shown(url))),
                Err(reason) => {
                    let finding = format!("{} is not ready: {reason}", shown(url));
                    SubjectFinding::failed(name, finding, remedy)
                }
            }
        }
    })
    .await
}

async fn ready(client: &reqwest::Client, base: &url::Url) -> Result<(), String> {
    let url = base.join("/ready").map_err(|e| e.to_string())?;
    let answer = client.get(url).send().await;
    let mut answer = answer.map_err(|e| model::error::chain(&e.without_url()))?;
    if answer.status().is_success() {
        return Ok(());
    }
    // The components that it waits for.
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = answer.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= MAX_REASON {
            body.truncate(MAX_REASON);
            break;
        }
    }
    let reason = String::from_utf8_lossy(&body);
    Err(format!("{} {}", answer.status(), reason.trim()))
}

pub(super) async fn catalog(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let remedy = "if clusters use its catalogs, start it: `podman-compose --profile catalog up -d`";
    // Many sites have none.
    connect(site.catalog.clone(), remedy, SubjectFinding::warning).await
}

async fn connect(
    target: Option<(String, u16)>,
    remedy: &'static str,
    problem: fn(String, String, String) -> SubjectFinding,
) -> Vec<SubjectFinding> {
    let Some((host, port)) = target else {
        return Vec::new();
    };
    let subjects = vec![(format!("{host}:{port}"), ())];
    each(subjects, remedy, |name, ()| {
        let host = host.clone();
        async move {
            let connected = match Resolver::system().lookup(&host).await {
                Ok(addresses) => connect_to_any(&addresses, port).await,
                Err(error) => Err(error.to_string()),
            };
            match connected {
                Ok(()) => SubjectFinding::passed(name, "accepts connections"),
                Err(reason) => problem(name, format!("no connection: {reason}"), remedy.to_owned()),
            }
        }
    })
    .await
}

async fn connect_to_any(addresses: &[std::net::IpAddr], port: u16) -> Result<(), String> {
    let mut reason = "no address".to_owned();
    for address in addresses {
        match TcpStream::connect((*address, port)).await {
            Ok(_) => return Ok(()),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(reason)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::CheckStatus;

    #[tokio::test]
    async fn an_api_that_waits_for_its_database_fails() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let site = Arc::new(SiteFacts {
            api: Some(url.parse().unwrap()),
            ..SiteFacts::default()
        });
        let serving = tokio::spawn(async move {
            for status in ["200 OK", "503 Service Unavailable"] {
                let (mut socket, _) = listener.accept().await.unwrap();
                let _read = socket.read(&mut [0; 1024]).await.unwrap();
                let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n");
                let body = r#"{"waiting":{"database":"refused"}}"#;
                socket
                    .write_all(format!("{head}{body}").as_bytes())
                    .await
                    .unwrap();
            }
        });
        let found = api(Arc::clone(&site)).await.remove(0);
        assert_eq!(found.status, CheckStatus::Passed, "{found:?}");
        let found = api(Arc::clone(&site)).await.remove(0);
        assert!(
            found.finding.contains("503") && found.finding.contains("database"),
            "{found:?}"
        );
        serving.await.unwrap();
        let found = api(site).await.remove(0);
        assert_eq!(found.status, CheckStatus::Failed);
        assert!(found.remedy.contains("api-server"), "{found:?}");
    }

    #[tokio::test]
    async fn a_stopped_database_fails_and_a_stopped_catalog_warns() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Some((
            "127.0.0.1".to_owned(),
            listener.local_addr().unwrap().port(),
        ));
        let site = Arc::new(SiteFacts {
            database: target.clone(),
            catalog: target,
            ..SiteFacts::default()
        });
        assert_eq!(
            database(Arc::clone(&site)).await[0].status,
            CheckStatus::Passed
        );
        assert_eq!(
            catalog(Arc::clone(&site)).await[0].status,
            CheckStatus::Passed
        );
        drop(listener);
        let found = database(Arc::clone(&site)).await.remove(0);
        assert_eq!(found.status, CheckStatus::Failed);
        assert!(found.remedy.contains("DB_HOST"), "{found:?}");
        let found = catalog(site).await.remove(0);
        assert_eq!(found.status, CheckStatus::Warning);
        assert!(found.remedy.contains("--profile catalog"), "{found:?}");
    }
}
