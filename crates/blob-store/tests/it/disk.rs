//! The disk store beyond conformance: restarts, full disks, foreign folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use blob_store::{ContentStore, DiskStore, StoreError, conformance};
use bytes::Bytes;
use futures_util::{TryStreamExt as _, stream};
use model::time::Timestamp;
use oci::{Digest, Manifest, Repository, Tag};
use tempfile::TempDir;
use uuid::Uuid;

async fn open(dir: &TempDir) -> DiskStore {
    DiskStore::open(dir.path()).await.unwrap()
}

fn repository() -> Repository {
    "team/app".parse().unwrap()
}

fn content(dir: &TempDir) -> PathBuf {
    dir.path().join("docker/registry/v2")
}

async fn append(store: &DiskStore, upload: Uuid, bytes: &'static [u8]) -> blob_store::Result<u64> {
    let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(bytes))]);
    store
        .append_upload(&repository(), upload, None, bytes)
        .await
}

async fn start(store: &DiskStore) -> Uuid {
    store
        .start_upload(&repository(), Timestamp::UNIX_EPOCH)
        .await
        .unwrap()
}

async fn push(store: &DiskStore, bytes: &'static [u8]) -> Digest {
    let upload = start(store).await;
    append(store, upload, bytes).await.unwrap();
    let digest = Digest::sha256(bytes);
    store
        .finish_upload(&repository(), upload, &digest)
        .await
        .unwrap();
    digest
}

async fn read(store: &DiskStore, digest: &Digest) -> Vec<u8> {
    let size = store.blob_size(&repository(), digest).await.unwrap();
    let pieces = store.open_blob(&repository(), digest, 0, size).await;
    let pieces: Vec<Bytes> = pieces.unwrap().try_collect().await.unwrap();
    pieces.concat()
}

fn manifest(config: &Digest) -> Manifest {
    let body = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},"layers":[]}}"#
    );
    Manifest::parse(body.into(), None).unwrap()
}

fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                let path = entry.path();
                found.push(path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn the_disk_store_is_conformant() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    conformance::all(&store).await;
    assert_eq!(files(&dir.path().join(".atoll/tmp")), Vec::<String>::new());
}

#[tokio::test]
async fn the_layout_is_the_one_of_distribution() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let config = push(&store, b"{}").await;
    let manifest = manifest(&config);
    let tag: Tag = "v1".parse().unwrap();
    store
        .put_manifest(&repository(), &manifest, &manifest.digest, &[tag], false)
        .await
        .unwrap();
    let (c, m) = (config.hex(), manifest.digest.hex());
    let mut expected = [
        format!("blobs/sha256/{}/{c}/data", &c[..2]),
        format!("blobs/sha256/{}/{m}/data", &m[..2]),
        format!("repositories/team/app/_layers/sha256/{c}/link"),
        format!("repositories/team/app/_manifests/revisions/sha256/{m}/link"),
        "repositories/team/app/_manifests/tags/v1/current/link".to_owned(),
        format!("repositories/team/app/_manifests/tags/v1/index/sha256/{m}/link"),
    ];
    expected.sort();
    assert_eq!(files(&content(&dir)), expected);
    let link = content(&dir).join("repositories/team/app/_manifests/tags/v1/current/link");
    assert_eq!(
        fs::read_to_string(link).unwrap(),
        manifest.digest.to_string()
    );
}

#[tokio::test]
async fn open_uploads_and_content_survive_a_restart() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let kept = push(&store, b"kept").await;
    let upload = start(&store).await;
    append(&store, upload, b"first ").await.unwrap();
    drop(store);
    fs::write(dir.path().join(".atoll/tmp/leftover"), b"half").unwrap();

    let store = open(&dir).await;
    assert!(!dir.path().join(".atoll/tmp/leftover").exists());
    assert_eq!(read(&store, &kept).await, b"kept");
    assert_eq!(store.upload_size(&repository(), upload).await.unwrap(), 6);
    append(&store, upload, b"second").await.unwrap();
    let whole = Digest::sha256(b"first second");
    store
        .finish_upload(&repository(), upload, &whole)
        .await
        .unwrap();
    assert_eq!(read(&store, &whole).await, b"first second");
}

#[tokio::test]
async fn one_process_at_a_time() {
    let dir = TempDir::new().unwrap();
    let _first = open(&dir).await;
    let second = DiskStore::open(dir.path()).await.unwrap_err();
    assert!(second.to_string().contains("another process"), "{second}");
}

