//! Adoption: changes of the folder by other programs, while the disk store was closed or open, are served, and linked
//! content is never collected.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use blob_store::{ContentStore, DiskStore, StoreError, disk};
use bytes::Bytes;
use futures_util::{TryStreamExt as _, stream};
use model::time::Timestamp;
use oci::{Digest, Manifest, Repository, Tag};
use tempfile::TempDir;

/// A folder written like distribution does, with old times, as `rsync -a`, `tar -x` and `cp -a` restore it.
struct Foreign<'a>(&'a Path);

impl Foreign<'_> {
    fn write(&self, below: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join("docker/registry/v2").join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        age(&path);
        path.ancestors().skip(1).take(4).for_each(age);
        path
    }

    fn content(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::sha256(bytes);
        self.write(&data(&digest), bytes);
        digest
    }

    fn link(&self, repository: &str, below: &str, digest: &Digest) {
        let below = format!("repositories/{repository}/{below}/link");
        self.write(&below, digest.to_string().as_bytes());
    }

    fn tag(&self, repository: &str, tag: &str, digest: &Digest) {
        let below = format!("_manifests/tags/{tag}");
        let history = format!("{below}/index/sha256/{}", digest.hex());
        self.link(repository, &history, digest);
        self.link(repository, &format!("{below}/current"), digest);
    }

    /// Writes an image of one layer. Returns the digest of its manifest.
    fn image(&self, repository: &str, tag: &str, note: &str) -> Digest {
        let (config, layer) = (self.content(b"{}"), self.content(note.as_bytes()));
        for blob in [&config, &layer] {
            self.link(repository, &format!("_layers/sha256/{}", blob.hex()), blob);
        }
        let digest = self.content(&body(&config, &layer));
        let revision = format!("_manifests/revisions/sha256/{}", digest.hex());
        self.link(repository, &revision, &digest);
        self.tag(repository, tag, &digest);
        digest
    }

    fn repositories(&self) -> PathBuf {
        self.0.join("docker/registry/v2/repositories")
    }

    fn has(&self, digest: &Digest) -> bool {
        self.0
            .join("docker/registry/v2")
            .join(data(digest))
            .is_file()
    }
}

fn age(path: impl AsRef<Path>) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_hours(365 * 24);
    File::open(path).unwrap().set_modified(long_ago).unwrap();
}

fn data(digest: &Digest) -> String {
    format!("blobs/sha256/{}/{}/data", &digest.hex()[..2], digest.hex())
}

fn body(config: &Digest, layer: &Digest) -> Vec<u8> {
    format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},"layers":[{{"mediaType":"x","digest":"{layer}","size":1}}]}}"#
    )
    .into_bytes()
}

fn name(text: &str) -> Repository {
    text.parse().unwrap()
}

async fn open(dir: &TempDir) -> DiskStore {
    DiskStore::open(dir.path()).await.unwrap()
}

async fn at(store: &DiskStore, repository: &str, tag: &str) -> Option<Digest> {
    let tag: Tag = tag.parse().unwrap();
    match store.resolve_tag(&name(repository), &tag).await {
        Ok(digest) => Some(digest),
        Err(StoreError::UnknownManifest(_)) => None,
        Err(error) => panic!("{error:?}"),
    }
}

async fn layer(store: &DiskStore, repository: &str, note: &str) -> Vec<u8> {
    let (repository, digest) = (name(repository), Digest::sha256(note.as_bytes()));
    let size = store.blob_size(&repository, &digest).await.unwrap();
    let pieces = store.open_blob(&repository, &digest, 0, size).await;
    let pieces: Vec<Bytes> = pieces.unwrap().try_collect().await.unwrap();
    pieces.concat()
}

