//! A disk with hardly any room: a real one, in memory.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use oci::Digest;
use reqwest::header::LOCATION;
use reqwest::{Method, Response, StatusCode};

use crate::operations::free_port;
use crate::server::{Server, eventually, header, is, manifest, refusal};

/// A registry on a disk of eight megabytes that nobody else sees.
struct Small {
    process: Child,
    base: String,
    talker: Server,
}

impl Drop for Small {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Small {
    async fn start(folder: &Path) -> Self {
        let port = free_port();
        let script = "mount -t tmpfs -o size=8m none \"$1\" && exec \"$2\"";
        let process = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                script,
                "sh",
            ])
            .args([folder, Path::new(env!("CARGO_BIN_EXE_registry"))])
            .env("REGISTRY_HTTP_ADDR", format!("127.0.0.1:{port}"))
            .env("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", folder)
            .env("REGISTRY_HEALTH_STORAGEDRIVER_INTERVAL", "50ms")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let talker = Server::plain().await;
        let base = format!("http://127.0.0.1:{port}");
        let small = Self {
            process,
            base,
            talker,
        };
        eventually(async || {
            let health = small.talker.http.get(format!("{}/health", small.base));
            health.send().await.is_ok()
        })
        .await;
        small
    }

    async fn send(&self, method: Method, path: &str, body: &[u8]) -> Response {
        let path = path.strip_prefix(&self.base).unwrap_or(path);
        let request = self.talker.request(method, &format!("{}{path}", self.base));
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

#[tokio::test]
async fn every_way_to_write_tells_that_there_is_no_room_and_reads_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let small = Small::start(folder.path()).await;
    let config = Digest::sha256(b"{}");
    assert_eq!(small.push(b"{}").await.status(), StatusCode::CREATED);
    let body = manifest(&config, &[]);
    let put = small.send(Method::PUT, "/v2/a/manifests/t", body.as_bytes());
    assert_eq!(put.await.status(), StatusCode::CREATED);
    let open = small.send(Method::POST, "/v2/a/blobs/uploads/", b"").await;
    let open = header(&open, &LOCATION);

    // An upload takes all the room, down to the last page.
    let mut full = None;
    for size in [1 << 20, 1 << 16, 1 << 12] {
        loop {
            let answer = small.send(Method::PATCH, &open, &vec![7; size]).await;
            if answer.status() != StatusCode::ACCEPTED {
                full = Some(refusal(answer).await);
                break;
            }
        }
    }
    assert_eq!(full.unwrap(), is(507, "UNKNOWN"));
    for n in 0..20_u8 {
        let content = vec![n; 10_000];
        let body = manifest(&config, &[]) + &" ".repeat(5000 + usize::from(n));
        let digest = Digest::sha256(&content);
        let (finish, tag) = (
            format!("{open}?digest={digest}"),
            format!("/v2/a/manifests/t{n}"),
        );
        let mount = format!("/v2/b{n}/blobs/uploads/?mount={config}&from=a");
        let answers = [
            small.push(&content).await,
            small.send(Method::POST, "/v2/c/blobs/uploads/", b"").await,
            small.send(Method::POST, &mount, b"").await,
            small.send(Method::PUT, &tag, body.as_bytes()).await,
            small.send(Method::PUT, &finish, &content).await,
        ];
        for answer in answers {
            let status = answer.status();
            // What is small may still find room.
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
    let gone = small.send(Method::DELETE, &open, b"").await;
    assert_eq!(gone.status(), StatusCode::NO_CONTENT);
    assert_eq!(small.push(&content).await.status(), StatusCode::CREATED);
    let put = small.send(Method::PUT, "/v2/a/manifests/last", body.as_bytes());
    assert_eq!(put.await.status(), StatusCode::CREATED);
    eventually(async || small.status("/ready").await == StatusCode::OK).await;
}
