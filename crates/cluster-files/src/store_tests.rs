use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::make_folder;

async fn store() -> (tempfile::TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path().join("data")).await.unwrap();
    (folder, store)
}

fn cluster() -> ClusterId {
    ClusterId(Uuid::from_u128(7))
}

#[tokio::test]
async fn put_replaces_content_and_length() {
    let (_folder, store) = store().await;
    store.put(cluster(), "kubeconfig", "one").await.unwrap();
    store.put(cluster(), "kubeconfig", "second").await.unwrap();
    let object = store.get(cluster(), "kubeconfig").await.unwrap();
    assert_eq!(object.length, 6);
    assert_eq!(object.bytes().await.unwrap(), b"second");
}

#[tokio::test]
async fn objects_are_private_and_temporary_files_removed() {
    let (_folder, store) = store().await;
    store.put(cluster(), "a/b", "x").await.unwrap();
    let path = store.folder(cluster()).join("a");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join("b")), 0o600);
    assert_eq!(fs::read_dir(path).unwrap().count(), 1);
}

#[tokio::test]
async fn absent_objects_are_not_found() {
    let (_folder, store) = store().await;
    store
        .put(cluster(), "manifests/openshift/a.yaml", "x")
        .await
        .unwrap();
    for name in [
        "kubeconfig",
        "manifests",
        "manifests/openshift/a.yaml/deeper",
    ] {
        let answer = store.get(cluster(), name).await;
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{name}");
    }
    assert!(!store.delete(cluster(), "kubeconfig").await.unwrap());
}

#[tokio::test]
async fn traversal_is_refused() {
    let (_folder, store) = store().await;
    let answer = store.put(cluster(), "../other/kubeconfig", "x").await;
    assert!(matches!(answer, Err(Error::Invalid { .. })));
}

#[tokio::test]
async fn reset_keeps_user_manifests_and_logs() {
    let (_folder, store) = store().await;
    for name in [
        "kubeconfig",
        "generated/openshift/b.yaml",
        "manifests/openshift/a.yaml",
        "logs/controller/logs.tar.gz",
    ] {
        store.put(cluster(), name, "x").await.unwrap();
    }
    store
        .delete_cluster_except(cluster(), crate::KEPT_BY_RESET)
        .await
        .unwrap();
    let left: Vec<String> = store
        .list(cluster(), "")
        .await
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        left,
        ["logs/controller/logs.tar.gz", "manifests/openshift/a.yaml"]
    );
    store.delete_cluster(cluster()).await.unwrap();
    assert!(store.list(cluster(), "").await.unwrap().is_empty());
}

#[tokio::test]
async fn uploads_above_the_limit_are_refused() {
    let (_folder, store) = store().await;
    let name = "logs/controller/logs.tar.gz";
    let answer = store
        .put_stream(cluster(), name, &b"12345"[..], 4)
        .await
        .unwrap_err();
    assert!(matches!(answer, Error::TooLarge { limit: 4, .. }));
    assert!(store.list(cluster(), "").await.unwrap().is_empty());
    let length = store
        .put_stream(cluster(), name, &b"1234"[..], 4)
        .await
        .unwrap();
    assert_eq!(length, 4);
    assert!(store.contains(cluster(), name).await.unwrap());
}

