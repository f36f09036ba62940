//! Rules of every file store, tested with a folder and with a bucket.

use ::bucket::S3Options;
use model::Error;
use model::ids::ClusterId;
use secrecy::SecretString;
use testkit::s3::{BUCKET, Faults, KEY, S3Fault, S3Server, SECRET};
use uuid::Uuid;

use super::*;

const LOG: &str = "logs/controller/logs.tar.gz";

fn cluster() -> ClusterId {
    ClusterId(Uuid::from_u128(7))
}

fn options(server: &S3Server) -> S3Options {
    S3Options {
        bucket: BUCKET.to_owned(),
        region: "us-east-1".to_owned(),
        endpoint: Some(format!("http://{}", server.address)),
        is_path_style: true,
        keys: Some((SecretString::from(KEY), SecretString::from(SECRET))),
        session_token: None,
        ca_pem: None,
        is_insecure: false,
        is_encrypted: false,
        encryption_key: None,
    }
}

async fn in_bucket(server: &S3Server, limits: FileQuotas) -> (tempfile::TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("data");
    let options = options(server);
    let store = FileStore::open_bucket(root, limits, &options);
    let store = store.await.unwrap();
    (folder, store)
}

async fn names(store: &FileStore) -> Vec<String> {
    let names = store.list(cluster(), "").await.unwrap();
    names.iter().map(ToString::to_string).collect()
}

async fn all(store: &FileStore) {
    replaces(store).await;
    reports_absent(store).await;
    keeps_by_prefix(store).await;
    streams(store).await;
    isolates_clusters(store).await;
}

async fn replaces(store: &FileStore) {
    store.put(cluster(), "kubeconfig", "one").await.unwrap();
    store.put(cluster(), "kubeconfig", "second").await.unwrap();
    let object = store.get(cluster(), "kubeconfig").await.unwrap();
    assert_eq!(object.length, 6);
    assert_eq!(object.bytes().await.unwrap(), b"second");
    assert!(store.contains(cluster(), "kubeconfig").await.unwrap());
    assert!(store.delete(cluster(), "kubeconfig").await.unwrap());
    assert!(!store.delete(cluster(), "kubeconfig").await.unwrap());
    store.put(cluster(), "empty", "").await.unwrap();
    let object = store.get(cluster(), "empty").await.unwrap();
    assert_eq!(object.bytes().await.unwrap(), b"");
    assert!(store.delete(cluster(), "empty").await.unwrap());
}

async fn reports_absent(store: &FileStore) {
    let name = "manifests/openshift/a b+c%20é.yaml";
    store.put(cluster(), name, "x").await.unwrap();
    assert_eq!(names(store).await, [name]);
    for absent in ["kubeconfig", "manifests", "manifests/openshift/other.yaml"] {
        let answer = store.get(cluster(), absent).await;
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{absent}");
        assert!(!store.contains(cluster(), absent).await.unwrap());
    }
    for wrong in ["../other/kubeconfig", "", "a//b", ".new-1"] {
        let answer = store.put(cluster(), wrong, "x").await;
        assert!(matches!(answer, Err(Error::Invalid { .. })), "{wrong}");
    }
    store.delete_cluster(cluster()).await.unwrap();
}

async fn keeps_by_prefix(store: &FileStore) {
    for name in [
        "generated/openshift/b.yaml",
        "kubeconfig",
        LOG,
        "manifests/openshift/a.yaml",
        "manifests-of-others",
    ] {
        store.put(cluster(), name, "x").await.unwrap();
    }
    let listed = store.list(cluster(), USER_MANIFESTS).await.unwrap();
    assert_eq!(listed.len(), 1);
    store
        .delete_cluster_except(cluster(), KEPT_BY_RESET)
        .await
        .unwrap();
    assert_eq!(names(store).await, [LOG, "manifests/openshift/a.yaml"]);
    store.delete_cluster(cluster()).await.unwrap();
    assert!(names(store).await.is_empty());
    store.delete_cluster(cluster()).await.unwrap();
}

async fn streams(store: &FileStore) {
    // Empty, one request, several parts with a rest, and exactly two.
    for length in [0, 1, 12_000_000, 10 << 20] {
        let content = vec![7; length];
        let put = store.put_stream(cluster(), LOG, content.as_slice(), length as u64);
        assert_eq!(put.await.unwrap(), length as u64);
        let object = store.get(cluster(), LOG).await.unwrap();
        assert_eq!(object.length, length as u64);
        assert!(object.bytes().await.unwrap() == content);
    }
    let put = store.put_stream(cluster(), "logs/1/logs.tar.gz", &b"12345"[..], 4);
    let refused = put.await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge { limit: 4, .. }));
    assert_eq!(names(store).await, [LOG]);
    store.delete_cluster(cluster()).await.unwrap();
}