#[tokio::test]
async fn a_full_disk_is_an_error_and_reads_continue() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let kept = push(&store, b"kept").await;
    let upload = start(&store).await;
    let data = content(&dir).join(format!("repositories/team/app/_uploads/{upload}/data"));
    fs::remove_file(&data).unwrap();
    symlink("/dev/full", &data).unwrap();
    let full = append(&store, upload, b"too much").await.unwrap_err();
    assert!(full.is_full(), "{full:?}");
    assert_eq!(read(&store, &kept).await, b"kept");
    // Its bytes take space that other uploads need; the client restarts the upload.
    assert!(!data.exists());
    let gone = append(&store, upload, b"more").await.unwrap_err();
    assert!(matches!(gone, StoreError::UnknownUpload), "{gone:?}");
    push(&store, b"fits").await;
}

#[tokio::test]
async fn leftovers_of_distribution_are_not_served() {
    let dir = TempDir::new().unwrap();
    let base = content(&dir).join("repositories/team/app");
    let absent = Digest::sha256(b"absent");
    let link = |below: String, text: &str| {
        let path = base.join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    link(
        format!("_layers/sha256/{}/link", absent.hex()),
        &absent.to_string(),
    );
    link(
        format!("_manifests/revisions/sha256/{}/link", absent.hex()),
        &absent.to_string(),
    );
    fs::create_dir_all(base.join("_manifests/tags/broken/index")).unwrap();
    link(
        "_uploads/0190f5d6-0000-7000-8000-000000000000/startedat".to_owned(),
        "2026-01-01T00:00:00Z",
    );
    fs::create_dir_all(content(&dir).join("repositories/Not A Name/_manifests")).unwrap();

    let store = open(&dir).await;
    assert!(matches!(
        store.blob_size(&repository(), &absent).await,
        Err(StoreError::UnknownBlob(_))
    ));
    assert!(matches!(
        store.manifest(&repository(), &absent).await,
        Err(StoreError::UnknownManifest(_))
    ));
    assert_eq!(store.tags(&repository(), "", 9).await.unwrap(), []);
    assert_eq!(store.repositories("", 9).await.unwrap(), [repository()]);
    let upload = "0190f5d6-0000-7000-8000-000000000000".parse().unwrap();
    assert_eq!(store.upload_size(&repository(), upload).await.unwrap(), 0);
    append(&store, upload, b"x").await.unwrap();
    store
        .finish_upload(&repository(), upload, &Digest::sha256(b"x"))
        .await
        .unwrap();
}

/// The path of content.
fn data(dir: &TempDir, digest: &Digest) -> PathBuf {
    let hex = digest.hex();
    content(dir).join(format!("blobs/sha256/{}/{hex}/data", &hex[..2]))
}

/// Flips a bit, like a failing disk: the size stays.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn quarantined(dir: &TempDir) -> Vec<String> {
    files(&dir.path().join(".atoll/quarantine"))
}

#[tokio::test]
async fn damaged_content_is_quarantined_until_it_is_pushed() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let damage = async |digest: &Digest| flip(&data(&dir, digest));
    conformance::damaged_content_is_lost_until_it_is_pushed(&store, damage).await;
    assert_eq!(quarantined(&dir).len(), 4, "bytes and a note, twice");
    let missing = TempDir::new().unwrap();
    let store = open(&missing).await;
    let remove = async |digest: &Digest| fs::remove_file(data(&missing, digest)).unwrap();
    conformance::damaged_content_is_lost_until_it_is_pushed(&store, remove).await;
}

#[tokio::test]
async fn missing_content_stays_missing_after_a_restart_until_it_is_restored() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let digest = push(&store, b"brought back").await;
    flip(&data(&dir, &digest));
    assert!(store.quarantine(&digest).await.unwrap());
    let is_lost = async |store: &DiskStore| {
        let size = store.blob_size(&repository(), &digest).await;
        matches!(size, Err(StoreError::UnknownBlob(_)))
    };
    drop(store);
    let store = open(&dir).await;
    assert!(is_lost(&store).await);
    drop(store);
    fs::remove_file(dir.path().join(".atoll/index.redb")).unwrap();
    let store = open(&dir).await;
    assert!(is_lost(&store).await);
    drop(store);
    let bytes = data(&dir, &digest);
    fs::create_dir_all(bytes.parent().unwrap()).unwrap();
    fs::write(&bytes, b"brought back").unwrap();
    let store = open(&dir).await;
    assert_eq!(read(&store, &digest).await, b"brought back");
}

