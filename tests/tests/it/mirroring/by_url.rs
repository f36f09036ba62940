//! Archives in the static files of a site: published from their URL, by the commands of the page, by TLS of the site's
//! own authority; killed in the middle, and pulled by a client.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use oci::{Manifest, Reference, media_type};
use oci_client::{Client, ClientOptions};
use serde_json::{Value, json};
use system_tests::process::program;
use system_tests::{Scratch, client, free_ports, until};

use super::content::Content;
use super::{KillOnDrop, START_LIMIT};
use crate::registry_clients::{runs, skipped};

const DOMAIN: &str = "site.example";
/// Layers of the large image.
const LAYERS: u8 = 4;
/// Units: bytes.
const LAYER_BYTES: usize = 48 << 20;

#[tokio::test]
async fn archives_are_published_from_the_page_that_lists_them() -> Result<()> {
    let scratch = Scratch::new()?;
    let site = Site::start(scratch.path()).await?;
    site.push_large().await?;
    let content = Content::new(&site.source, scratch.path())?;
    content.push_catalog(2).await?;
    let set = format!(
        "apiVersion: mirror.openshift.io/v1alpha2\nkind: ImageSetConfiguration\n\
         storageConfig: {{local: {{path: state}}}}\nmirror:\n\
         \x20 operators: [{{catalog: '{0}/acme/index:v1'}}]\n\
         \x20 additionalImages: [{{name: '{0}/acme/large:v1'}}]\n",
        site.source
    );
    fs::write(site.path("set.yaml"), set)?;
    let out = "file://www/pub/archives";
    site.atoll(&["--config", "set.yaml", "--source-use-http", out])?;

    let url = format!("https://{}/pub/archives/", site.files);
    let page = client(Some(&site.path("certs/ca.crt")))?
        .get(&url)
        .send()
        .await?;
    let page = page.error_for_status()?.text().await?;
    let commands = page
        .split_once("<pre>")
        .and_then(|(_, rest)| rest.split_once("</pre>"));
    let (commands, _) = commands.with_context(|| format!("no commands: {page}"))?;
    let expected = format!(
        "atoll mirror verify {url}\natoll mirror --from {url} docker://REGISTRY:PORT/NAMESPACE"
    );
    ensure!(commands == expected, "{commands}");
    let described: Value = serde_json::from_str(&site.atoll(&["describe", &url])?)?;
    ensure!(described["pastMirror"]["sequence"] == 1, "{described}");
    let verified = site.atoll(&["verify", &url])?;
    ensure!(verified.contains("match their digests"), "{verified}");

    let target = format!("docker://{}/mirrored", site.target);
    let publish = ["--from", &url, &target];
    site.kill_while_publishing(&publish)?;
    site.atoll(&publish)?;
    site.atoll(&["verify", "--deep", &target])?;
    site.pull("mirrored/acme/large:v1")
}

/// A source, a proxy with static files, and a target; the last two with certificates of the site.
struct Site {
    folder: PathBuf,
    source: String,
    /// Address of the static files.
    files: String,
    target: String,
    _servers: Vec<KillOnDrop>,
}