async fn isolates_clusters(store: &FileStore) {
    let other = ClusterId(Uuid::from_u128(8));
    store.put(cluster(), "a", "1").await.unwrap();
    store.put(other, "a", "2").await.unwrap();
    store.delete_cluster(cluster()).await.unwrap();
    let object = store.get(other, "a").await.unwrap();
    assert_eq!(object.bytes().await.unwrap(), b"2");
    store.delete_cluster(other).await.unwrap();
}

/// Seven bytes are within a quota of ten, fourteen are not.
async fn enforces_quotas(store: &FileStore) {
    let small: &[u8] = b"1234567";
    let put = |name| store.put_stream(cluster(), name, small, 100);
    put("logs/1/logs.tar.gz").await.unwrap();
    // Replaced objects do not count.
    put("logs/1/logs.tar.gz").await.unwrap();
    let refused = put("logs/2/logs.tar.gz").await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge { limit: 10, .. }));
    let manifest = store.put_within(cluster(), "manifests/a.yaml", small.to_vec());
    assert!(matches!(manifest.await, Err(Error::TooLarge { .. })));
    assert_eq!(names(store).await, ["logs/1/logs.tar.gz"]);
}

#[tokio::test]
async fn a_folder_keeps_the_rules_of_every_store() {
    let folder = tempfile::tempdir().unwrap();
    all(&FileStore::open(folder.path().join("data")).await.unwrap()).await;
}

#[tokio::test]
async fn a_bucket_keeps_the_rules_of_every_store() {
    let server = S3Server::start().await;
    let (_folder, store) = in_bucket(&server, FileQuotas::default()).await;
    all(&store).await;
    assert!(server.bucket.state().objects.is_empty());
    assert!(server.bucket.state().parts.is_empty());
}

