//! Archives in the folder of a site: listed, verified and published by the installer API, whose server is killed in the
//! middle.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use system_tests::process::program;
use system_tests::{ApiClient, Distribution, Installation, until};

use super::content::Content;
use crate::registry_clients::skipped;

const JOB_LIMIT: Duration = Duration::from_mins(3);

#[tokio::test]
async fn archives_of_a_folder_are_published_although_the_server_is_killed() -> Result<()> {
    let Some(registry) = Distribution::program() else {
        skipped("docker-registry");
        return Ok(());
    };
    let installation = Installation::start().await?;
    let source = Distribution::start(&registry, &installation.folder("source")?).await?;
    let site = Site {
        content: Content::new(source.address(), source.folder())?,
        source: source.address().to_owned(),
        folder: installation.folder("outside")?,
        api: installation.api()?,
        installation,
    };
    for sequence in 1..=3 {
        site.pack(sequence).await?;
    }
    // The stick with the second one is still on its way.
    site.carry(1)?;
    site.carry(3)?;
    ensure!(site.steps().await? == [(1, "next"), (3, "out-of-order")].map(owned));

    let verified = site.ended("verify-archives", 1).await?;
    ensure!(verified["state"] == "succeeded", "{verified}");
    ensure!(verified["verification"]["fault_count"] == 0, "{verified}");
    let refused = site.ended("publish-archives", 3).await?;
    ensure!(refused["state"] == "failed", "{refused}");
    let reason = refused["reason"].as_str().unwrap_or_default();
    ensure!(
        reason.contains("publish the archives of sequences 1 to 2 first"),
        "{reason}"
    );

    let job = site.start("publish-archives", 1).await?;
    let old = site.installation.kill("api-server")?;
    site.installation.is_back("api-server", old).await?;
    let published = site.end(&job).await?;
    ensure!(published["state"] == "succeeded", "{published}");
    site.check_files(&published).await?;
    ensure!(site.steps().await? == [(1, "published"), (3, "out-of-order")].map(owned));

    site.carry(2)?;
    for sequence in [2, 3] {
        let published = site.ended("publish-archives", sequence).await?;
        ensure!(published["state"] == "succeeded", "{published}");
        ensure!(
            published["publication"]["images"].as_u64() > Some(0),
            "{published}"
        );
    }
    let again = site.ended("publish-archives", 3).await?;
    ensure!(again["publication"]["is_unchanged"] == true, "{again}");
    let steps = [(1, "out-of-order"), (2, "out-of-order"), (3, "published")];
    ensure!(site.steps().await? == steps.map(owned));
    site.installation.stop().await
}

fn owned((sequence, step): (u64, &str)) -> (u64, String) {
    (sequence, step.to_owned())
}

struct Site {
    installation: Installation,
    api: ApiClient,
    content: Content,
    source: String,
    /// Folder of the connected side.
    folder: PathBuf,
}

impl Site {
    /// Packs the content of another version.
    async fn pack(&self, sequence: usize) -> Result<()> {
        self.content.push_catalog(sequence).await?;
        let set = format!(
            "apiVersion: mirror.openshift.io/v1alpha2\nkind: ImageSetConfiguration\n\
             storageConfig: {{local: {{path: state}}}}\n\
             mirror:\n  operators:\n  - catalog: {}/acme/index:v1\n    packages: [{{name: one}}]\n",
            self.source
        );
        fs::write(self.folder.join("set.yaml"), set)?;
        let out = format!("file://{sequence}");
        let output = Command::new(program("atoll")?)
            .args(["mirror", "--source-use-http", "--config", "set.yaml", &out])
            .current_dir(&self.folder)
            .output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{complaint}");
        Ok(())
    }

    /// Copies an archive into the folder of the site.
    fn carry(&self, sequence: usize) -> Result<()> {
        let name = format!("mirror_seq{sequence}_000000.tar");
        let from = self.folder.join(sequence.to_string()).join(&name);
        fs::copy(from, self.installation.data().join("archives").join(name))?;
        Ok(())
    }

    /// Sequences and steps of the sets, as the server lists them.
    async fn steps(&self) -> Result<Vec<(u64, String)>> {
        let list = self.api.get("/v2/archives").await?;
        let sets = list["sets"].as_array().context("no sets")?.iter();
        let step = |set: &Value| {
            let step = set["step"].as_str().unwrap_or_default();
            (
                set["sequence"].as_u64().unwrap_or_default(),
                step.to_owned(),
            )
        };
        let mut steps: Vec<_> = sets.map(step).collect();
        steps.sort();
        Ok(steps)
    }

    async fn start(&self, kind: &str, sequence: usize) -> Result<Value> {
        let archives = format!("mirror_seq{sequence}_000000.tar");
        let params = json!({ "kind": kind, "archives": archives });
        self.api.succeed(Method::POST, "/v2/jobs", &params).await
    }

    /// Waits for the end of a job.
    async fn end(&self, job: &Value) -> Result<Value> {
        let path = format!("/v2/jobs/{}", job["id"].as_str().context("no id")?);
        until("the job ends", JOB_LIMIT, async || {
            let job = self.api.get(&path).await?;
            let has_ended = !matches!(job["state"].as_str(), Some("queued" | "running"));
            Ok(has_ended.then_some(job))
        })
        .await
    }

    async fn ended(&self, kind: &str, sequence: usize) -> Result<Value> {
        let job = self.start(kind, sequence).await?;
        self.end(&job).await
    }

    /// The manifests for clusters name the site's registry.
    async fn check_files(&self, job: &Value) -> Result<()> {
        let files = job["publication"]["files"].as_array().context("no files")?;
        let names: Vec<_> = files.iter().filter_map(|it| it["name"].as_str()).collect();
        let source = names.iter().find(|name| name.starts_with("catalogSource"));
        let source = source.with_context(|| format!("no catalog source: {names:?}"))?;
        let id = job["id"].as_str().context("no id")?;
        let path = format!("/v2/jobs/{id}/downloads/files?file_name={source}");
        let text = self.api.ask(Method::GET, &path, None).await?.text();
        let registry = self.installation.state()?.services.registry;
        ensure!(
            text.contains(&format!("image: {registry}/acme/index:v1")),
            "{text}"
        );
        Ok(())
    }
}