impl Site {
    async fn start(folder: &Path) -> Result<Self> {
        let certs = Command::new(program("atoll")?)
            .args([
                "certs",
                "--domain",
                DOMAIN,
                "--dir",
                "certs",
                "--name",
                "127.0.0.1",
            ])
            .current_dir(folder)
            .output()?;
        let complaint = String::from_utf8_lossy(&certs.stderr);
        ensure!(certs.status.success(), "{complaint}");
        fs::create_dir_all(folder.join("www/pub"))?;
        let port = free_ports(5)?;
        let address = |number: u16| format!("127.0.0.1:{}", port + number);
        let path = |name: &str| folder.join(name).display().to_string();
        let source = serve(
            "registry",
            &[
                ("REGISTRY_HTTP_ADDR", address(0)),
                ("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", path("source")),
            ],
        )?;
        let bundle = path(&format!("certs/{DOMAIN}.pem"));
        let target = serve(
            "registry",
            &[
                ("REGISTRY_HTTP_ADDR", address(1)),
                ("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", path("target")),
                ("REGISTRY_HTTP_TLS_CERTIFICATE", bundle.clone()),
                ("REGISTRY_HTTP_TLS_KEY", bundle),
            ],
        )?;
        let proxy = serve(
            "proxy",
            &[
                ("LISTEN_ADDRESS", "127.0.0.1".to_owned()),
                ("FORWARDS", String::new()),
                ("NETWORK_DOMAIN", DOMAIN.to_owned()),
                ("PROXY_HTTP_PORT", (port + 2).to_string()),
                ("PROXY_HTTPS_PORT", (port + 3).to_string()),
                ("PROXY_STATUS_PORT", (port + 4).to_string()),
                ("CERTIFICATE_LIST", path("certs/crt-list.txt")),
                ("FILES_ROOT", path("www")),
            ],
        )?;
        let site = Self {
            folder: folder.to_owned(),
            source: address(0),
            files: address(3),
            target: address(1),
            _servers: vec![source, target, proxy],
        };
        let client = client(Some(&site.path("certs/ca.crt")))?;
        for url in [
            format!("http://{}/ready", site.source),
            format!("https://{}/ready", site.target),
            format!("https://{}/pub/", site.files),
        ] {
            until(&url, START_LIMIT, async || {
                let answer = client.get(&url).send().await;
                Ok(answer.ok().filter(|answer| answer.status().is_success()))
            })
            .await?;
        }
        Ok(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    async fn push_large(&self) -> Result<()> {
        let options = ClientOptions {
            plain_http: true,
            ..ClientOptions::default()
        };
        let client = Client::new(options)?;
        let image: Reference = format!("{}/acme/large:v1", self.source).parse()?;
        let mut layers = Vec::new();
        for number in 0..LAYERS {
            let bytes = vec![number; LAYER_BYTES];
            let pushed = client.push_blob_bytes(&image, media_type::OCI_LAYER, bytes.into());
            layers.push(pushed.await?);
        }
        let config = json!({"architecture": "amd64", "os": "linux"}).to_string();
        let pushed = client.push_blob_bytes(&image, media_type::OCI_CONFIG, config.into());
        let config = pushed.await?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "config": config, "layers": layers,
        });
        let manifest = Manifest::parse(manifest.to_string().into(), None)?;
        Ok(client.push_manifest(&image, &manifest).await?)
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(program("atoll")?);
        command.arg("mirror").args(arguments);
        command.arg("--ca").arg(self.path("certs/ca.crt"));
        command.current_dir(&self.folder);
        Ok(command)
    }

    /// Runs the mirroring tool; returns its output.
    fn atoll(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments)?.output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?}: {complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts a publication, and kills it when it reports its first progress.
    fn kill_while_publishing(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.command(arguments)?;
        command.args(["--progress", "json"]);
        let mut run: Child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(run.stderr.take().context("no standard error")?).lines();
        for line in lines {
            let line = line?;
            let progress: Value = serde_json::from_str(&line).unwrap_or_default();
            if progress["phase"] == "publishing" {
                run.kill()?;
                run.wait()?;
                return Ok(());
            }
        }
        // It was faster than its first report.
        ensure!(run.wait()?.success(), "the publication failed");
        Ok(())
    }

    /// Pulls an image of the target by a container tool.
    fn pull(&self, image: &str) -> Result<()> {
        if !runs("skopeo", &["--version"]) {
            skipped("skopeo");
            return Ok(());
        }
        let from = format!("docker://{}/{image}", self.target);
        let output = Command::new("skopeo")
            .args(["--insecure-policy", "copy", &from, "dir:pulled"])
            .current_dir(&self.folder)
            .env("SSL_CERT_FILE", self.path("certs/ca.crt"))
            .output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "skopeo: {complaint}");
        Ok(())
    }
}

fn serve(service: &str, settings: &[(&str, String)]) -> Result<KillOnDrop> {
    let server = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program("atoll")?)
        .args(["serve", service])
        .envs(settings.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("running setpriv, which is of util-linux")?;
    Ok(KillOnDrop(server))
}
