//! Continuous changes while processes are killed, and the acknowledgement of each.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::demo::AtollState;

use crate::ApiClient;
use crate::api::PASSING;

/// Between two changes.
const PAUSE: Duration = Duration::from_millis(20);
/// Repository of the uploads.
const REPOSITORY: &str = "ledger";

/// Sent and acknowledged changes.
#[derive(Debug)]
pub struct Ledger {
    api: ApiClient,
    registry: LedgerRegistry,
    pull_secret: String,
    infra_envs: Vec<LedgerInfraEnv>,
    /// Digest and content of each acknowledged blob.
    blobs: Vec<(String, String)>,
    refused: u32,
}

#[derive(Debug)]
struct LedgerInfraEnv {
    id: String,
    name: String,
    /// Number of the last sent change.
    sent: u32,
    /// Number of the last acknowledged change.
    acknowledged: u32,
}

#[derive(Debug)]
struct LedgerRegistry {
    http: reqwest::Client,
    origin: String,
    user: String,
    password: String,
}

impl Ledger {
    /// An empty ledger for an installation.
    ///
    /// Errors: the registry's files cannot be read.
    pub fn new(services: &AtollState) -> Result<Self> {
        let password = std::fs::read_to_string(&services.registry_password_file)?;
        Ok(Self {
            api: ApiClient::new(&services.api_url)?,
            registry: LedgerRegistry {
                http: crate::api::client(Some(&services.registry_ca))?,
                origin: format!("https://{}", services.registry),
                user: services.registry_user.clone(),
                password: password.trim_end().to_owned(),
            },
            pull_secret: services.registry().pull_secret()?,
            infra_envs: Vec::new(),
            blobs: Vec::new(),
            refused: 0,
        })
    }

    /// Makes changes in an endless loop. Safe to drop at any time.
    ///
    /// Errors: a response that a client of a restarting service must never get.
    pub async fn write(&mut self) -> Result<()> {
        for number in 0.. {
            self.create(number).await?;
            self.change().await?;
            self.upload(number).await?;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Reads all acknowledged changes; returns a summary.
    ///
    /// Errors: a lost change.
    pub async fn verify(&self) -> Result<String> {
        for infra_env in &self.infra_envs {
            let found = self
                .api
                .get(&format!("/v2/infra-envs/{}", infra_env.id))
                .await?;
            infra_env.compare(&found)?;
        }
        for (digest, content) in &self.blobs {
            let path = format!("/v2/{REPOSITORY}/blobs/{digest}");
            let response = self.registry.request(Method::GET, &path).send().await?;
            let status = response.status();
            ensure!(
                status == StatusCode::OK,
                "acknowledged blob {digest}: {status}"
            );
            ensure!(
                response.text().await? == *content,
                "blob {digest} has other content"
            );
        }
        let (infra_envs, blobs) = (self.infra_envs.len(), self.blobs.len());
        ensure!(
            infra_envs > 0 && blobs > 0,
            "nothing was acknowledged at all"
        );
        let refused = self.refused;
        Ok(format!(
            "{infra_envs} infra-envs with their changes and {blobs} blobs are there; {refused} requests had no success"
        ))
    }

    async fn create(&mut self, number: u32) -> Result<()> {
        let name = format!("ledger-{number}");
        let body =
            json!({ "name": name, "pull_secret": self.pull_secret, "cpu_architecture": "x86_64" });
        let answer = self
            .api
            .ask(Method::POST, "/v2/infra-envs", Some(&body))
            .await;
        if let Some(created) = self.acknowledged(answer.map(|a| (a.status, a.text())))? {
            let created: Value = serde_json::from_str(&created)?;
            let id = created["id"]
                .as_str()
                .context("a new infra-env has no id")?;
            self.infra_envs.push(LedgerInfraEnv {
                id: id.to_owned(),
                name,
                sent: 0,
                acknowledged: 0,
            });
        }
        Ok(())
    }

    /// Updates the last infra-env again: later values follow earlier ones.
    async fn change(&mut self) -> Result<()> {
        let Some(infra_env) = self.infra_envs.last_mut() else {
            return Ok(());
        };
        infra_env.sent += 1;
        let number = infra_env.sent;
        let path = format!("/v2/infra-envs/{}", infra_env.id);
        let body = json!({ "additional_ntp_sources": ntp(number) });
        let answer = self.api.ask(Method::PATCH, &path, Some(&body)).await;
        let is_acknowledged = self
            .acknowledged(answer.map(|a| (a.status, a.text())))?
            .is_some();
        if let Some(infra_env) = self.infra_envs.last_mut().filter(|_| is_acknowledged) {
            infra_env.acknowledged = number;
        }
        Ok(())
    }

    async fn upload(&mut self, number: u32) -> Result<()> {
        let content = format!("entry {number}");
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&content)));
        let answer = self.registry.upload(&digest, &content).await;
        if self.acknowledged(answer)?.is_some() {
            self.blobs.push((digest, content));
        }
        Ok(())
    }

    /// The body of a success. No response, a proxy's status for that, and "not now" are expected.
    fn acknowledged(&mut self, answer: Result<(StatusCode, String)>) -> Result<Option<String>> {
        match answer {
            Ok((status, body)) if status.is_success() => return Ok(Some(body)),
            Ok((status, body)) if !PASSING.contains(&status) => {
                bail!("while processes are killed: {status} {body}")
            }
            Ok(_) | Err(_) => self.refused += 1,
        }
        Ok(None)
    }
}

impl LedgerInfraEnv {
    fn compare(&self, found: &Value) -> Result<()> {
        ensure!(
            found["name"] == self.name.as_str(),
            "{} has another name: {found}",
            self.name
        );
        // A change without a response may have been applied or not.
        let sources = found["additional_ntp_sources"].as_str().unwrap_or_default();
        let is_one = (self.acknowledged..=self.sent).any(|number| match number {
            0 => sources.is_empty(),
            _ => sources == ntp(number),
        });
        ensure!(
            is_one,
            "{}: change {} was acknowledged, {} sent, but it has {sources:?}",
            self.name,
            self.acknowledged,
            self.sent
        );
        Ok(())
    }
}

fn ntp(number: u32) -> String {
    format!("ntp-{number}.example.org")
}

impl LedgerRegistry {
    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.origin))
            .basic_auth(&self.user, Some(&self.password))
            .timeout(Duration::from_mins(1))
    }

    /// A session, then all bytes at once. A lost session counts as "not now".
    async fn upload(&self, digest: &str, content: &str) -> Result<(StatusCode, String)> {
        let begun = self
            .request(Method::POST, &format!("/v2/{REPOSITORY}/blobs/uploads/"))
            .send()
            .await?;
        let status = begun.status();
        let location = begun
            .headers()
            .get("location")
            .and_then(|value| value.to_str().ok());
        let Some(location) = location.filter(|_| status == StatusCode::ACCEPTED) else {
            return Ok((status, begun.text().await?));
        };
        let path = location.strip_prefix(&self.origin).unwrap_or(location);
        let joint = if path.contains('?') { '&' } else { '?' };
        let ended = self
            .request(Method::PUT, &format!("{path}{joint}digest={digest}"))
            .body(content.to_owned())
            .send()
            .await?;
        Ok((ended.status(), ended.text().await?))
    }
}
