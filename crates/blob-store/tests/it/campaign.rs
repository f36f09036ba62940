//! Fault campaign of the disk store: any one call to the file system fails.

use std::path::{Path, PathBuf};
use std::time::Duration;

use blob_store::{ContentStore, DiskOptions, DiskStore, Result, StoreError};
use bytes::Bytes;
use faults::{Campaign, DONE, FOLDER};
use futures_util::{TryStreamExt as _, stream};
use model::time::Timestamp;
use oci::{Digest, Manifest, Repository, Tag, Target};

/// Units: bytes. Too large for the journal.
const LARGE: usize = 100_000;
/// Units: bytes.
const RESERVE: u64 = 1 << 20;
/// Attempts of an operation.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);
const PAGE: usize = 1000;

fn name(text: &str) -> Repository {
    text.parse().unwrap()
}

async fn open(folder: &Path) -> DiskStore {
    let options = DiskOptions {
        reserve_bytes: RESERVE,
        is_read_only: false,
    };
    // A failed start is retried. A child of a concurrent test holds the lock from its fork to its exec.
    again(async || match DiskStore::open_with(folder, options).await {
        Err(StoreError::Damaged { .. }) => Err(StoreError::UnknownUpload),
        opened => opened,
    })
    .await
}

/// Retries like a client after a server error.
pub(crate) async fn again<T>(work: impl AsyncFn() -> Result<T>) -> T {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        match work().await {
            Ok(done) => return done,
            Err(
                error @ (StoreError::Io { .. }
                | StoreError::Unavailable { .. }
                | StoreError::UnknownUpload),
            ) => {
                last = model::error::chain(&error);
            }
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("no recovery: {last}");
}

async fn push(store: &impl ContentStore, repository: &Repository, bytes: Vec<u8>) -> Digest {
    let digest = Digest::sha256(&bytes);
    again(async || {
        let upload = store.start_upload(repository, now()).await?;
        let halves = [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]];
        for half in halves {
            let piece = stream::iter([Ok::<_, std::io::Error>(Bytes::copy_from_slice(half))]);
            store.append_upload(repository, upload, None, piece).await?;
        }
        store.finish_upload(repository, upload, &digest).await
    })
    .await;
    let size = again(async || store.blob_size(repository, &digest).await).await;
    assert_eq!(size, bytes.len() as u64);
    digest
}

async fn put(
    store: &impl ContentStore,
    repository: &Repository,
    config: &Digest,
    tag: &str,
) -> Digest {
    let body = format!(
        r#"{{"schemaVersion":2,"annotations":{{"t":"{tag}"}},"config":{{"mediaType":"x","digest":"{config}","size":2}},"layers":[]}}"#
    );
    let manifest = Manifest::parse(body.into(), None).unwrap();
    let tags: [Tag; 1] = [tag.parse().unwrap()];
    again(async || {
        store
            .put_manifest(repository, &manifest, &manifest.digest, &tags, false)
            .await
    })
    .await;
    let tagged = again(async || store.resolve_tag(repository, &tags[0]).await).await;
    assert_eq!(tagged, manifest.digest);
    manifest.digest
}

/// Removes; a failed attempt whose replay removed the target counts as success.
async fn removed(work: impl AsyncFn() -> Result<()>) {
    again(async || match work().await {
        Err(StoreError::UnknownManifest(_) | StoreError::UnknownBlob(_)) => Ok(()),
        done => done,
    })
    .await;
}

fn now() -> Timestamp {
    std::time::SystemTime::now().into()
}

/// Acknowledged operations are visible afterwards, despite the failure.
pub(crate) async fn change(store: &impl ContentStore) {
    let (app, other) = (name("team/app"), name("other"));
    let config = push(store, &app, b"{}".to_vec()).await;
    let large = push(store, &app, vec![7; LARGE]).await;
    let garbage = push(store, &app, vec![8; LARGE]).await;
    let kept = put(store, &app, &config, "kept").await;
    let moved = put(store, &app, &config, "moved").await;
    let gone = put(store, &app, &config, "gone").await;
    let target: Target = "kept".parse::<Tag>().map(Target::Tag).unwrap();
    again(async || store.pushed_at(&app, &target).await).await;
    again(async || store.mount_blob(&other, Some(&app), &large).await).await;
    removed(async || store.delete_blob(&app, &garbage).await).await;
    removed(async || store.delete_tag(&app, &"moved".parse().unwrap()).await).await;
    removed(async || store.delete_manifest(&app, &gone).await).await;
    again(async || {
        store
            .put_record("campaign", Bytes::from_static(b"kept"))
            .await
    })
    .await;
    let open = again(async || store.start_upload(&app, now()).await).await;
    again(async || match store.cancel_upload(&app, open).await {
        Err(StoreError::UnknownUpload) => Ok(()),
        done => done,
    })
    .await;
    let hour = std::time::Duration::from_hours(1);
    let later = Timestamp::from(std::time::SystemTime::now() + hour);
    again(async || store.purge_uploads(later).await).await;
    for digest in [&kept, &moved] {
        again(async || store.manifest(&app, digest).await).await;
    }
    // Garbage goes when nothing failed, or with the next collection.
    again(async || store.collect(later, false).await).await;
    again(async || {
        let found = store.collect(later, true).await?;
        if found.blobs + found.links > 0 {
            store.collect(later, false).await?;
            return Err(StoreError::UnknownUpload);
        }
        Ok(())
    })
    .await;
    put(store, &app, &config, "last").await;
}

