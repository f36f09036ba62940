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
use testkit::tokens::TokenKey;

use crate::secrets::{KnownSecrets, TALKATIVE};

const API: &str = "/api/assisted-install/v2";
const LIMIT: Duration = Duration::from_mins(2);
/// Id of an arbitrary machine.
const HOST: &str = "7a6c1f0e-2f0e-4c3e-9a57-6a6f8d1c0b12";

/// An installation with AUTH_TYPE=local, and a token of its administrator.
struct SecuredInstallation {
    installation: Installation,
    http: reqwest::Client,
    token: String,
    /// A token of an administrator.
    administrator: String,
    /// Variables with its keys.
    keys: String,
}

impl SecuredInstallation {
    async fn start() -> Result<Self> {
        Self::start_with("").await
    }

    /// With more variables.
    async fn start_with(more: &str) -> Result<Self> {
        let installation = Installation::with_content().await?;
        let keys = printed(&["token", "keys"])?;
        installation
            .change_settings(&format!("AUTH_TYPE=local\n{keys}{more}"))
            .await?;
        let settings = installation.settings().display().to_string();
        let token = printed(&["token", "user", "--name", "alice", "--config", &settings])?;
        Ok(Self {
            installation,
            http: client(None)?,
            token: token.trim().to_owned(),
            administrator: token.trim().to_owned(),
            keys,
        })
    }

    /// With users of an issuer, and agents with tokens of the local key.
    async fn of_issuer(more: &str) -> Result<Self> {
        let installation = Installation::with_content().await?;
        let keys = printed(&["token", "keys"])?;
        let issuer = TokenKey::new()?;
        let jwks = issuer.jwks("one");
        let variables = format!(
            "AUTH_TYPE=oidc\nOIDC_ISSUER=https://issuer.example\nOIDC_AUDIENCE=installer\nOIDC_USERNAME_CLAIM=sub\n\
             ADMIN_USERS=root\nJWKS_CERT={jwks}\n{keys}{more}"
        );
        installation.change_settings(&variables).await?;
        let token = |name: &str| {
            let claims = json!({ "iss": "https://issuer.example", "aud": "installer", "exp": u32::MAX, "sub": name });
            issuer.sign_with_id("one", &claims)
        };
        Ok(Self {
            installation,
            http: client(None)?,
            token: token("alice")?,
            administrator: token("root")?,
            keys,
        })
    }