#[tokio::test]
async fn the_first_read_after_a_restart_detects_damage() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let config = push(&store, b"{}").await;
    let large = Bytes::from(vec![7; 700_000]);
    let upload = start(&store).await;
    let bytes = stream::iter([Ok::<_, std::io::Error>(large.clone())]);
    let repository = &repository();
    let appended = store.append_upload(repository, upload, None, bytes);
    appended.await.unwrap();
    let digest = Digest::sha256(&large);
    let finished = store.finish_upload(repository, upload, &digest).await;
    finished.unwrap();
    let manifest = manifest(&config);
    let put = store.put_manifest(repository, &manifest, &manifest.digest, &[], false);
    put.await.unwrap();
    flip(&data(&dir, &digest));
    // Content of a push is verified: it is not hashed again.
    assert_eq!(read(&store, &digest).await.len(), large.len());
    drop(store);
    flip(&data(&dir, &config));
    flip(&data(&dir, &manifest.digest));
    let store = open(&dir).await;
    let whole = store.open_blob(repository, &digest, 0, 700_000).await;
    let mut whole = whole.unwrap();
    let mut got = 0;
    let error = loop {
        match whole.try_next().await {
            Ok(piece) => got += piece.expect("an error before the end").len(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(got < 700_000);
    let lost = store.open_blob(repository, &config, 0, 2).await.map(drop);
    assert!(matches!(lost, Err(StoreError::UnknownBlob(_))), "{lost:?}");
    for lost in [&digest, &config] {
        let size = store.blob_size(repository, lost).await;
        assert!(matches!(size, Err(StoreError::UnknownBlob(_))), "{size:?}");
    }
    let lost = store.manifest(repository, &manifest.digest).await;
    assert!(
        matches!(lost, Err(StoreError::UnknownManifest(_))),
        "{lost:?}"
    );
    assert_eq!(quarantined(&dir).len(), 6);
    // Intact bytes with a malformed link are not served, either.
    drop(store);
    let config = push(&open(&dir).await, b"{}").await;
    let link = content(&dir).join(format!(
        "repositories/team/app/_layers/sha256/{}/link",
        config.hex()
    ));
    for text in ["garbage", &digest.to_string()] {
        fs::write(&link, text).unwrap();
        fs::remove_dir_all(dir.path().join(".atoll")).unwrap();
        let store = open(&dir).await;
        let lost = store.blob_size(repository, &config).await;
        assert!(matches!(lost, Err(StoreError::UnknownBlob(_))), "{lost:?}");
    }
}

#[tokio::test]
async fn damage_is_detected_after_a_range_was_read() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let digest = push(&store, b"read in parts").await;
    drop(store);
    flip(&data(&dir, &digest));
    let store = open(&dir).await;
    let part = store.open_blob(&repository(), &digest, 0, 2).await.unwrap();
    let part: Vec<Bytes> = part.try_collect().await.unwrap();
    assert_eq!(part.concat(), b"re");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while store.blob_size(&repository(), &digest).await.is_ok() {
        assert!(std::time::Instant::now() < deadline, "nobody noticed");
        tokio::task::yield_now().await;
    }
    assert_eq!(quarantined(&dir).len(), 2);
}

#[tokio::test]
async fn pushed_bytes_replace_unverified_ones() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let digest = push(&store, b"{}").await;
    let manifest = manifest(&digest);
    let put = async |store: &DiskStore| {
        let name = &repository();
        let put = store.put_manifest(name, &manifest, &manifest.digest, &[], false);
        put.await.unwrap();
    };
    put(&store).await;
    drop(store);
    // A crash of the machine leaves a file's length only.
    for digest in [&digest, &manifest.digest] {
        let size = fs::metadata(data(&dir, digest)).unwrap().len();
        fs::write(data(&dir, digest), vec![0; usize::try_from(size).unwrap()]).unwrap();
    }
    let store = open(&dir).await;
    assert_eq!(push(&store, b"{}").await, digest);
    put(&store).await;
    assert_eq!(read(&store, &digest).await, b"{}");
    let stored = store.manifest(&repository(), &manifest.digest).await;
    assert_eq!(*stored.unwrap(), manifest);
    assert!(!dir.path().join(".atoll/quarantine").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_a_tag_with_its_manifest_or_neither() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let config = push(&store, b"{}").await;
    let tag: Tag = "t".parse().unwrap();
    let writer = {
        let (store, config, tag) = (store.clone(), config.clone(), tag.clone());
        tokio::spawn(async move {
            for n in 0..60 {
                let body = format!(
                    r#"{{"schemaVersion":2,"config":{{"digest":"{config}","size":2}},"n":{n}}}"#
                );
                let manifest = Manifest::parse(body.into(), None).unwrap();
                store
                    .put_manifest(
                        &repository(),
                        &manifest,
                        &manifest.digest,
                        std::slice::from_ref(&tag),
                        false,
                    )
                    .await
                    .unwrap();
            }
        })
    };
    while !writer.is_finished() {
        match store.resolve_tag(&repository(), &tag).await {
            Ok(digest) => assert_eq!(
                store.manifest(&repository(), &digest).await.unwrap().digest,
                digest
            ),
            Err(StoreError::UnknownManifest(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn an_audit_reports_every_kind_of_fault_and_no_others() {
    use std::sync::{Arc, Mutex};

    use blob_store::disk::FaultKind;

    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let config = push(&store, b"{}").await;
    let manifest = manifest(&config);
    let (name, tags): (_, [Tag; 1]) = (&repository(), ["t".parse().unwrap()]);
    let put = store.put_manifest(name, &manifest, &manifest.digest, &tags, false);
    put.await.unwrap();
    let audit = async |store: &DiskStore| {
        let found = Arc::new(Mutex::new(Vec::new()));
        let faults = Arc::clone(&found);
        let audited = store.audit(move |fault| faults.lock().unwrap().push(fault));
        let audited = audited.await.unwrap();
        let mut faults = std::mem::take(&mut *found.lock().unwrap());
        faults.sort_by(|a, b| (a.kind, &a.what).cmp(&(b.kind, &b.what)));
        (audited, faults)
    };
    // A removed link is no fault.
    let deleted = push(&store, b"deleted").await;
    store.delete_blob(&repository(), &deleted).await.unwrap();
    let late = Timestamp::from(std::time::SystemTime::now() + std::time::Duration::from_hours(1));
    store.collect(late, false).await.unwrap();
    let [damaged, garbled, other, dangling, unlinked] = [
        push(&store, b"damaged").await,
        push(&store, b"garbled").await,
        push(&store, b"other").await,
        push(&store, b"dangling").await,
        push(&store, b"unlinked").await,
    ];
    let (audited, faults) = audit(&store).await;
    assert_eq!(faults, []);
    assert_eq!((audited.contents, audited.links), (7, 8));
    drop(store);
    let layer = |digest: &Digest| {
        let below = format!("repositories/team/app/_layers/sha256/{}/link", digest.hex());
        content(&dir).join(below)
    };
    flip(&data(&dir, &damaged));
    fs::write(layer(&garbled), "sha256:garbled").unwrap();
    // A flipped bit can yield another valid digest.
    fs::write(layer(&other), garbled.to_string()).unwrap();
    fs::remove_file(data(&dir, &dangling)).unwrap();
    for digest in [&config, &unlinked] {
        fs::remove_dir_all(layer(digest).parent().unwrap()).unwrap();
    }
    let current = content(&dir).join("repositories/team/app/_manifests/tags/t/current/link");
    fs::write(current, damaged.to_string()).unwrap();
    // Those writes bypassed the index.
    fs::remove_file(dir.path().join(".atoll/index.redb")).unwrap();
    let (_, faults) = audit(&open(&dir).await).await;
    let found: Vec<_> = faults
        .iter()
        .map(|fault| (fault.kind, fault.what.as_str()))
        .collect();
    let below = |path: PathBuf| path.strip_prefix(dir.path()).unwrap().display().to_string();
    let has = |kind: FaultKind, what: &str| {
        assert!(found.contains(&(kind, what)), "{kind:?} {what}: {found:?}");
    };
    has(FaultKind::Damaged, &damaged.to_string());
    has(FaultKind::Link, &below(layer(&garbled)));
    has(FaultKind::Link, &below(layer(&other)));
    has(FaultKind::Dangling, &below(layer(&dangling)));
    has(FaultKind::Missing, &config.to_string());
    let current = "docker/registry/v2/repositories/team/app/_manifests/tags/t/current/link";
    has(FaultKind::Dangling, current);
    for orphaned in [&config, &garbled, &other, &unlinked] {
        has(FaultKind::Orphaned, &orphaned.to_string());
    }
    assert_eq!(found.len(), 10, "{found:?}");
}