async fn push(store: &DiskStore, repository: &str, tag: &str, note: &str) -> Digest {
    let repository = name(repository);
    for bytes in [b"{}".as_slice(), note.as_bytes()] {
        let upload = store
            .start_upload(&repository, Timestamp::UNIX_EPOCH)
            .await
            .unwrap();
        let sent = stream::iter([Ok::<_, std::io::Error>(Bytes::copy_from_slice(bytes))]);
        store
            .append_upload(&repository, upload, None, sent)
            .await
            .unwrap();
        let digest = Digest::sha256(bytes);
        store
            .finish_upload(&repository, upload, &digest)
            .await
            .unwrap();
    }
    let body = body(&Digest::sha256(b"{}"), &Digest::sha256(note.as_bytes()));
    let manifest = Manifest::parse(body.into(), None).unwrap();
    let tags = [tag.parse().unwrap()];
    let put = store.put_manifest(&repository, &manifest, &manifest.digest, &tags, false);
    put.await.unwrap();
    manifest.digest
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

fn late() -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_hours(200 * 365 * 24)
}

#[tokio::test]
async fn a_tag_that_was_moved_in_place_is_served_from_the_first_request_on() {
    let dir = TempDir::new().unwrap();
    let foreign = Foreign(dir.path());
    let (one, two) = (
        foreign.image("team/app", "one", "1"),
        foreign.image("team/app", "two", "2"),
    );
    foreign.tag("team/app", "t", &one);
    for _ in 0..2 {
        let store = open(&dir).await;
        store.adopted().await;
        assert_eq!(at(&store, "team/app", "t").await.as_ref(), Some(&one));
    }
    foreign.tag("team/app", "t", &two);
    fs::remove_dir_all(foreign.repositories().join("team/app/_manifests/tags/one")).unwrap();
    let store = open(&dir).await;
    assert_eq!(at(&store, "team/app", "t").await, Some(two));
    assert_eq!(at(&store, "team/app", "one").await, None);
}

#[tokio::test]
async fn copied_repositories_are_served_from_the_first_request_on() {
    let dir = TempDir::new().unwrap();
    let foreign = Foreign(dir.path());
    drop(open(&dir).await);
    let brought = foreign.image("old/app", "t", "from a backup");
    let store = open(&dir).await;
    assert_eq!(store.repositories("", 9).await.unwrap(), [name("old/app")]);
    assert_eq!(at(&store, "old/app", "t").await, Some(brought));
    let tags = store.tags(&name("old/app"), "", 9).await.unwrap();
    assert_eq!(tags, ["t".parse().unwrap()]);
    assert_eq!(
        layer(&store, "old/app", "from a backup").await,
        b"from a backup"
    );
    store.adopted().await;
    let progress = store.adoption();
    let counts = (progress.repositories, progress.compared, progress.adopted);
    assert!(
        progress.is_finished && counts.0 == 1 && counts.1 == 1,
        "{progress:?}"
    );
    drop(store);
    let store = open(&dir).await;
    store.adopted().await;
    assert_eq!(store.adoption().adopted, 0, "nothing has changed");
    drop(store);
    fs::remove_dir_all(foreign.repositories().join("old")).unwrap();
    let store = open(&dir).await;
    assert_eq!(store.repositories("", 9).await.unwrap(), []);
    assert_eq!(at(&store, "old/app", "t").await, None);
}

#[tokio::test]
async fn linked_content_is_never_garbage_whatever_its_age() {
    let dir = TempDir::new().unwrap();
    let foreign = Foreign(dir.path());
    let before = foreign.image("before", "t", "there at the start");
    let store = open(&dir).await;
    store.adopted().await;
    // While the store is open, without a notice.
    let during = foreign.image("during", "t", "came meanwhile");
    for _ in 0..3 {
        let collected = store.collect(late(), false).await.unwrap();
        assert_eq!((collected.blobs, collected.links), (0, 0), "{collected:?}");
    }
    assert!(foreign.has(&before) && foreign.has(&during));
    assert_eq!(at(&store, "during", "t").await, Some(during));
    assert_eq!(
        layer(&store, "during", "came meanwhile").await,
        b"came meanwhile"
    );
}

#[tokio::test]
async fn the_grace_period_of_unknown_content_begins_at_its_discovery() {
    let dir = TempDir::new().unwrap();
    let foreign = Foreign(dir.path());
    let store = open(&dir).await;
    store.adopted().await;
    let stray = foreign.content(b"blobs are copied before links");
    let first = now();
    store.collect(first, false).await.unwrap();
    assert!(foreign.has(&stray), "it was found just now");
    store.collect(first, false).await.unwrap();
    assert!(foreign.has(&stray), "it is within the grace period");
    store.collect(now(), false).await.unwrap();
    assert!(!foreign.has(&stray));
}