// limit: files of a cluster
// limit: files of all clusters
#[tokio::test]
async fn quotas_hold_in_folders_and_buckets() {
    for (cluster_bytes, total_bytes) in [(10, u64::MAX), (u64::MAX, 10)] {
        let limits = FileQuotas {
            cluster_bytes,
            total_bytes,
            ..FileQuotas::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open_within(folder.path().join("data"), limits);
        enforces_quotas(&store.await.unwrap()).await;
        let server = S3Server::start().await;
        let (_folder, store) = in_bucket(&server, limits).await;
        enforces_quotas(&store).await;
    }
}

#[tokio::test]
async fn replicas_share_a_bucket() {
    let server = S3Server::start().await;
    let (_first, one) = in_bucket(&server, FileQuotas::default()).await;
    let (_second, other) = in_bucket(&server, FileQuotas::default()).await;
    one.put(cluster(), "kubeconfig", "x").await.unwrap();
    let object = other.get(cluster(), "kubeconfig").await.unwrap();
    assert_eq!(object.bytes().await.unwrap(), b"x");
}

#[tokio::test]
async fn unusable_buckets_are_reported_without_secrets() {
    let server = S3Server::start().await;
    let mut denied = options(&server);
    denied.keys = Some((SecretString::from(KEY), SecretString::from("hidden-one")));
    let mut missing = options(&server);
    missing.bucket = "other".to_owned();
    let folder = tempfile::tempdir().unwrap();
    for (options, expected) in [(denied, "AWS_ACCESS_KEY_ID"), (missing, "create it")] {
        let opened = FileStore::open_bucket(folder.path(), FileQuotas::default(), &options);
        let error = opened.await.unwrap_err();
        let text = format!("{} {error:?}", model::error::chain(&error));
        assert!(text.contains(expected), "{text}");
        assert!(matches!(error, Error::Unavailable { .. }), "{text}");
        assert!(!text.contains("hidden-one"), "{text}");
    }
}

#[tokio::test]
async fn a_slow_server_is_retried_and_an_absent_one_unavailable() {
    let server = S3Server::start().await;
    let (_folder, store) = in_bucket(&server, FileQuotas::default()).await;
    for fault in [S3Fault::SlowDown, S3Fault::InternalError] {
        server.wire.begin();
        server.wire.arm(Faults {
            fault,
            first: 0,
            distance: 1,
        });
        store.put(cluster(), "kubeconfig", "x").await.unwrap();
        let object = store.get(cluster(), "kubeconfig").await.unwrap();
        assert_eq!(object.bytes().await.unwrap(), b"x");
        assert!(!server.wire.disarm().is_empty());
    }
    // Never absent: an installation would miss its files.
    server.bucket.state().is_gone = true;
    let answer = store.get(cluster(), "kubeconfig").await;
    assert!(
        matches!(answer, Err(Error::Unavailable { .. })),
        "{answer:?}"
    );
    server.bucket.state().is_gone = false;
    let (bucket, address) = server.kill().await;
    let answer = store.get(cluster(), "kubeconfig").await;
    assert!(
        matches!(answer, Err(Error::Unavailable { .. })),
        "{answer:?}"
    );
    let _server = S3Server::listen(bucket, address).await;
    assert!(store.contains(cluster(), "kubeconfig").await.unwrap());
}

// limit: concurrent uploads to a bucket
#[tokio::test]
async fn uploads_beyond_the_limit_wait() {
    let server = S3Server::start().await;
    let (_folder, store) = in_bucket(&server, FileQuotas::default()).await;
    let (mut uploads, mut writers) = (Vec::new(), Vec::new());
    for number in 0..=MAX_UPLOADS {
        let (writer, reader) = tokio::io::duplex(64);
        let (replica, name) = (store.clone(), format!("logs/{number}/logs.tar.gz"));
        let upload = async move { replica.put_stream(cluster(), &name, reader, 100).await };
        uploads.push(tokio::spawn(upload));
        writers.push(writer);
        while store.free_uploads() != MAX_UPLOADS.saturating_sub(number + 1) {
            tokio::task::yield_now().await;
        }
    }
    // The last one waits for a place, even if its client sends nothing more.
    drop(writers.pop());
    tokio::task::yield_now().await;
    assert!(names(&store).await.is_empty());
    writers.clear();
    for upload in uploads {
        upload.await.unwrap().unwrap();
    }
    assert_eq!(names(&store).await.len(), MAX_UPLOADS + 1);
}

// share: concurrent uploads to a bucket
#[tokio::test]
async fn the_uploads_of_an_owner_leave_room_for_others() {
    let server = S3Server::start().await;
    let (_folder, store) = in_bucket(&server, FileQuotas::default()).await;
    let other = ClusterId(Uuid::from_u128(8));
    let owner = |id, name: &str| FileOwner::new(id, name.to_owned(), vec![id]);
    let (mut uploads, mut writers) = (Vec::new(), Vec::new());
    for number in 0..UPLOADS_OF_OWNER {
        let (writer, reader) = tokio::io::duplex(64);
        let (store, name) = (store.clone(), format!("logs/{number}/logs.tar.gz"));
        let alice = owner(cluster(), "alice");
        uploads.push(tokio::spawn(async move {
            store.put_stream(alice, &name, reader, 100).await
        }));
        writers.push(writer);
    }
    while store.free_uploads() > MAX_UPLOADS - UPLOADS_OF_OWNER {
        tokio::task::yield_now().await;
    }
    let put = async |owner: FileOwner| store.put_stream(owner, LOG, &b"1"[..], 100).await;
    let refused = put(owner(cluster(), "alice")).await;
    assert!(
        matches!(refused, Err(Error::Unavailable { .. })),
        "{refused:?}"
    );
    put(owner(other, "bob")).await.unwrap();
    writers.clear();
    for upload in uploads {
        upload.await.unwrap().unwrap();
    }
    put(owner(cluster(), "alice")).await.unwrap();
}

#[tokio::test]
async fn a_cut_upload_leaves_nothing() {
    let server = S3Server::start().await;
    let (_folder, store) = in_bucket(&server, FileQuotas::default()).await;
    let pieces = [
        Ok(bytes::Bytes::from(vec![1; 11 << 20])),
        Err(std::io::Error::other("cut")),
    ];
    let cut = tokio_util::io::StreamReader::new(futures_util::stream::iter(pieces));
    let put = store.put_stream(cluster(), LOG, cut, u64::MAX);
    put.await.unwrap_err();
    assert!(names(&store).await.is_empty());
    while !server.bucket.state().parts.is_empty() {
        tokio::task::yield_now().await;
    }
}
