//! Tokens of `atoll token`: an installation by an authenticated user, on hosts with the tokens of their image.

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use system_tests::process::program;
use system_tests::{Installation, client, journey_with, until};

const API: &str = "/api/assisted-install/v2";
const LIMIT: Duration = Duration::from_mins(2);
/// Id of an arbitrary machine.
const HOST: &str = "7a6c1f0e-2f0e-4c3e-9a57-6a6f8d1c0b12";

/// An installation with AUTH_TYPE=local, and a token of its administrator.
struct SecuredInstallation {
    installation: Installation,
    http: reqwest::Client,
    token: String,
}

impl SecuredInstallation {
    async fn start() -> Result<Self> {
        let installation = Installation::with_content().await?;
        let keys = printed(&["token", "keys"])?;
        installation
            .change_settings(&format!("AUTH_TYPE=local\n{keys}"))
            .await?;
        let settings = installation.settings().display().to_string();
        let token = printed(&["token", "user", "--name", "alice", "--config", &settings])?;
        Ok(Self {
            installation,
            http: client(None)?,
            token: token.trim().to_owned(),
        })
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Response> {
        let url = format!("{}{API}{path}", self.installation.state()?.services.api_url);
        let request = self.http.request(method, url).bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        Ok(request.send().await?)
    }

    async fn infra_env(&self) -> Result<Value> {
        let secret = self.installation.state()?.services.registry();
        let body = json!({ "name": "lab", "pull_secret": secret.pull_secret()?, "cpu_architecture": "x86_64" });
        let created = self.send(Method::POST, "/infra-envs", Some(&body)).await?;
        Ok(created.error_for_status()?.json().await?)
    }
}

fn printed(arguments: &[&str]) -> Result<String> {
    let output = Command::new(program("atoll")?)
        .args(arguments)
        .env_clear()
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{arguments:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test]
async fn a_cluster_is_installed_with_tokens() -> Result<()> {
    let site = SecuredInstallation::start().await?;
    journey_with(&site.installation, &site.token).await?;
    let clusters = site.send(Method::GET, "/clusters", None).await?;
    let clusters: Value = clusters.json().await?;
    ensure!(clusters[0]["status"] == "installed", "{clusters}");
    let audit = site.send(Method::GET, "/audit", None).await?.text().await?;
    ensure!(audit.contains("\"alice\""), "{audit}");
    site.installation.stop().await
}

#[tokio::test]
async fn only_the_image_of_its_infra_env_lets_a_host_register() -> Result<()> {
    let site = SecuredInstallation::start().await?;
    let (own, other) = (site.infra_env().await?, site.infra_env().await?);
    let url = |infra_env: &Value| infra_env["download_url"].as_str().map(str::to_owned);
    let (url, foreign) = (url(&own).context("no URL")?, url(&other).context("no URL")?);
    let folder = site.installation.folder("hosts")?;
    let iso = folder.join("discovery.iso");
    let mut image = until("the image is offered", LIMIT, async || {
        let answer = site.http.get(&url).send().await?;
        ensure!(!answer.status().is_client_error(), "{}", answer.status());
        Ok(answer.status().is_success().then_some(answer))
    })
    .await?;
    let mut file = File::create(&iso)?;
    while let Some(chunk) = image.chunk().await? {
        file.write_all(&chunk)?;
    }
    let id = own["id"].as_str().context("no id")?;
    let without = url.replace(
        &format!("byapikey/{}", token_of(&url)?),
        &format!("byid/{id}"),
    );
    ensure!(without.contains(id), "the link has no token in its path");
    for wrong in [altered(&url)?, without] {
        let refused = site.http.get(&wrong).send().await?.status();
        ensure!(
            refused.is_client_error(),
            "{refused} for {}",
            wrong.replace(&site.token, "")
        );
    }
    let hosts = Hosts::boot(&iso, &folder)?;
    let path = format!("/infra-envs/{id}/hosts");
    until("the host is known", LIMIT, async || {
        let listed: Value = site.send(Method::GET, &path, None).await?.json().await?;
        Ok((listed[0]["status"] == "known-unbound").then_some(()))
    })
    .await?;
    drop(hosts);
    let api = site.installation.state()?.services.api_url;
    let foreign = token_of(&foreign)?;
    for (token, status) in [
        (None, StatusCode::UNAUTHORIZED),
        (Some("nonsense"), StatusCode::UNAUTHORIZED),
        (Some(foreign), StatusCode::NOT_FOUND),
    ] {
        let hosts = format!("{api}{API}/infra-envs/{id}/hosts");
        let host = json!({ "host_id": HOST, "discovery_agent_version": "any" });
        let mut request = site.http.post(hosts).json(&host);
        if let Some(token) = token {
            request = request.header("x-secret-key", token);
        }
        let answer = request.send().await?;
        ensure!(
            answer.status() == status,
            "{}, not {status}: {}",
            answer.status(),
            answer.text().await?
        );
    }
    site.installation.stop().await
}

/// The URL with another signature.
fn altered(url: &str) -> Result<String> {
    let token = token_of(url)?;
    let (head, signature) = token.rsplit_once('.').context("no signature")?;
    let reversed: String = signature.chars().rev().collect();
    Ok(url.replace(token, &format!("{head}.{reversed}")))
}

fn token_of(url: &str) -> Result<&str> {
    let (_, rest) = url.split_once("/byapikey/").context("no token")?;
    rest.split('/').next().context("no token")
}

/// Simulated hosts; they end with the test.
struct Hosts(Child);

impl Hosts {
    fn boot(iso: &std::path::Path, folder: &std::path::Path) -> Result<Self> {
        let log = File::create(folder.join("host-sim.log"))?;
        let child = Command::new(program("host-sim")?)
            .arg("--iso")
            .arg(iso)
            .args(["--hosts", "masters=1", "--speedup", "60"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self(child))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
