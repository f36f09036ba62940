//! Index and journal of the disk store: lost, damaged, or older than the folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blob_store::{ContentStore, DiskStore, StoreError};
use bytes::Bytes;
use futures_util::{TryStreamExt as _, stream};
use model::time::Timestamp;
use oci::{Digest, Manifest, Repository, Tag};
use tempfile::TempDir;

/// Units: bytes. Too large for the journal.
const LARGE: usize = 100_000;
const LIMIT: Duration = Duration::from_mins(10);

/// In memory where possible: a checkpoint on the disk of a busy machine can take minutes.
fn folder() -> TempDir {
    TempDir::new_in("/dev/shm").unwrap_or_else(|_| TempDir::new().unwrap())
}

async fn open(dir: &Path) -> DiskStore {
    DiskStore::open(dir).await.unwrap()
}

fn repository() -> Repository {
    "team/app".parse().unwrap()
}

fn tag(name: &str) -> Tag {
    name.parse().unwrap()
}

fn data(dir: &Path, digest: &Digest) -> PathBuf {
    let hex = digest.hex();
    let below = format!("docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
    dir.join(below)
}

fn own(dir: &Path, below: &str) -> PathBuf {
    dir.join("docker/registry/v2/repositories/team/app")
        .join(below)
}

async fn push(store: &DiskStore, bytes: Vec<u8>) -> Digest {
    let digest = Digest::sha256(&bytes);
    let upload = store
        .start_upload(&repository(), Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
    let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from(bytes))]);
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

fn body(note: &str) -> Vec<u8> {
    let config = Digest::sha256(b"{}");
    format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},"note":"{note}"}}"#
    )
    .into_bytes()
}

async fn put(store: &DiskStore, note: &str, name: &str) -> Manifest {
    let manifest = Manifest::parse(body(note).into(), None).unwrap();
    store
        .put_manifest(
            &repository(),
            &manifest,
            &manifest.digest,
            &[tag(name)],
            false,
        )
        .await
        .unwrap();
    manifest
}

async fn read(store: &DiskStore, digest: &Digest) -> Vec<u8> {
    let size = store.blob_size(&repository(), digest).await.unwrap();
    let pieces = store.open_blob(&repository(), digest, 0, size).await;
    let pieces: Vec<Bytes> = pieces.unwrap().try_collect().await.unwrap();
    pieces.concat()
}

async fn at(store: &DiskStore, name: &str) -> Option<Digest> {
    match store.resolve_tag(&repository(), &tag(name)).await {
        Ok(digest) => Some(digest),
        Err(StoreError::UnknownManifest(_)) => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// Waits for `condition`, with a deadline.
async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < LIMIT, "deadline exceeded");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn acknowledged_changes_survive_a_power_failure() {
    let after = loop {
        // Only without a checkpoint meanwhile is there something to lose.
        if let Some(after) = pushed_and_lost().await {
            break after;
        }
    };
    let [config, large, one, two] = [b"{}".to_vec(), vec![7; LARGE], body("one"), body("two")]
        .map(|bytes| Digest::sha256(&bytes));
    let store = open(after.path()).await;
    assert_eq!(read(&store, &config).await, b"{}");
    assert_eq!(read(&store, &large).await, vec![7; LARGE]);
    assert_eq!(at(&store, "t").await, Some(two));
    assert_eq!(at(&store, "gone").await, None);
    let found = store.manifest(&repository(), &one).await.unwrap();
    assert_eq!(found.bytes, body("one"));
    let uploads = fs::read_dir(own(after.path(), "_uploads")).unwrap();
    assert_eq!(uploads.count(), 0, "the upload session of a blob is left");
    let link = own(after.path(), "_manifests/tags/t/current/link");
    assert!(link.is_file(), "distribution would not find the tag");
}

/// A folder as a power failure leaves it: unsynced names and unsynced bytes of small files are missing.
async fn pushed_and_lost() -> Option<TempDir> {
    let (dir, after) = (folder(), folder());
    let journal = [dir.path(), after.path()].map(|root| root.join(".atoll/journal"));
    let store = open(dir.path()).await;
    push(&store, b"{}".to_vec()).await;
    let large = push(&store, vec![7; LARGE]).await;
    for (note, name) in [("one", "t"), ("two", "t"), ("three", "gone")] {
        put(&store, note, name).await;
    }
    store.delete_tag(&repository(), &tag("gone")).await.unwrap();
    copy(&journal[0], &journal[1]).ok()?;
    let files: Vec<_> = fs::read_dir(&journal[1])
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    let promised = files
        .iter()
        .map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned());
    let promised: String = promised.collect();
    if promised.matches("\"do\":").count() < 6 {
        return None;
    }
    let from = &promised[promised.find(&large.to_string())?..];
    let upload = from.split("\"upload\":\"").nth(1)?.get(..36)?;
    let kept = own(after.path(), "_uploads").join(upload);
    fs::create_dir_all(&kept).unwrap();
    fs::copy(data(dir.path(), &large), kept.join("data")).unwrap();
    Some(after)
}

#[tokio::test]
async fn an_idle_journal_is_emptied() {
    let dir = folder();
    let store = open(dir.path()).await;
    push(&store, b"{}".to_vec()).await;
    put(&store, "", "t").await;
    let length = || {
        let files = fs::read_dir(dir.path().join(".atoll/journal")).unwrap();
        files
            .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
            .sum::<u64>()
    };
    assert!(length() > 0);
    eventually(async || length() == 0).await;
    drop(store);
    let store = open(dir.path()).await;
    assert!(at(&store, "t").await.is_some());
}

