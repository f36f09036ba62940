//! The mirroring tool between registries of another project: from one into archives, into another, which serves
//! clusters and container tools by the tool's results.

mod by_jobs;
mod by_url;
mod content;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use system_tests::process::program;
use system_tests::{Distribution, Scratch, client, free_ports, until};

use self::content::Content;
use crate::registry_clients::{runs, skipped};

/// Units: bytes. Limit by `archiveSize: 1`.
const ARCHIVE_BYTES: u64 = 1 << 30;
/// Units: bytes. Upper bound of the new content of the second run.
const NEWS_BYTES: u64 = 10 << 20;
const START_LIMIT: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_catalog_is_mirrored_by_archives_and_a_second_run_is_differential() -> Result<()> {
    let Some(registry) = Distribution::program() else {
        skipped("docker-registry");
        return Ok(());
    };
    let scratch = Scratch::new()?;
    let folder = scratch.path();
    let source = Distribution::start(&registry, &folder.join("source")).await?;
    let target = Distribution::start(&registry, &folder.join("target")).await?;
    let content = Content::new(source.address(), source.folder())?;
    content.push_large()?;
    content.push_catalog(2).await?;
    let place = MirrorEnvironment::new(folder, &source, &target)?;

    let first = place.pack("first")?;
    ensure!(first.len() == 2, "more than a file holds: {first:?}");
    let described = place.described("first")?;
    ensure!(described["pastMirror"]["sequence"] == 1, "{described}");
    place.atoll(&["verify", "first"])?;
    place.publish("first")?;
    place.atoll(&["verify", "--deep", &place.target])?;
    ensure!(place.served().await? == ["one.v1.1.0", "two.v1.1.0"].map(str::to_owned).into());

    content.push_catalog(3).await?;
    let second = place.pack("second")?;
    let bytes: u64 = second.iter().map(|(_, size)| size).sum();
    ensure!(second.len() == 1 && bytes < NEWS_BYTES, "{second:?}");
    let described = place.described("second")?;
    let carried = described["pastMirror"]["associations"].as_array();
    let carried = carried.context("no images")?.iter();
    let paths: BTreeSet<_> = carried.filter_map(|it| it["path"].as_str()).collect();
    let new = ["acme/one", "acme/one-bundle", "acme/two", "acme/two-bundle"];
    ensure!(paths == new.into(), "{paths:?}");
    place.publish("second")?;
    place.atoll(&["verify", &place.target])?;
    let all = ["one.v1.1.0", "one.v1.2.0", "two.v1.1.0", "two.v1.2.0"];
    ensure!(place.served().await? == all.map(str::to_owned).into());

    let image = content.pinned("acme/two:v1.2.0").await?;
    // From here on, only the mirror has it.
    drop(source);
    place.pulled(&image)
}

/// The working environment of runs.
struct MirrorEnvironment {
    folder: PathBuf,
    /// The registry and its namespace.
    target: String,
    registry: String,
}

impl MirrorEnvironment {
    fn new(folder: &Path, source: &Distribution, target: &Distribution) -> Result<Self> {
        let source = source.address();
        let config = format!(
            "apiVersion: mirror.openshift.io/v1alpha2\nkind: ImageSetConfiguration\narchiveSize: 1\n\
             storageConfig: {{local: {{path: state}}}}\n\
             mirror:\n  operators:\n  - catalog: {source}/acme/index:v1\n    packages: [{{name: one}}, {{name: two}}]\n\
             \x20 additionalImages: [{{name: '{source}/acme/large:v1'}}]\n"
        );
        fs::write(folder.join("set.yaml"), config)?;
        Ok(Self {
            folder: folder.to_owned(),
            target: format!("docker://{}/mirrored", target.address()),
            registry: target.address().to_owned(),
        })
    }

