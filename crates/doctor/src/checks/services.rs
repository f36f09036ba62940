//! Database, registry and catalog server.

use std::sync::Arc;

use model::Error;
use oci::Reference;

use super::clients::{PROBE, client, registry_client};
use super::findings::{SubjectFinding, each};
use super::remote;
use crate::probe::SiteProbe;
use crate::site::{SiteFacts, shown};

/// Units: bytes. Longer reasons are cut.
const MAX_REASON: usize = 512;

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
    let remedy = "check that the database runs, and DB_HOST and DB_PORT";
    probes(site.database.as_slice(), remedy).await
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

pub(super) async fn catalogs(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let mut found = probes(&site.catalogs, "check that the catalog server runs").await;
    found.extend(remote::catalogs(&site).await);
    found
}

/// Results of probes; `remedy` is for those without an answer.
async fn probes(all: &[SiteProbe], remedy: &'static str) -> Vec<SubjectFinding> {
    let subjects = all.iter().map(|one| (one.subject().to_owned(), one));
    each(subjects.collect(), remedy, |name, probe| async move {
        let found = probe.run().await;
        let found = found.map_err(|one| (one.status, one.finding, one.remedy));
        SubjectFinding::of(name, found)
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::{CheckStatus, ProbeProblem};

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
    async fn problems_of_probes_are_results() {
        let site = |status: Option<CheckStatus>| {
            let probe = SiteProbe::new("db:5432", move || async move {
                status.map_or(Ok("accepts the login".to_owned()), |status| {
                    Err(ProbeProblem {
                        status,
                        finding: "refuses the password".to_owned(),
                        remedy: "correct it".to_owned(),
                    })
                })
            });
            Arc::new(SiteFacts {
                database: Some(probe.clone()),
                catalogs: vec![probe],
                ..SiteFacts::default()
            })
        };
        let found = database(site(None)).await;
        assert_eq!(
            found,
            [SubjectFinding::passed("db:5432", "accepts the login")]
        );
        for status in [CheckStatus::Warning, CheckStatus::Failed] {
            for found in [
                database(site(Some(status))).await,
                catalogs(site(Some(status))).await,
            ] {
                assert_eq!(found[0].status, status);
                assert_eq!(found[0].finding, "refuses the password");
                assert_eq!(found[0].remedy, "correct it");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn probes_without_an_answer_fail() {
        let hangs = SiteProbe::new("db:5432", std::future::pending);
        let site = SiteFacts {
            database: Some(hangs),
            ..SiteFacts::default()
        };
        let found = database(Arc::new(site)).await.remove(0);
        assert_eq!(found.status, CheckStatus::Failed);
        assert!(found.remedy.contains("DB_HOST"), "{found:?}");
    }
}
