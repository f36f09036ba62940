//! A disk with hardly any room: a real one, in memory.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use oci::Digest;
use reqwest::header::LOCATION;
use reqwest::{Method, Response, StatusCode};
use testkit::ports::free_port;

use crate::server::{Server, eventually, header, is, manifest, refusal};

/// A registry on a small disk of its own.
struct Small {
    /// Keeps the disk.
    holder: Child,
    folder: PathBuf,
    process: Child,
    base: String,
    talker: Server,
}

impl Drop for Small {
    fn drop(&mut self) {
        for process in [&mut self.process, &mut self.holder] {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

impl Small {
    async fn start(folder: &Path, size: &str) -> Self {
        let script = "mount -t tmpfs -o size=\"$2\" none \"$1\" && exec sleep 3600";
        let holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount"])
            .args(["sh", "-c", script, "sh"])
            .args([folder.as_os_str(), size.as_ref()])
            .spawn()
            .unwrap();
        let mounts = format!("/proc/{}/mountinfo", holder.id());
        let path = folder.to_str().unwrap().to_owned();
        eventually(async || {
            std::fs::read_to_string(&mounts).is_ok_and(|mounts| mounts.contains(&path))
        })
        .await;
        let talker = Server::plain().await;
        let mut small = Self {
            process: inside(&holder, "true").spawn().unwrap(),
            holder,
            folder: folder.to_owned(),
            base: String::new(),
            talker,
        };
        small.restart(&[]).await;
        small
    }

    /// Kills the registry and starts it again; it answers.
    async fn restart(&mut self, settings: &[(&str, &str)]) {
        self.process.kill().ok();
        self.process.wait().unwrap();
        let port = free_port().unwrap();
        self.process = inside(&self.holder, env!("CARGO_BIN_EXE_registry"))
            .env("REGISTRY_HTTP_ADDR", format!("127.0.0.1:{port}"))
            .env("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", &self.folder)
            .env("REGISTRY_HEALTH_STORAGEDRIVER_INTERVAL", "50ms")
            .env("REGISTRY_STORAGE_MAINTENANCE_GC_GRACE", "0s")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.base = format!("http://127.0.0.1:{port}");
        eventually(async || {
            let health = self.talker.http.get(format!("{}/health", self.base));
            health.send().await.is_ok()
        })
        .await;
    }

    /// A path on the disk, as others see it.
    fn seen(&self, below: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        let folder = self.folder.strip_prefix("/").unwrap();
        root.join(folder).join(below)
    }

    /// Another program takes all the room that there is.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.seen("filler")).unwrap();
        for size in [1 << 20, 1 << 12] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.seen("filler")).unwrap();
    }

    async fn is_ready(&self) -> bool {
        self.status("/ready").await == StatusCode::OK
    }

    /// An image with two blobs; the digest of its manifest.
    async fn push_image(&self, tag: &str, layer: &[u8]) -> Digest {
        let config = Digest::sha256(b"{}");
        assert_eq!(self.push(b"{}").await.status(), StatusCode::CREATED);
        assert_eq!(self.push(layer).await.status(), StatusCode::CREATED);
        let body = manifest(&config, &[(&Digest::sha256(layer), layer.len())]);
        let path = format!("/v2/a/manifests/{tag}");
        let put = self.send(Method::PUT, &path, body.as_bytes());
        assert_eq!(put.await.status(), StatusCode::CREATED);
        Digest::sha256(body.as_bytes())
    }

    async fn send(&self, method: Method, path: &str, body: &[u8]) -> Response {
        let path = path.strip_prefix(&self.base).unwrap_or(path);
        let request = self.talker.request(method, &format!("{}{path}", self.base));
        // A server that refuses a body without reading it ends the connection.
        let request = request.header(reqwest::header::CONNECTION, "close");
        request.body(body.to_vec()).send().await.unwrap()
    }

    /// A blob in one request.
    async fn push(&self, content: &[u8]) -> Response {
        let digest = Digest::sha256(content);
        let path = format!("/v2/a/blobs/uploads/?digest={digest}");
        self.send(Method::POST, &path, content).await
    }

    async fn status(&self, path: &str) -> StatusCode {
        self.send(Method::GET, path, b"").await.status()
    }
}

/// A program in the namespaces of `holder`.
fn inside(holder: &Child, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command
        .args(["--user", "--mount", "--preserve-credentials", "--target"])
        .arg(holder.id().to_string())
        .args(["--", program]);
    command
}

#[tokio::test]
async fn a_disk_that_was_full_for_a_moment_breaks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = Small::start(folder.path(), "24m").await;
    let layer = vec![5; 4 << 20];
    let gone = small.push_image("gone", &layer).await;
    let kept = small.push_image("kept", b"small").await;
    small.fill();
    eventually(async || !small.is_ready().await).await;
    let refused = refusal(small.push(&vec![6; 100_000]).await).await;
    assert_eq!(refused, is(507, "UNKNOWN"));
    // Requests that free space succeed, and reads do.
    let path = format!("/v2/a/manifests/{gone}");
    let deleted = small.send(Method::DELETE, &path, b"").await;
    assert_eq!(deleted.status(), StatusCode::ACCEPTED);
    let collected = small.send(Method::POST, "/v2/_atoll/gc", b"").await;
    assert_eq!(collected.status(), StatusCode::OK);
    collected.bytes().await.unwrap();
    let pushed = small.push(b"into the freed space").await;
    assert_eq!(pushed.status(), StatusCode::CREATED);
    assert_eq!(small.status(&path).await, StatusCode::NOT_FOUND);
    assert_eq!(small.status("/v2/a/manifests/kept").await, StatusCode::OK);
    let data = format!(
        "blobs/sha256/{}/{}",
        &Digest::sha256(&layer).hex()[..2],
        Digest::sha256(&layer).hex()
    );
    assert!(!small.seen("docker/registry/v2").join(data).exists());
    small.make_room();
    eventually(async || small.push(b"again").await.status() == StatusCode::CREATED).await;
    eventually(async || small.is_ready().await).await;

