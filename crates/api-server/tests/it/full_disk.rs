//! A full disk of WORK_DIR: a small tmpfs.

use serde_json::json;
use testkit::small_disk::SmallDisk;

use crate::harness::Server;
use crate::installation::upload;

/// Size of the disk: smaller than the limit of an upload. Units: bytes.
const SIZE: usize = 4 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn uploads_to_a_full_disk_are_refused_without_data_loss() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path(), SIZE).await;
    let work_dir = disk.path().join("work");
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
    let disk = SmallDisk::mount(folder.path(), SIZE).await;
    let work_dir = disk.path().join("work");
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