#[tokio::test]
async fn errors_name_the_work_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = FileStore::open(file.join("data")).await.unwrap_err();
    assert!(error.to_string().contains("file/data"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_put_delete_and_start_at_the_same_time() {
    let (_folder, store) = store().await;
    for round in 0..50 {
        let name = "manifests/openshift/a.yaml";
        let put = store.put(cluster(), name, "x");
        let streamed = store.put_stream(cluster(), "logs/all.tar.gz", &b"1234"[..], 4);
        let outcomes = tokio::join!(
            put,
            streamed,
            store.delete_cluster(cluster()),
            store.delete(cluster(), name),
            store.delete_cluster_except(cluster(), &[]),
            store.list(cluster(), ""),
            FileStore::open(store.root()),
        );
        outcomes.0.unwrap();
        match outcomes.1 {
            Ok(4) | Err(Error::NotFound { .. }) => {}
            other => panic!("{other:?} in round {round}"),
        }
        outcomes.2.unwrap();
        outcomes.3.unwrap();
        outcomes.4.unwrap();
        outcomes.5.unwrap();
        outcomes.6.unwrap();
    }
    store.delete_cluster(cluster()).await.unwrap();
    assert_eq!(fs::read_dir(store.root()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stale_files_are_swept_by_concurrent_starts() {
    let (_folder, store) = store().await;
    let long_ago = SystemTime::UNIX_EPOCH;
    for _ in 0..20 {
        store.put(cluster(), "a/kept", "x").await.unwrap();
        let deleted = store.root().join(".old-1");
        make_folder(&deleted.join("a")).unwrap();
        fs::write(deleted.join("a/b"), "x").unwrap();
        File::open(&deleted)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        for folder in [store.root().to_owned(), store.folder(cluster()).join("a")] {
            fs::write(folder.join(".new-young"), "x").unwrap();
            let old = File::create(folder.join(".new-old")).unwrap();
            old.set_modified(long_ago).unwrap();
        }
        let replicas: Vec<_> = (0..4)
            .map(|_| tokio::spawn(FileStore::open(store.root().to_owned())))
            .collect();
        for replica in replicas {
            replica.await.unwrap().unwrap();
        }
        for (folder, expected) in [
            (store.root().to_owned(), 2),
            (store.folder(cluster()).join("a"), 2),
        ] {
            let left: Vec<_> = fs::read_dir(folder).unwrap().map(Result::unwrap).collect();
            assert_eq!(left.len(), expected, "{left:?}");
        }
        store.delete_cluster(cluster()).await.unwrap();
    }
}

async fn store_within(cluster_bytes: u64, total_bytes: u64) -> (tempfile::TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    let limits = FileQuotas {
        cluster_bytes,
        total_bytes,
        ..FileQuotas::default()
    };
    let store = FileStore::open_within(folder.path().join("data"), limits);
    let store = store.await.unwrap();
    (folder, store)
}

fn refused(outcome: Result<u64, Error>, limit: u64) {
    match outcome.unwrap_err() {
        Error::TooLarge { limit: found, .. } => assert_eq!(found, limit),
        other => panic!("{other}"),
    }
}

// limit: files of a cluster
#[tokio::test]
async fn cluster_quota_is_enforced() {
    let (_folder, store) = store_within(10, u64::MAX).await;
    let put = |name, content: &'static [u8]| {
        let store = store.clone();
        async move { store.put_stream(cluster(), name, content, 100).await }
    };
    put("logs/1/logs.tar.gz", b"1234567").await.unwrap();
    put("logs/2/logs.tar.gz", b"123").await.unwrap();
    refused(put("logs/3/logs.tar.gz", b"1").await, 10);
    // Replaced objects do not count, and refused uploads leave no files.
    put("logs/1/logs.tar.gz", b"7654321").await.unwrap();
    let names = store.list(cluster(), "").await.unwrap();
    assert_eq!(names.len(), 2);
    let third = store.folder(cluster()).join("logs/3");
    assert_eq!(fs::read_dir(third).unwrap().count(), 0);
    let manifest = store.put_within(cluster(), "manifests/a.yaml", b"1".to_vec());
    assert!(matches!(manifest.await, Err(Error::TooLarge { .. })));
    store.delete(cluster(), "logs/2/logs.tar.gz").await.unwrap();
    let manifest = store.put_within(cluster(), "manifests/a.yaml", b"123".to_vec());
    manifest.await.unwrap();
}

// limit: files of all clusters
#[tokio::test]
async fn total_quota_is_enforced() {
    let (_folder, store) = store_within(u64::MAX, 10).await;
    let other = ClusterId(Uuid::from_u128(8));
    let name = "logs/1/logs.tar.gz";
    let content: &[u8] = b"12345";
    store
        .put_stream(cluster(), name, content, 100)
        .await
        .unwrap();
    store.put_stream(other, name, content, 100).await.unwrap();
    let one: &[u8] = b"1";
    refused(
        store
            .put_stream(other, "logs/2/logs.tar.gz", one, 100)
            .await,
        10,
    );
}

// share: files of all clusters
#[tokio::test]
async fn the_files_of_an_owner_leave_room_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let limits = FileQuotas {
        owner_bytes: 10,
        total_bytes: 100,
        ..FileQuotas::default()
    };
    let store = FileStore::open_within(folder.path().join("data"), limits);
    let store = store.await.unwrap();
    let ids = [7, 8, 9].map(|id| ClusterId(Uuid::from_u128(id)));
    let of_alice = |id| FileOwner::new(id, "alice".to_owned(), ids[..2].to_vec());
    let of_bob = FileOwner::new(ids[2], "bob".to_owned(), ids[2..].to_vec());
    let put = async |owner: FileOwner, name: &str, length: usize| {
        let content = vec![b'x'; length];
        store.put_stream(owner, name, &content[..], 100).await
    };
    put(of_alice(ids[0]), "logs/1/logs.tar.gz", 6)
        .await
        .unwrap();
    put(of_alice(ids[1]), "logs/1/logs.tar.gz", 4)
        .await
        .unwrap();
    refused(put(of_alice(ids[1]), "logs/2/logs.tar.gz", 1).await, 10);
    // Its own file, replaced.
    put(of_alice(ids[1]), "logs/1/logs.tar.gz", 4)
        .await
        .unwrap();
    put(of_bob, "logs/1/logs.tar.gz", 10).await.unwrap();
    // Without an owner, the whole is for all.
    let content = [b'x'; 20];
    let put = store.put_stream(ids[0], "logs/3/logs.tar.gz", &content[..], 100);
    put.await.unwrap();
}

#[tokio::test]
async fn concurrent_uploads_share_a_quota() {
    let (_folder, store) = store_within(10, u64::MAX).await;
    let (mut writer, reader) = tokio::io::duplex(64);
    let slow = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .put_stream(cluster(), "logs/1/logs.tar.gz", reader, 100)
                .await
        }
    });
    tokio::io::AsyncWriteExt::write_all(&mut writer, b"123456")
        .await
        .unwrap();
    while store.quota_in_progress() < 6 {
        tokio::task::yield_now().await;
    }
    let more: &[u8] = b"12345";
    refused(
        store
            .put_stream(cluster(), "logs/2/logs.tar.gz", more, 100)
            .await,
        10,
    );
    // A disconnected client's reservation is released.
    slow.abort();
    assert!(slow.await.unwrap_err().is_cancelled());
    assert_eq!(store.quota_in_progress(), 0);
    store
        .put_stream(cluster(), "logs/2/logs.tar.gz", more, 100)
        .await
        .unwrap();
}
