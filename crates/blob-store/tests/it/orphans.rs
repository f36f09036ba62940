//! Orphaned manifests of multi-platform images after the deletion of their index.

use std::time::{Duration, SystemTime};

use blob_store::{ContentStore, StoreError};
use bytes::Bytes;
use futures_util::stream;
use model::time::Timestamp;
use oci::{Digest, Manifest, Repository, media_type};

fn repository() -> Repository {
    "team/app".parse().unwrap()
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// Runs a scenario with each kind of store.
macro_rules! in_every_store {
    ($($scenario:ident),+ $(,)?) => {
        mod folder {
            $(#[tokio::test]
            async fn $scenario() {
                let dir = tempfile::TempDir::new().unwrap();
                let open = async || {
                    let store = blob_store::DiskStore::open(dir.path()).await.unwrap();
                    store.adopted().await;
                    store
                };
                super::$scenario(open).await;
            })+
        }

        mod bucket {
            $(#[tokio::test]
            async fn $scenario() {
                let memory = crate::bucket::Memory::new(1000);
                super::$scenario(async || crate::bucket::open(&memory).await).await;
            })+
        }
    };
}

in_every_store!(
    what_only_a_deleted_index_named_goes_after_the_grace,
    what_anything_else_names_stays,
    what_a_policy_expires_frees_nothing,
);

async fn blob(store: &impl ContentStore, bytes: &[u8]) -> Digest {
    let digest = Digest::sha256(bytes);
    let upload = store
        .start_upload(&repository(), Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
    let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::copy_from_slice(bytes))]);
    store
        .append_upload(&repository(), upload, None, bytes)
        .await
        .unwrap();
    store
        .finish_upload(&repository(), upload, &digest)
        .await
        .unwrap();
    digest
}

async fn put(store: &impl ContentStore, body: String, tag: Option<&str>) -> Digest {
    let manifest = Manifest::parse(body.into(), None).unwrap();
    let tags: Vec<_> = tag.iter().map(|tag| tag.parse().unwrap()).collect();
    let name = repository();
    let put = store.put_manifest(&name, &manifest, &manifest.digest, &tags, false);
    put.await.unwrap();
    manifest.digest
}

/// Pushes the image of one platform by digest, like clients do.
async fn image(
    store: &impl ContentStore,
    note: &str,
    subject: Option<&Digest>,
    tag: Option<&str>,
) -> Digest {
    let config = blob(store, b"{}").await;
    let layer = blob(store, note.as_bytes()).await;
    let subject = subject.map(|digest| format!(r#","subject":{{"digest":"{digest}","size":1}}"#));
    let body = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},"layers":[{{"mediaType":"x","digest":"{layer}","size":{}}}]{}}}"#,
        note.len(),
        subject.unwrap_or_default()
    );
    put(store, body, tag).await
}

async fn index(store: &impl ContentStore, children: &[&Digest], tag: &str) -> Digest {
    let kind = media_type::OCI_MANIFEST;
    let children = children
        .iter()
        .map(|digest| format!(r#"{{"mediaType":"{kind}","digest":"{digest}","size":1}}"#));
    let children = children.collect::<Vec<_>>().join(",");
    let kind = media_type::OCI_INDEX;
    let body = format!(r#"{{"schemaVersion":2,"mediaType":"{kind}","manifests":[{children}]}}"#);
    put(store, body, Some(tag)).await
}

async fn delete(store: &impl ContentStore, digest: &Digest) {
    store.delete_manifest(&repository(), digest).await.unwrap();
}

async fn has(store: &impl ContentStore, digest: &Digest) -> bool {
    match store.manifest(&repository(), digest).await {
        Ok(_) => true,
        Err(StoreError::UnknownManifest(_)) => false,
        Err(error) => panic!("{error:?}"),
    }
}

async fn what_only_a_deleted_index_named_goes_after_the_grace<S: ContentStore>(
    open: impl AsyncFn() -> S,
) {
    let store = open().await;
    let (one, two) = (
        image(&store, "1", None, None).await,
        image(&store, "2", None, None).await,
    );
    let of_child = image(&store, "signature of a child", Some(&one), None).await;
    let whole = index(&store, &[&one, &two], "t").await;
    let of_index = image(&store, "signature of the index", Some(&whole), None).await;
    let before = now();
    delete(&store, &whole).await;
    let collected = store.collect(before, false).await.unwrap();
    assert_eq!(collected.manifests, 0, "the grace period has just begun");
    // Orphans survive a restart.
    drop(store);
    let store = open().await;
    let counted = store.collect(now(), true).await.unwrap();
    assert_eq!(counted.manifests, 3);
    assert!(has(&store, &one).await);
    let collected = store.collect(now(), false).await.unwrap();
    assert_eq!(collected.manifests, 3, "{collected:?}");
    for gone in [&one, &two, &of_index] {
        assert!(!has(&store, gone).await, "{gone}");
    }
    // The signature of a removed manifest is removed next; then nothing is left.
    let collected = store.collect(now(), false).await.unwrap();
    assert_eq!(collected.manifests, 1, "{collected:?}");
    assert!(!has(&store, &of_child).await);
    assert_eq!(store.contents(None, 9).await.unwrap(), []);
}

async fn what_anything_else_names_stays<S: ContentStore>(open: impl AsyncFn() -> S) {
    let store = open().await;
    let tagged = image(&store, "tagged", None, Some("kept")).await;
    let shared = image(&store, "of two indexes", None, None).await;
    let again = image(&store, "pushed again", None, None).await;
    let alone = image(&store, "never in an index", None, None).await;
    let early = image(
        &store,
        "before its subject",
        Some(&Digest::sha256(b"later")),
        None,
    )
    .await;
    let children = [&tagged, &shared, &again];
    let whole = index(&store, &children, "t").await;
    index(&store, &[&shared], "other").await;
    delete(&store, &whole).await;
    image(&store, "pushed again", None, None).await;
    for _ in 0..2 {
        let collected = store
            .collect(now() + Duration::from_hours(1), false)
            .await
            .unwrap();
        assert_eq!(collected.manifests, 0, "{collected:?}");
    }
    for stays in [&tagged, &shared, &again, &alone, &early] {
        assert!(has(&store, stays).await, "{stays}");
    }
}

async fn what_a_policy_expires_frees_nothing<S: ContentStore>(open: impl AsyncFn() -> S) {
    let store = open().await;
    let child = image(&store, "1", None, None).await;
    let whole = index(&store, &[&child], "t").await;
    let tag = oci::Target::Tag("t".parse().unwrap());
    assert!(store.expire(&repository(), &tag, now()).await.unwrap());
    let target = oci::Target::Digest(whole);
    assert!(store.expire(&repository(), &target, now()).await.unwrap());
    let collected = store.collect(now(), false).await.unwrap();
    assert_eq!(collected.manifests, 0);
    assert!(has(&store, &child).await);
}