#[tokio::test]
async fn a_lost_or_damaged_index_is_rebuilt_from_the_folder() {
    let dir = folder();
    let store = open(dir.path()).await;
    let config = push(&store, b"{}".to_vec()).await;
    let manifest = put(&store, "", "t").await;
    let body = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},"subject":{{"digest":"{}","size":1}}}}"#,
        manifest.digest
    );
    let signature = Manifest::parse(body.into(), None).unwrap();
    store
        .put_manifest(&repository(), &signature, &signature.digest, &[], false)
        .await
        .unwrap();
    drop(store);
    let index = dir.path().join(".atoll/index.redb");
    for damage in [None, Some(""), Some("garbage"), Some("redb")] {
        match damage {
            None => fs::remove_file(&index).unwrap(),
            Some(text) => fs::write(&index, text.repeat(5000)).unwrap(),
        }
        let store = open(dir.path()).await;
        assert_eq!(
            at(&store, "t").await,
            Some(manifest.digest.clone()),
            "{damage:?}"
        );
        assert_eq!(read(&store, &config).await, b"{}");
        let referrers = store.referrers(&repository(), &manifest.digest).await;
        assert_eq!(referrers.unwrap().len(), 1);
        assert_eq!(store.repositories("", 9).await.unwrap(), [repository()]);
        drop(store);
    }
}

#[tokio::test]
async fn changes_of_other_programs_are_adopted() {
    let dir = folder();
    let store = open(dir.path()).await;
    push(&store, b"{}".to_vec()).await;
    let one = put(&store, "one", "a").await;
    let two = put(&store, "two", "b").await;
    drop(store);
    // As distribution moves, makes and removes tags.
    let link = |name: &str| own(dir.path(), &format!("_manifests/tags/{name}/current/link"));
    fs::remove_file(link("a")).unwrap();
    fs::write(link("a"), two.digest.to_string()).unwrap();
    fs::create_dir_all(link("c").parent().unwrap()).unwrap();
    fs::write(link("c"), one.digest.to_string()).unwrap();
    fs::remove_dir_all(own(dir.path(), "_manifests/tags/b")).unwrap();
    let other = dir.path().join("docker/registry/v2/repositories/other");
    copy(&own(dir.path(), ""), &other).unwrap();

    let store = open(dir.path()).await;
    eventually(async || at(&store, "a").await.as_ref() == Some(&two.digest)).await;
    assert_eq!(at(&store, "b").await, None);
    assert_eq!(at(&store, "c").await, Some(one.digest));
    let names = ["other".parse().unwrap(), repository()];
    eventually(async || store.repositories("", 9).await.unwrap() == names).await;
    drop(store);
    fs::remove_dir_all(other).unwrap();
    let store = open(dir.path()).await;
    eventually(async || store.repositories("", 9).await.unwrap() == [repository()]).await;
}

#[tokio::test]
async fn unreadable_manifests_are_not_garbage() {
    let dir = folder();
    let store = open(dir.path()).await;
    push(&store, b"{}".to_vec()).await;
    let layer = push(&store, b"layer of an old image".to_vec()).await;
    let readable = put(&store, "one", "t").await;
    drop(store);
    // As in a folder of distribution 2.8: a manifest of an unsupported kind.
    let old = br#"{"schemaVersion":1,"fsLayers":[]}"#;
    let digest = Digest::sha256(old);
    let revision = format!("_manifests/revisions/sha256/{}/link", digest.hex());
    for (path, bytes) in [
        (data(dir.path(), &digest), old.as_slice()),
        (own(dir.path(), &revision), digest.to_string().as_bytes()),
    ] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let late = Timestamp::UNIX_EPOCH + Duration::from_hours(200 * 365 * 24);
    for _ in 0..2 {
        let store = open(dir.path()).await;
        store.collect(late, false).await.unwrap();
        assert_eq!(read(&store, &layer).await, b"layer of an old image");
        assert!(data(dir.path(), &digest).is_file(), "the manifest is gone");
        store
            .delete_manifest(&repository(), &readable.digest)
            .await
            .ok();
        store.collect(late, false).await.unwrap();
        assert!(own(dir.path(), &revision).is_file(), "its link is gone");
        drop(store);
        fs::remove_file(dir.path().join(".atoll/index.redb")).unwrap();
    }
}

#[tokio::test]
async fn concurrent_pushes_are_all_visible() {
    let dir = folder();
    let store = open(dir.path()).await;
    push(&store, b"{}".to_vec()).await;
    let tasks: Vec<_> = (0..200)
        .map(|n| {
            let store = store.clone();
            let name = format!("t{n:03}");
            tokio::spawn(async move { put(&store, &name, &name).await.digest })
        })
        .collect();
    let mut digests = Vec::new();
    for task in tasks {
        digests.push(task.await.unwrap());
    }
    let tags = store.tags(&repository(), "", usize::MAX).await.unwrap();
    assert_eq!(tags.len(), 200);
    drop(store);
    fs::remove_file(dir.path().join(".atoll/index.redb")).unwrap();
    let store = open(dir.path()).await;
    for (n, digest) in digests.into_iter().enumerate() {
        assert_eq!(at(&store, &format!("t{n:03}")).await, Some(digest));
    }
}