    async fn text(&self, method: Method, path: &str, body: Option<&Value>) -> Result<String> {
        Ok(self.send(method, path, body).await?.text().await?)
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

#[tokio::test]
async fn no_log_metric_or_error_has_a_secret_of_local_tokens() -> Result<()> {
    let site = SecuredInstallation::start_with(TALKATIVE).await?;
    secrets_are_hidden(site).await
}

#[tokio::test]
async fn no_log_metric_or_error_has_a_secret_of_an_issuers_users() -> Result<()> {
    let site = SecuredInstallation::of_issuer(TALKATIVE).await?;
    secrets_are_hidden(site).await
}

/// Secrets of the users and of the installation itself.
fn secrets_of(site: &SecuredInstallation) -> Result<KnownSecrets> {
    let mut secrets = KnownSecrets::default();
    secrets.add("the token of a user", &site.token)?;
    secrets.add("the token of an administrator", &site.administrator)?;
    let private = site
        .keys
        .lines()
        .find_map(|line| line.strip_prefix("EC_PRIVATE_KEY_PEM="));
    let private = private.context("no key")?.trim_matches(['"', '\'']);
    secrets.add("the signing key", private)?;
    let registry = site.installation.state()?.services.registry();
    secrets.add_pull_secret(&registry.pull_secret()?)?;
    for entry in std::fs::read_dir(site.installation.data().join("secrets"))? {
        let path = entry?.path();
        let is_password = path.to_string_lossy().contains("password");
        if is_password && path.is_file() {
            secrets.add(
                &path.display().to_string(),
                &std::fs::read_to_string(&path)?,
            )?;
        }
    }
    Ok(secrets)
}

/// The password of the installed cluster.
async fn kubeadmin_password(site: &SecuredInstallation) -> Result<String> {
    let clusters = site.send(Method::GET, "/clusters", None).await?;
    let clusters: Value = clusters.json().await?;
    let cluster = clusters[0]["id"].as_str().context("no cluster")?;
    let path = format!("/clusters/{cluster}/credentials");
    let credentials: Value = site.send(Method::GET, &path, None).await?.json().await?;
    let password = credentials["password"].as_str();
    Ok(password
        .with_context(|| credentials.to_string())?
        .to_owned())
}

/// Walks the journey of an installation and refused requests with every secret in a wrong place, and looks for each.
async fn secrets_are_hidden(mut site: SecuredInstallation) -> Result<()> {
    const BMC_PASSWORD: &str = "correct-horse-battery";
    journey_with(&site.installation, &site.token).await?;
    let mut secrets = secrets_of(&site)?;
    let password = kubeadmin_password(&site).await?;
    secrets.add("the password of kubeadmin", &password)?;
    site.token.clone_from(&site.administrator);
    let registry = site.installation.state()?.services.registry();
    let infra_envs = site.send(Method::GET, "/infra-envs", None).await?;
    let infra_envs: Value = infra_envs.json().await?;
    let infra_env = infra_envs[0]["id"].as_str().context("no infra-env")?;
    let url = infra_envs[0]["download_url"].as_str().context("no URL")?;
    let place = ["/byapikey/", "/bytoken/"]
        .into_iter()
        .find(|place| url.contains(place));
    let (_, rest) = url
        .split_once(place.context("no token")?)
        .context("no token")?;
    let image_token = rest.split('/').next().context("no token")?;
    secrets.add("the token of an image", image_token)?;
    let file = format!("/infra-envs/{infra_env}/downloads/files?file_name=discovery.ign");
    let ignition: Value = site.send(Method::GET, &file, None).await?.json().await?;
    let units = ignition["systemd"]["units"]
        .as_array()
        .context("no units")?;
    let texts = units.iter().filter_map(|unit| unit["contents"].as_str());
    let token = texts
        .flat_map(str::lines)
        .find_map(|line| line.strip_prefix("Environment=PULL_SECRET_TOKEN="));
    secrets.add(
        "the token of an agent",
        token.context("no token of agents")?,
    )?;
    secrets.add("the password of a BMC", BMC_PASSWORD)?;

    // Requests that fail, with a secret where it does not belong.
    let state = site.installation.state()?.services;
    let bmc = json!({ "bmcs": [{ "name": "a", "address": "https://127.0.0.1:1", "username": "root", "password": BMC_PASSWORD }] });
    let boots = format!("/infra-envs/{infra_env}/bmc-boot");
    for (method, path, body) in [
        (Method::POST, boots.as_str(), Some(&bmc)),
        (Method::GET, "/clusters?owner=nobody", None),
        (Method::GET, "/doctor", None),
        (Method::GET, "/audit", None),
        (
            Method::POST,
            "/infra-envs",
            Some(&json!({ "name": "x", "pull_secret": format!("{}x", registry.pull_secret()?) })),
        ),
    ] {
        secrets.answered(path, site.text(method, path, body).await?);
    }
    until("the boot has failed", LIMIT, async || {
        let list: Value = site.send(Method::GET, &boots, None).await?.json().await?;
        Ok((list["hosts"][0]["state"] == "failed").then_some(()))
    })
    .await?;
    secrets.answered(&boots, site.text(Method::GET, &boots, None).await?);
    let images = state.image_service_url;
    for url in [
        altered(url).unwrap_or_else(|_| url.replace("4.", "9.")),
        url.replace(".iso", ".x"),
        format!("{images}/images/{infra_env}?api_key={image_token}x&version=0"),
        format!("{images}/images/{infra_env}?image_token={image_token}&version=0&type=x"),
        format!(
            "{}{API}/infra-envs/{infra_env}?image_token={}",
            state.api_url, site.token
        ),
    ] {
        let answer = site.http.get(&url).send().await?;
        ensure!(!answer.status().is_success(), "{}", answer.status());
        secrets.answered("a refused request", answer.text().await?);
    }
    secrets.are_hidden(&site.installation).await?;
    site.installation.stop().await
}