#[tokio::test]
async fn content_of_links_that_are_moved_away_for_a_while_stays() {
    let dir = TempDir::new().unwrap();
    let foreign = Foreign(dir.path());
    let image = foreign.image("team/app", "t", "layer");
    let store = open(&dir).await;
    store.adopted().await;
    let (here, aside) = (foreign.repositories(), dir.path().join("aside"));
    fs::rename(&here, &aside).unwrap();
    fs::create_dir(&here).unwrap();
    store.collect(now(), false).await.unwrap();
    assert!(foreign.has(&image), "not deleted");
    drop(store);
    fs::remove_dir(&here).unwrap();
    fs::rename(aside, here).unwrap();
    let store = open(&dir).await;
    assert_eq!(at(&store, "team/app", "t").await, Some(image));
    assert_eq!(layer(&store, "team/app", "layer").await, b"layer");
}

#[tokio::test]
async fn layers_that_are_copied_before_their_manifest_stay() {
    let dir = TempDir::new().unwrap();
    let foreign = Foreign(dir.path());
    let image = foreign.image("team/app", "t", "layer");
    let (manifests, aside) = (
        foreign.repositories().join("team/app/_manifests"),
        dir.path().join("aside"),
    );
    let store = open(&dir).await;
    store.adopted().await;
    let first = now();
    fs::rename(&manifests, &aside).unwrap();
    let collected = store.collect(first, false).await.unwrap();
    assert_eq!((collected.links, collected.repositories), (0, 0));
    fs::rename(aside, manifests).unwrap();
    store.collect(now(), false).await.unwrap();
    assert_eq!(at(&store, "team/app", "t").await, Some(image));
    assert_eq!(layer(&store, "team/app", "layer").await, b"layer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adoption_is_interrupted_and_resumed_during_requests() {
    const COUNT: usize = 200;
    let dir = TempDir::new().unwrap();
    let foreign = Foreign(dir.path());
    let mut expected: Vec<_> = (0..COUNT)
        .map(|n| Some(foreign.image(&format!("many/r{n:03}"), "t", &format!("layer {n}"))))
        .collect();
    // Each run is stopped early, as by SIGTERM.
    for n in [COUNT - 1, COUNT - 2, COUNT / 2] {
        let store = open(&dir).await;
        let moved = format!("many/r{n:03}");
        expected[n] = Some(push(&store, &moved, "t", &format!("pushed {n}")).await);
        let gone = format!("many/r{:03}", n - 10);
        store
            .delete_tag(&name(&gone), &"t".parse().unwrap())
            .await
            .unwrap();
        expected[n - 10] = None;
        assert_eq!(store.repositories("", 999).await.unwrap().len(), COUNT);
        drop(store);
    }
    let store = open(&dir).await;
    store.adopted().await;
    for (n, expected) in expected.iter().enumerate() {
        assert_eq!(
            at(&store, &format!("many/r{n:03}"), "t").await,
            *expected,
            "{n}"
        );
    }
    let collected = store.collect(now(), false).await.unwrap();
    assert_eq!((collected.blobs, collected.links), (0, 0), "{collected:?}");
}

#[tokio::test]
async fn an_audit_reports_links_that_the_index_does_not_have() {
    let dir = TempDir::new().unwrap();
    let foreign = Foreign(dir.path());
    drop(open(&dir).await);
    foreign.image("old/app", "t", "from a backup");
    let stray = foreign.content(b"nobody's");
    let faults = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let found = std::sync::Arc::clone(&faults);
    let store = DiskStore::open_as_is(dir.path()).await.unwrap();
    let note = move |fault: disk::Fault| {
        let place = fault.repository.map(|name| name.to_string());
        found
            .lock()
            .unwrap()
            .push((fault.kind, place.unwrap_or(fault.what)));
    };
    store.audit(note).await.unwrap();
    let expected = [
        (disk::FaultKind::Unindexed, "old/app".to_owned()),
        (disk::FaultKind::Orphaned, stray.to_string()),
    ];
    assert_eq!(*faults.lock().unwrap(), expected);
    assert!(
        store.collect(late(), false).await.is_err(),
        "nothing is known to be garbage"
    );
}