    // A restart while it is full.
    small.fill();
    small.restart(&[]).await;
    assert_eq!(
        small.status(&format!("/v2/a/manifests/{kept}")).await,
        StatusCode::OK
    );
    let deleted = small
        .send(Method::DELETE, &format!("/v2/a/manifests/{kept}"), b"")
        .await;
    assert_eq!(deleted.status(), StatusCode::ACCEPTED);
    small.make_room();
    eventually(async || small.push(b"and again").await.status() == StatusCode::CREATED).await;
}

#[tokio::test]
async fn a_folder_on_a_read_only_medium_is_served_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = Small::start(folder.path(), "8m").await;
    let kept = small.push_image("kept", b"small").await;
    small.process.kill().unwrap();
    small.process.wait().unwrap();
    // As distribution would have written it.
    std::fs::remove_dir_all(small.seen(".atoll")).unwrap();
    let remount = inside(&small.holder, "mount")
        .args(["-o", "remount,ro"])
        .arg(folder.path())
        .status();
    assert!(remount.unwrap().success());
    for settings in [
        &[][..],
        &[("REGISTRY_STORAGE_MAINTENANCE_READONLY_ENABLED", "true")],
    ] {
        small.restart(settings).await;
        assert_eq!(small.status("/v2/a/manifests/kept").await, StatusCode::OK);
        let blob = format!("/v2/a/blobs/{}", Digest::sha256(b"small"));
        let got = small.send(Method::GET, &blob, b"").await;
        assert_eq!(got.bytes().await.unwrap(), &b"small"[..]);
        assert_eq!(small.status("/v2/a/tags/list").await, StatusCode::OK);
        for (method, path) in [
            (Method::POST, "/v2/a/blobs/uploads/".to_owned()),
            (Method::DELETE, format!("/v2/a/manifests/{kept}")),
            (Method::PUT, "/v2/a/manifests/other".to_owned()),
        ] {
            let refused = refusal(small.send(method, &path, b"").await).await;
            assert_eq!(refused, is(405, "UNSUPPORTED"), "{path}");
        }
        eventually(async || small.is_ready().await).await;
        assert!(!small.seen(".atoll").exists());
    }
}

#[tokio::test]
async fn every_write_reports_a_full_disk_and_reads_continue() {
    let folder = tempfile::tempdir().unwrap();
    let small = Small::start(folder.path(), "8m").await;
    let config = Digest::sha256(b"{}");
    assert_eq!(small.push(b"{}").await.status(), StatusCode::CREATED);
    let body = manifest(&config, &[]);
    let put = small.send(Method::PUT, "/v2/a/manifests/t", body.as_bytes());
    assert_eq!(put.await.status(), StatusCode::CREATED);
    let open = small.send(Method::POST, "/v2/a/blobs/uploads/", b"").await;
    let open = header(&open, &LOCATION);

    // An upload takes all the room, down to the last page.
    let full = loop {
        let answer = small.send(Method::PATCH, &open, &vec![7; 1 << 20]).await;
        if answer.status() != StatusCode::ACCEPTED {
            break refusal(answer).await;
        }
    };
    assert_eq!(full, is(507, "UNKNOWN"));
    // Its bytes are the space that the others need: it is dropped, and its client starts again.
    assert_eq!(
        small.send(Method::GET, &open, b"").await.status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(small.push(&[1; 10_000]).await.status(), StatusCode::CREATED);
    small.fill();
    for n in 0..20_u8 {
        let content = vec![n; 10_000];
        let body = manifest(&config, &[]) + &" ".repeat(5000 + usize::from(n));
        let tag = format!("/v2/a/manifests/t{n}");
        let mount = format!("/v2/b{n}/blobs/uploads/?mount={config}&from=a");
        let answers = [
            small.push(&content).await,
            small.send(Method::POST, "/v2/c/blobs/uploads/", b"").await,
            small.send(Method::POST, &mount, b"").await,
            small.send(Method::PUT, &tag, body.as_bytes()).await,
        ];
        for answer in answers {
            let status = answer.status();
            // Small content may still fit.
            let is_done = status == StatusCode::CREATED || status == StatusCode::ACCEPTED;
            if !is_done {
                assert_eq!(refusal(answer).await, is(507, "UNKNOWN"));
            }
        }
    }
    let content = vec![99; 10_000];
    assert_eq!(
        refusal(small.push(&content).await).await,
        is(507, "UNKNOWN")
    );
    let got = small.send(Method::GET, "/v2/a/manifests/t", b"").await;
    assert_eq!(got.text().await.unwrap(), body);
    assert_eq!(
        small.status(&format!("/v2/a/blobs/{config}")).await,
        StatusCode::OK
    );
    assert_eq!(small.status("/v2/a/tags/list").await, StatusCode::OK);
    eventually(async || small.status("/ready").await == StatusCode::SERVICE_UNAVAILABLE).await;

    // Once there is room, all is well again.
    small.make_room();
    eventually(async || small.push(&content).await.status() == StatusCode::CREATED).await;
    let put = small.send(Method::PUT, "/v2/a/manifests/last", body.as_bytes());
    assert_eq!(put.await.status(), StatusCode::CREATED);
    eventually(async || small.status("/ready").await == StatusCode::OK).await;
}