/// Waits until the journal is empty: a checkpoint was completed.
async fn calm(folder: &Path) {
    for _ in 0..ATTEMPTS {
        let files = std::fs::read_dir(folder.join(".atoll/journal")).unwrap();
        let bytes: u64 = files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum();
        if bytes == 0 {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("the journal is not emptied");
}

/// The child process; without a folder, as in a plain test run, it does nothing.
#[tokio::test]
async fn driver() {
    let given = std::env::var_os(FOLDER).map(PathBuf::from);
    let own = tempfile::tempdir().unwrap();
    let folder = given.as_deref().unwrap_or(own.path());
    let store = open(folder).await;
    change(&store).await;
    calm(folder).await;
    // These changes are recovered by the next process.
    let app = name("team/app");
    let config = push(&store, &app, b"{}".to_vec()).await;
    put(&store, &app, &config, "after").await;
    removed(async || store.delete_tag(&app, &"last".parse().unwrap()).await).await;
    assert!(matches!(
        store.resolve_tag(&app, &"last".parse().unwrap()).await,
        Err(StoreError::UnknownManifest(_))
    ));
    if given.is_some() {
        println!("{DONE}");
        // As a crash does: only durable content counts.
        std::process::abort();
    }
}

/// All content that clients can see, after a start, a collection and another start.
fn state(folder: &Path) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = open(folder).await;
        let first = seen(&store).await;
        drop(store);
        let store = open(folder).await;
        assert_eq!(
            seen(&store).await,
            first,
            "a second start shows something else"
        );
        first
    })
}

/// All content that clients can see.
pub(crate) async fn seen(store: &impl ContentStore) -> String {
    let mut lines = Vec::new();
    for repository in store.repositories("", PAGE).await.unwrap() {
        for (tag, digest) in store.tagged(&repository, "", PAGE).await.unwrap() {
            lines.push(format!("{repository}:{tag} {digest}"));
        }
        for manifest in store.manifests(&repository, None, PAGE).await.unwrap() {
            let read = store.manifest(&repository, &manifest.digest).await.unwrap();
            let (digest, bytes) = (&manifest.digest, read.bytes.len());
            lines.push(format!("{repository} {digest} {bytes}"));
        }
    }
    for repository in ["other", "team/app"].map(name) {
        for blob in store.blobs(&repository, None, PAGE).await.unwrap() {
            let pieces = store.open_content(&blob.digest).await.unwrap();
            let bytes: Vec<Bytes> = pieces.try_collect().await.unwrap();
            assert_eq!(Digest::sha256(&bytes.concat()), blob.digest);
            lines.push(format!("{repository} {blob:?}"));
        }
    }
    let record = store.record("campaign").await.unwrap();
    lines.push(format!("{record:?}"));
    lines.join("\n")
}

fn campaign(sample: Option<usize>) -> Campaign<impl Fn(&Path) -> String> {
    Campaign {
        driver: "campaign::driver",
        state,
        sample,
        ends_by_abort: true,
    }
}

#[test]
fn nothing_acknowledged_is_lost_after_any_single_failure() {
    assert!(campaign(Some(3)).run().unwrap() > 0);
}

/// All failures; takes minutes.
#[test]
#[ignore = "every fault of the disk store: minutes; the sample runs always"]
fn nothing_acknowledged_is_lost_after_each_single_failure() {
    let hits = campaign(None).run().unwrap();
    println!("{hits} faults");
    assert!(hits > 100);
}

/// A driver that ends with an empty journal, in a folder that it creates.
#[tokio::test]
async fn calm_driver() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let folder = folder.join("deep/registry");
    let store = open(&folder).await;
    change(&store).await;
    calm(&folder).await;
    println!("{DONE}");
    std::process::abort();
}

#[test]
fn folders_are_durable_in_their_parents() {
    let campaign = Campaign {
        driver: "campaign::calm_driver",
        ..campaign(None)
    };
    let none: [PathBuf; 0] = [];
    assert_eq!(campaign.unsynced_folders().unwrap(), none);
}
