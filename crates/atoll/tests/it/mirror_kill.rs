//! `atoll mirror`, ended at any time: by a signal, a full disk, or since another one works there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use oci::{Manifest, Reference, media_type};
use serde_json::json;
use tempfile::TempDir;

use crate::faulty::{Fault, Faulty, Rule};
use crate::server::Server;

const LAYERS: usize = 6;
/// Units: bytes.
const LAYER_BYTES: usize = 100_000;
/// What is not reached by then is never reached.
const DEADLINE: Duration = Duration::from_mins(2);

/// Gives a registry an image of several layers.
pub(crate) async fn push(server: &Server) {
    let (client, image) = (&server.client, image(&server.address, "acme/tool:v1"));
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
}

fn image(address: &str, name: &str) -> Reference {
    format!("{address}/{name}").parse().unwrap()
}

/// A registry that answers so many requests of a kind, and leaves the next one waiting.
async fn holding(server: &Server, method: &'static str, path: &str, answered: usize) -> Faulty {
    let rule = Rule {
        method,
        path: path.to_owned(),
        times: usize::MAX,
        fault: Fault::Held(answered),
    };
    Faulty::start(server, vec![rule]).await
}

/// A folder for everything.
struct Place(TempDir);

impl Place {
    fn new(source: &Faulty) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let config = format!(
            "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v1alpha2\n\
             storageConfig: {{local: {{path: {}}}}}\n\
             mirror: {{additionalImages: [{{name: {}/acme/tool:v1}}]}}\n",
            place.path("state").display(),
            source.address
        );
        fs::write(place.path("set.yaml"), config).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A run with a workspace here; one blob is on its way at a time, so that all before it are done.
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

    fn pack(&self) -> Command {
        let config = self.path("set.yaml").display().to_string();
        let out = format!("file://{}", self.path("out").display());
        self.command(&["--config", &config, &out])
    }

    fn publish(&self, target: &Faulty) -> Command {
        let out = self.path("out").display().to_string();
        let target = format!("docker://{}/ns", target.address);
        self.command(&["--from", &out, &target])
    }

    fn archives(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("out")).into_iter().flatten();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| Path::new(name).extension().is_some_and(|it| it == "tar"))
            .collect()
    }
}

/// Starts a run, and kills it as soon as `is_held`.
async fn kill(mut command: Command, is_held: impl Fn() -> bool) {
    let mut run = quiet(&mut command).spawn().unwrap();
    wait(&mut run, is_held).await;
    run.kill().unwrap();
    run.wait().unwrap();
}

async fn wait(run: &mut Child, is_held: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_held() {
        assert!(run.try_wait().unwrap().is_none(), "it ended by itself");
        assert!(begin.elapsed() < DEADLINE, "it never came so far");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

/// Does it; the registries are served by this process meanwhile.
async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

async fn succeeds(command: Command) {
    let output = output(command).await;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What was asked for more than once.
fn repeated(requests: &[String]) -> usize {
    requests.len() - requests.iter().collect::<BTreeSet<_>>().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn packing_goes_on_where_it_was_killed() {
    let server = Server::start().await;
    push(&server).await;
    for (path, answered) in [
        ("/manifests/", 0),
        ("/tags/list", 0),
        ("/blobs/", 0),
        ("/blobs/", 3),
    ] {
        let source = holding(&server, "GET", path, answered).await;
        let place = Place::new(&source);
        kill(place.pack(), || source.requests(path).len() > answered).await;
        assert_eq!(place.archives(), Vec::<String>::new(), "{path} {answered}");
        assert!(!place.path("state/publish/.metadata.json").exists());
        source.release();
        succeeds(place.pack()).await;
        assert_eq!(
            place.archives(),
            ["mirror_seq1_000000.tar"],
            "{path} {answered}"
        );
        // The one that was on its way, at most.
        let blobs = source.requests("/blobs/");
        assert!(repeated(&blobs) <= 1, "{path} {answered}: {blobs:?}");
        verify(&place.path("out")).await;
    }
}

async fn verify(archives: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(["mirror", "verify"]).arg(archives);
    succeeds(command).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_goes_on_where_it_was_killed() {
    let server = Server::start().await;
    push(&server).await;
    let source = holding(&server, "GET", "/none/", 0).await;
    let packed = Place::new(&source);
    succeeds(packed.pack()).await;
    let stages = [
        ("POST", "/blobs/uploads/", 0),
        ("PUT", "/blobs/uploads/", 3),
        ("PUT", "ns/acme/tool/manifests/", 0),
        ("PUT", "ns/oc-mirror/manifests/", 0),
    ];
    for (method, path, answered) in stages {
        let target = Server::start().await;
        let held = holding(&target, method, path, answered).await;
        let asked = || {
            held.requests(path)
                .iter()
                .filter(|it| it.starts_with(method))
                .count()
        };
        kill(packed.publish(&held), || asked() > answered).await;
        let image = image(&target.address, "ns/acme/tool:v1");
        let is_there = target
            .client
            .manifest_digest(&image)
            .await
            .unwrap()
            .is_some();
        assert_eq!(is_there, path.contains("oc-mirror"), "{method} {path}");
        let uid = "ns/oc-mirror".parse().unwrap();
        let metadata = target.client.tags(&target.address, &uid).await;
        assert!(
            metadata.is_err(),
            "{method} {path}: nothing is remembered yet"
        );
        let before = uploads(&held);
        held.release();
        succeeds(packed.publish(&held)).await;
        assert!(
            target
                .client
                .manifest_digest(&image)
                .await
                .unwrap()
                .is_some()
        );
        let tags = target.client.tags(&target.address, &uid).await.unwrap();
        assert_eq!(tags.len(), 1, "{method} {path}");
        // All that had come before stays: layers and configuration of the image, and two blobs of the metadata.
        let finished = before - usize::from(path.contains("uploads") && method == "PUT");
        assert!(
            uploads(&held) - before <= LAYERS + 3 - finished.min(LAYERS + 1),
            "{method} {path}"
        );
    }
}

/// How many blobs were sent.
fn uploads(target: &Faulty) -> usize {
    let requests = target.requests("/blobs/uploads/");
    requests.iter().filter(|it| it.starts_with("PUT")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_for_one_run() {
    let server = Server::start().await;
    push(&server).await;
    let source = holding(&server, "GET", "/blobs/", 0).await;
    let place = Place::new(&source);
    let mut first = quiet(&mut place.pack()).spawn().unwrap();
    wait(&mut first, || !source.requests("/blobs/").is_empty()).await;
    let second = output(place.pack()).await;
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(told.contains("another run works in"), "{told}");
    assert!(told.contains("workspace"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_told_and_goes_on_with_more_room() {
    let server = Server::start().await;
    push(&server).await;
    let source = holding(&server, "GET", "/none/", 0).await;
    let place = Place::new(&source);
    // Files may not grow beyond that, and whoever tries it gets an error: as near to a full disk as everybody may go.
    let pack = place.pack();
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "sh"]);
    limited.arg(pack.get_program()).args(pack.get_args());
    let refused = output(limited).await;
    assert_eq!(refused.status.code(), Some(1));
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains("not possible there"), "{told}");
    assert_eq!(place.archives(), Vec::<String>::new());
    succeeds(place.pack()).await;
    assert_eq!(place.archives(), ["mirror_seq1_000000.tar"]);
    verify(&place.path("out")).await;
}
