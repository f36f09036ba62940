//! Secrets of an installation that a test knows: in no log, no metric and no answer that refuses something.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use system_tests::{Installation, client};

/// Variables of a site whose logs and metrics say as much as they can.
pub(crate) const TALKATIVE: &str =
    "LOG_LEVEL=debug\nACCESS_LOG=true\nMETRICS_ON_PUBLIC_PORT=true\n";
/// Shorter texts are in other words by chance. Units: bytes.
const SHORTEST: usize = 8;

/// Secrets by name, and texts that must have none.
#[derive(Debug, Default)]
pub(crate) struct KnownSecrets {
    secrets: Vec<(String, String)>,
    texts: Vec<(String, String)>,
}

impl KnownSecrets {
    pub(crate) fn add(&mut self, name: &str, secret: &str) -> Result<()> {
        let secret = secret.trim();
        ensure!(
            secret.len() >= SHORTEST,
            "{name} is too short to be looked for"
        );
        self.secrets.push((name.to_owned(), secret.to_owned()));
        Ok(())
    }

    /// Adds the logins of a pull secret, and their passwords.
    pub(crate) fn add_pull_secret(&mut self, text: &str) -> Result<()> {
        let parsed: Value = serde_json::from_str(text)?;
        for (registry, entry) in parsed["auths"].as_object().context("no logins")? {
            let auth = entry["auth"].as_str().context("no login")?;
            let pair = String::from_utf8(STANDARD.decode(auth)?)?;
            let (_, password) = pair.split_once(':').context("no password")?;
            self.add(&format!("the login of {registry}"), auth)?;
            self.add(&format!("the password of {registry}"), password)?;
        }
        Ok(())
    }

    /// Adds an answer.
    pub(crate) fn answered(&mut self, place: &str, text: String) {
        self.texts.push((place.to_owned(), text));
    }

    /// Fails if a log, a metric or an answer has one of them.
    pub(crate) async fn are_hidden(mut self, installation: &Installation) -> Result<()> {
        self.texts.extend(logs(installation)?);
        self.texts.extend(metrics(installation).await?);
        let mut found = Vec::new();
        for (place, text) in &self.texts {
            for (name, secret) in &self.secrets {
                let lines = text.lines().filter(|line| line.contains(secret.as_str()));
                let shown = |line: &str| line.replace(secret.as_str(), "SECRET");
                found.extend(lines.map(|line| format!("{name} in {place}: {}", shown(line))));
            }
        }
        found.truncate(20);
        ensure!(found.is_empty(), "{}", found.join("\n"));
        Ok(())
    }
}

/// The logs of the supervisor and of all services.
fn logs(installation: &Installation) -> Result<Vec<(String, String)>> {
    let mut logs = vec![read(&installation.supervisor_log())?];
    for entry in fs::read_dir(installation.data().join("logs"))? {
        logs.push(read(&entry?.path())?);
    }
    for service in ["api-server", "image-service", "registry", "webui"] {
        let path = format!("{service}.log");
        let log = logs.iter().find(|(place, _)| place.ends_with(&path));
        let has_lines = log.is_some_and(|(_, text)| !text.is_empty());
        ensure!(has_lines, "there is no log of {service}");
    }
    Ok(logs)
}

fn read(path: &Path) -> Result<(String, String)> {
    let text =
        fs::read(path).with_context(|| format!("reading {}", PathBuf::from(path).display()))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok((path.display().to_string(), text))
}

async fn metrics(installation: &Installation) -> Result<Vec<(String, String)>> {
    let services = installation.state()?.services;
    let page = services.ui_url.context("there is no page")?;
    let http = client(None)?;
    let mut metrics = Vec::new();
    for url in [services.api_url, services.image_service_url, page] {
        let url = format!("{url}/metrics");
        let text = http
            .get(&url)
            .send()
            .await?
            .error_for_status()?
            .text()
            .await?;
        ensure!(text.contains("# TYPE"), "{url} has no metrics");
        metrics.push((url, text));
    }
    Ok(metrics)
}
