//! Fixture of interrupted mirroring runs: a source registry, and a folder for all files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use oci::{Manifest, media_type};
use serde_json::json;
use tempfile::TempDir;

use crate::content::{push_catalog, reference};
use crate::faulty::{Fault, Faulty, Rule};
use crate::server::Server;

pub(crate) const LAYERS: usize = 6;
/// Units: bytes.
const LAYER_BYTES: usize = 100_000;
/// Deadline of conditions.
const DEADLINE: Duration = Duration::from_mins(2);
/// Image with several layers.
pub(crate) const IMAGE: &str = "acme/large";

/// A registry with an image of several layers, and a catalog.
pub(crate) async fn source() -> Server {
    let server = Server::start().await;
    push_catalog(&server, 1).await;
    let (client, image) = (&server.client, reference(&server, &format!("{IMAGE}:v1")));
    let mut layers = Vec::new();
    for layer in 0..LAYERS {
        let bytes = format!("{layer}").repeat(LAYER_BYTES);
        let pushed = client.push_blob_bytes(&image, media_type::OCI_LAYER, bytes.into());
        layers.push(pushed.await.unwrap());
    }
    let config = Bytes::from_static(b"{}");
    let config = client
        .push_blob_bytes(&image, media_type::OCI_CONFIG, config)
        .await
        .unwrap();
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
    let manifest = Manifest::parse(manifest.to_string().into(), None).unwrap();
    client.push_manifest(&image, &manifest).await.unwrap();
    server
}

/// A registry that answers `answered` requests of a kind, and holds the next one.
pub(crate) async fn holding(
    server: &Server,
    method: &'static str,
    path: &str,
    answered: usize,
) -> Faulty {
    let rule = Rule {
        method,
        path: path.to_owned(),
        times: usize::MAX,
        fault: Fault::Held(answered),
    };
    Faulty::start(server, vec![rule]).await
}

/// A registry without faults, which counts requests.
pub(crate) async fn patient(server: &Server) -> Faulty {
    Faulty::start(server, Vec::new()).await
}

/// Number of requests of a kind.
pub(crate) fn asked(registry: &Faulty, method: &str, path: &str) -> usize {
    let requests = registry.requests(path);
    requests.iter().filter(|it| it.starts_with(method)).count()
}

/// Folder of all files.
pub(crate) struct Place(TempDir);

impl Place {
    /// Image set of the image; metadata in a folder.
    pub(crate) fn of_image(source: &Faulty) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let state = place.path("state").display().to_string();
        place.configure(source, &format!("{{local: {{path: {state}}}}}"), "");
        place
    }

    /// Image set of the image and the catalog; metadata at the source.
    pub(crate) fn of_catalog(source: &Faulty) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let image = format!("{}/own/state:v1", source.address);
        let operators = format!(
            "operators: [{{catalog: {}/acme/index:v1}}], ",
            source.address
        );
        place.configure(
            source,
            &format!("{{registry: {{imageURL: '{image}'}}}}"),
            &operators,
        );
        place
    }

    fn configure(&self, source: &Faulty, storage: &str, operators: &str) {
        let config = format!(
            "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v1alpha2\n\
             storageConfig: {storage}\n\
             mirror: {{{operators}additionalImages: [{{name: '{}/{IMAGE}:v1'}}]}}\n",
            source.address
        );
        fs::write(self.path("set.yaml"), config).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A run with its workspace here and one transfer at a time, so that blobs complete in order.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.arg("mirror").args(arguments);
        command.arg("--dir").arg(self.path("workspace"));
        command.args([
            "--max-per-registry",
            "1",
            "--source-use-http",
            "--dest-use-http",
        ]);
        command
    }

    pub(crate) fn pack(&self) -> Command {
        let config = self.path("set.yaml").display().to_string();
        let out = format!("file://{}", self.path("out").display());
        self.command(&["--config", &config, &out])
    }

    pub(crate) fn publish(&self, target: &Faulty) -> Command {
        self.publish_from(&self.path("out").display().to_string(), target)
    }

    /// From a folder or URL.
    pub(crate) fn publish_from(&self, archives: &str, target: &Faulty) -> Command {
        let target = format!("docker://{}/ns", target.address);
        self.command(&["--from", archives, &target])
    }

    pub(crate) fn archives(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("out")).into_iter().flatten();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| Path::new(name).extension().is_some_and(|it| it == "tar"))
            .collect()
    }

    /// Verifies the archives.
    pub(crate) async fn verify(&self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args(["mirror", "verify"]).arg(self.path("out"));
        succeeds(command).await;
    }
}

/// Starts a run and kills it once `is_held`.
pub(crate) async fn kill(mut command: Command, is_held: impl Fn() -> bool) {
    let mut run = quiet(&mut command).spawn().unwrap();
    wait(&mut run, is_held).await;
    run.kill().unwrap();
    run.wait().unwrap();
}

pub(crate) async fn wait(run: &mut Child, is_held: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_held() {
        assert!(
            run.try_wait().unwrap().is_none(),
            "the run exited by itself"
        );
        assert!(begin.elapsed() < DEADLINE, "timeout");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn quiet(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

/// Runs a command; this process serves the registries meanwhile.
pub(crate) async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

pub(crate) async fn succeeds(command: Command) {
    let output = output(command).await;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Standard error of a failed run.
pub(crate) async fn refused(command: Command) -> String {
    let output = output(command).await;
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}