    /// Packs; returns the archives with their sizes.
    fn pack(&self, name: &str) -> Result<Vec<(PathBuf, u64)>> {
        let out = format!("file://{name}");
        self.atoll(&["--config", "set.yaml", &out])?;
        let mut files = Vec::new();
        for entry in fs::read_dir(self.folder.join(name))? {
            let entry = entry?;
            files.push((entry.path(), entry.metadata()?.len()));
        }
        files.sort();
        let is_fitting = |(_, size): &(PathBuf, u64)| *size <= ARCHIVE_BYTES;
        ensure!(files.iter().all(is_fitting), "{files:?}");
        Ok(files)
    }

    fn described(&self, name: &str) -> Result<Value> {
        let description = self.atoll(&["describe", name])?;
        Ok(serde_json::from_str(&description)?)
    }

    fn publish(&self, name: &str) -> Result<String> {
        self.atoll(&["--from", name, "--all-results", &self.target])
    }

    /// The bundles of the target's catalog, as our catalog server lists them for a cluster.
    async fn served(&self) -> Result<BTreeSet<String>> {
        let port = free_ports(1)?;
        let server = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program("atoll")?)
            .args(["serve", "catalog-server"])
            .env(
                "CATALOGS",
                format!("own={}/mirrored/acme/index:v1", self.registry),
            )
            .env("CATALOG_INSECURE", "true")
            .env("CATALOG_PORT", port.to_string())
            .env("LISTEN_ADDRESS", "127.0.0.1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("running setpriv, which is of util-linux")?;
        let _server = KillOnDrop(server);
        let (client, query) = (client(None)?, "schema=olm.bundle");
        let url = format!("http://127.0.0.1:{port}/catalogs/own/api/v1/metas?{query}");
        let documents = until("the catalog is served", START_LIMIT, async || {
            let answer = client.get(&url).send().await.ok();
            match answer.filter(|it| it.status().is_success()) {
                Some(answer) => Ok(Some(answer.text().await?)),
                None => Ok(None),
            }
        })
        .await?;
        let bundles = documents.lines().map(|line| {
            let bundle: Value = serde_json::from_str(line)?;
            Ok(bundle["name"].as_str().unwrap_or_default().to_owned())
        });
        bundles.collect()
    }

    /// Pulls an image with container tools by its source name, redirected by the results' settings.
    fn pulled(&self, image: &str) -> Result<()> {
        let mut results = Vec::new();
        for entry in fs::read_dir(self.folder.join("oc-mirror-workspace"))? {
            let path = entry?.path().join("registries.conf");
            results.extend(path.is_file().then_some(path));
        }
        results.sort();
        let settings = results.pop().context("no settings among the results")?;
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program)
                .args(arguments)
                .current_dir(&self.folder)
                .env("CONTAINERS_REGISTRIES_CONF", &settings)
                .output()
                .with_context(|| format!("running {program}"))?;
            let complaint = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{program}: {complaint}");
            Ok(())
        };
        if runs("skopeo", &["--version"]) {
            let (settings, from) = (settings.display(), format!("docker://{image}"));
            let settings = format!("--registries-conf={settings}");
            run(
                "skopeo",
                &["--insecure-policy", &settings, "copy", &from, "dir:pulled"],
            )?;
        } else {
            skipped("skopeo");
        }
        // With storage of its own, separate from the machine's.
        let path = |name: &str| self.folder.join(name).display().to_string();
        let (root, run_root) = (path("podman-root"), path("podman-run"));
        let own = [
            "--root",
            &root,
            "--runroot",
            &run_root,
            "--storage-driver",
            "vfs",
        ];
        if runs("podman", &[&own[..], &["info"]].concat()) {
            run("podman", &[&own[..], &["pull", "--quiet", image]].concat())?;
        } else {
            skipped("podman");
        }
        Ok(())
    }

    /// Runs the mirroring tool; returns its output.
    fn atoll(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(program("atoll")?)
            .arg("mirror")
            .args(arguments)
            .args(match arguments.first() {
                Some(&"describe") => &[][..],
                Some(&"verify") => &["--dest-use-http"],
                _ => &["--source-use-http", "--dest-use-http"],
            })
            .current_dir(&self.folder)
            .output()
            .context("running atoll")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?}: {complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A process that is killed on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
