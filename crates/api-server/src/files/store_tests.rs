use std::os::unix::fs::PermissionsExt;

use super::*;

async fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("data")).await.unwrap();
    (folder, store)
}

fn cluster() -> ClusterId {
    ClusterId(Uuid::from_u128(7))
}

#[tokio::test]
async fn what_was_put_is_read_with_its_length() {
    let (_folder, store) = store().await;
    store.put(cluster(), "kubeconfig", "one").await.unwrap();
    store.put(cluster(), "kubeconfig", "second").await.unwrap();
    let object = store.get(cluster(), "kubeconfig").await.unwrap();
    assert_eq!(object.length, 6);
    assert_eq!(object.bytes().await.unwrap(), b"second");
}

#[tokio::test]
async fn objects_are_private_and_leave_no_temporary() {
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
        .delete_cluster_except(cluster(), super::super::KEPT_BY_RESET)
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
async fn too_large_an_upload_leaves_nothing() {
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
async fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = Store::open(file.join("data")).await.unwrap_err();
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
            Store::open(store.root()),
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
async fn what_killed_replicas_left_goes_when_others_start() {
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
            .map(|_| tokio::spawn(Store::open(store.root().to_owned())))
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
