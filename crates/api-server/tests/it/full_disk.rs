//! A full disk of WORK_DIR: a small tmpfs.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::json;

use crate::harness::Server;
use crate::installation::upload;

/// Size of the disk: smaller than the limit of an upload. Units: bytes.
const SIZE: usize = 4 << 20;

/// A tmpfs in the mount namespace of the child `holder`.
struct Disk {
    holder: Child,
    path: PathBuf,
}

impl Disk {
    async fn mount(folder: &Path) -> Self {
        let script = "mount -t tmpfs -o size=\"$2\" none \"$1\" && exec sleep 3600";
        let holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount"])
            .args(["sh", "-c", script, "sh"])
            .args([folder.as_os_str(), SIZE.to_string().as_ref()])
            .spawn()
            .unwrap();
        let process = PathBuf::from(format!("/proc/{}", holder.id()));
        let path = folder.to_str().unwrap();
        while !std::fs::read_to_string(process.join("mountinfo")).is_ok_and(|it| it.contains(path))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let path = process.join("root").join(path.trim_start_matches('/'));
        Self { holder, path }
    }

    /// Fills the disk, as another program would.
    fn fill(&self) {
        let mut file = File::create(self.path.join("filler")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    fn free_space(&self) {
        std::fs::remove_file(self.path.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_to_a_full_disk_are_refused_without_data_loss() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::mount(folder.path()).await;
    let work_dir = disk.path.join("work");
    let server = Server::with(|settings| settings.work_dir = work_dir.clone()).await;
    let (one, other) = (
        server.cluster(json!({})).await,
        server.cluster(json!({})).await,
    );
    let [one, other] =
        [one, other].map(|id| format!("/v2/clusters/{id}/logs?logs_type=controller"));
    upload(&server, &one, "upfile", "FIRST").await.expect(204);
    upload(&server, &other, "upfile", "OTHER").await.expect(204);

    disk.fill();
    let large = "x".repeat(100_000);
    for path in [&one, &other] {
        let refused = upload(&server, path, "upfile", &large).await;
        assert!(
            refused.text.contains("space on the disk of WORK_DIR"),
            "{}",
            refused.text
        );
        assert!(
            !refused.header("retry-after").is_empty(),
            "{:?}",
            refused.headers
        );
        refused.expect(503);
    }
    assert_eq!(server.get(&one).await.text, "FIRST");
    assert_eq!(server.get(&other).await.text, "OTHER");

    disk.free_space();
    upload(&server, &one, "upfile", &large).await.expect(204);
    assert_eq!(server.get(&one).await.text, large);
    assert_eq!(server.get(&other).await.text, "OTHER");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_uploads_release_their_space() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::mount(folder.path()).await;
    let work_dir = disk.path.join("work");
    let server = Server::with(|settings| settings.work_dir = work_dir.clone()).await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/logs?logs_type=controller");
    for _ in 0..2 {
        upload(&server, &path, "upfile", &"x".repeat(SIZE + 1))
            .await
            .expect(503);
        // The space of the partial upload is released.
        upload(&server, &path, "upfile", &"x".repeat(SIZE / 3))
            .await
            .expect(204);
    }
}
