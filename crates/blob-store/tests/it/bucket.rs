//! The bucket store beyond conformance: several replicas, foreign buckets, unreachable buckets.

mod campaign;
mod memory;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use blob_store::{BucketStore, ContentStore, StoreError, conformance};
use bytes::Bytes;
use futures_util::{TryStreamExt as _, stream};
use model::time::Timestamp;
use object_store::multipart::MultipartStore as _;
use object_store::{ObjectStoreExt as _, PutPayload};
use oci::Referrer;
use oci::{Digest, Manifest, Repository, Tag, Target};
use uuid::Uuid;

pub(crate) use memory::Memory;

/// Small enough that a kilobyte is a multipart upload.
const PART_BYTES: u64 = 100;

pub(crate) async fn open(memory: &Arc<Memory>) -> BucketStore {
    let objects = Arc::clone(memory);
    BucketStore::open(objects, "", PART_BYTES).await.unwrap()
}

fn repository() -> Repository {
    "team/app".parse().unwrap()
}

async fn append(store: &BucketStore, upload: Uuid, bytes: &[u8]) -> blob_store::Result<u64> {
    let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::copy_from_slice(bytes))]);
    store
        .append_upload(&repository(), upload, None, bytes)
        .await
}

async fn start(store: &BucketStore) -> Uuid {
    store
        .start_upload(&repository(), Timestamp::UNIX_EPOCH)
        .await
        .unwrap()
}

async fn try_push(store: &BucketStore, bytes: &[u8]) -> blob_store::Result<Digest> {
    let upload = start(store).await;
    append(store, upload, bytes).await?;
    let digest = Digest::sha256(bytes);
    store.finish_upload(&repository(), upload, &digest).await?;
    Ok(digest)
}

async fn push(store: &BucketStore, bytes: &[u8]) -> Digest {
    try_push(store, bytes).await.unwrap()
}

async fn read(store: &BucketStore, digest: &Digest) -> Vec<u8> {
    let size = store.blob_size(&repository(), digest).await.unwrap();
    let pieces = store.open_blob(&repository(), digest, 0, size).await;
    let pieces: Vec<Bytes> = pieces.unwrap().try_collect().await.unwrap();
    pieces.concat()
}

fn manifest(config: &Digest, note: &str) -> Manifest {
    let body = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},"layers":[],"note":"{note}"}}"#
    );
    Manifest::parse(body.into(), None).unwrap()
}

async fn put(store: &BucketStore, manifest: &Manifest, tags: &[Tag]) -> blob_store::Result<()> {
    store
        .put_manifest(&repository(), manifest, &manifest.digest, tags, false)
        .await
}

#[tokio::test]
async fn the_bucket_store_is_conformant() {
    conformance::all(&open(&Memory::new(1000)).await).await;
}

#[tokio::test]
async fn it_is_conformant_with_paginated_listings() {
    for page in [1, 2, 3] {
        conformance::all(&open(&Memory::new(page)).await).await;
    }
}

#[tokio::test]
async fn damaged_content_is_quarantined_until_it_is_pushed() {
    let memory = Memory::new(1000);
    let store = open(&memory).await;
    let damage = async |digest: &Digest| {
        let hex = digest.hex();
        let key = format!("docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]).into();
        memory.put(&key, PutPayload::from("damaged")).await.unwrap();
    };
    conformance::damaged_content_is_lost_until_it_is_pushed(&store, damage).await;
    let keys = memory.keys().await;
    assert!(
        keys.iter().any(|key| key.starts_with(".atoll/damaged/")),
        "{keys:?}"
    );
    // The note about restored content is removed.
    store.collect(late(), false).await.unwrap();
    let keys = memory.keys().await;
    assert!(
        !keys.iter().any(|key| key.starts_with(".atoll/lost/")),
        "{keys:?}"
    );
}

#[tokio::test]
async fn an_upload_is_resumed_by_any_replica() {
    let memory = Memory::new(1000);
    let (one, two) = (open(&memory).await, open(&memory).await);
    let content: Vec<u8> = (0..1000_u32)
        .map(|n| u8::try_from(n % 251).unwrap())
        .collect();
    let upload = start(&one).await;
    append(&two, upload, &content[..300]).await.unwrap();
    append(&one, upload, &content[300..301]).await.unwrap();
    append(&two, upload, &content[301..]).await.unwrap();
    assert_eq!(one.upload_size(&repository(), upload).await.unwrap(), 1000);
    let digest = Digest::sha256(&content);
    one.finish_upload(&repository(), upload, &digest)
        .await
        .unwrap();
    assert_eq!(read(&two, &digest).await, content);
    let gone = two.finish_upload(&repository(), upload, &digest).await;
    assert!(matches!(gone, Err(StoreError::UnknownUpload)), "{gone:?}");
    let keys = memory.keys().await;
    assert!(!keys.iter().any(|key| key.contains("_uploads")), "{keys:?}");
}

#[tokio::test]
async fn a_stale_hash_of_one_replica_is_not_used_for_bytes_of_another() {
    let memory = Memory::new(1000);
    let (one, two) = (open(&memory).await, open(&memory).await);
    let upload = start(&one).await;
    append(&one, upload, b"first ").await.unwrap();
    append(&two, upload, b"second").await.unwrap();
    // One replica has the hash of a prefix only.
    let whole = Digest::sha256(b"first second");
    one.finish_upload(&repository(), upload, &whole)
        .await
        .unwrap();
    assert_eq!(read(&one, &whole).await, b"first second");
}

#[tokio::test]
async fn an_unreachable_bucket_is_unavailable_and_not_empty() {
    let memory = Memory::new(1000);
    let store = open(&memory).await;
    let config = push(&store, b"{}").await;
    let image = manifest(&config, "");
    let tag: Tag = "t".parse().unwrap();
    put(&store, &image, std::slice::from_ref(&tag))
        .await
        .unwrap();
    let upload = start(&store).await;
    memory.is_down.store(true, Ordering::Relaxed);
    let name = repository();
    let other = manifest(&config, "other");
    let answers = [
        store.blob_size(&name, &config).await.map(drop),
        store.open_blob(&name, &config, 0, 2).await.map(drop),
        store.delete_blob(&name, &config).await,
        store.mount_blob(&name, None, &config).await.map(drop),
        store
            .start_upload(&name, Timestamp::UNIX_EPOCH)
            .await
            .map(drop),
        store.upload_size(&name, upload).await.map(drop),
        append(&store, upload, b"x").await.map(drop),
        store.finish_upload(&name, upload, &config).await,
        store.cancel_upload(&name, upload).await,
        store.purge_uploads(Timestamp::MAX_UTC).await.map(drop),
        store.collect(Timestamp::MAX_UTC, false).await.map(drop),
        store.resolve_tag(&name, &tag).await.map(drop),
        store.manifest(&name, &image.digest).await.map(drop),
        put(&store, &other, &[]).await,
        store.delete_manifest(&name, &image.digest).await,
        store.delete_tag(&name, &tag).await,
        store.tags(&name, "", 9).await.map(drop),
        store.tagged(&name, "", 9).await.map(drop),
        store.usage(&name).await.map(drop),
        store.repositories("", 9).await.map(drop),
        store.referrers(&name, &config).await.map(drop),
    ];
    for (index, answer) in answers.iter().enumerate() {
        assert!(
            matches!(answer, Err(StoreError::Unavailable { .. })),
            "{index}: {answer:?}"
        );
    }
    let objects = Arc::clone(&memory);
    let refused = BucketStore::open(objects, "", PART_BYTES).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable { .. })),
        "{refused:?}"
    );
    memory.is_down.store(false, Ordering::Relaxed);
    assert_eq!(store.resolve_tag(&name, &tag).await.unwrap(), image.digest);
    append(&store, upload, b"{}").await.unwrap();
    store.finish_upload(&name, upload, &config).await.unwrap();
}

#[tokio::test]
async fn leftovers_of_distribution_are_not_served() {
    let memory = Memory::new(1000);
    let absent = Digest::sha256(b"absent");
    let base = "docker/registry/v2/repositories/team/app";
    let hex = absent.hex();
    for (below, text) in [
        (format!("_layers/sha256/{hex}/link"), absent.to_string()),
        (
            format!("_manifests/revisions/sha256/{hex}/link"),
            absent.to_string(),
        ),
        (
            format!("_manifests/tags/broken/index/sha256/{hex}/link"),
            absent.to_string(),
        ),
        (
            "_layers/sha256/nonsense/link".to_owned(),
            "nonsense".to_owned(),
        ),
        (
            "_uploads/0190f5d6-0000-7000-8000-000000000000/startedat".to_owned(),
            "2026".to_owned(),
        ),
    ] {
        let key = format!("{base}/{below}").into();
        memory.put(&key, PutPayload::from(text)).await.unwrap();
    }
    let other = "docker/registry/v2/repositories/Not A Name/_manifests/tags/t/current/link";
    memory
        .put(&other.into(), PutPayload::from(absent.to_string()))
        .await
        .unwrap();
    let store = open(&memory).await;
    let blob = store.blob_size(&repository(), &absent).await;
    assert!(matches!(blob, Err(StoreError::UnknownBlob(_))), "{blob:?}");
    let image = store.manifest(&repository(), &absent).await;
    assert!(
        matches!(image, Err(StoreError::UnknownManifest(_))),
        "{image:?}"
    );
    assert_eq!(store.tags(&repository(), "", 9).await.unwrap(), []);
    assert_eq!(store.repositories("", 9).await.unwrap(), [repository()]);
    let upload = "0190f5d6-0000-7000-8000-000000000000".parse().unwrap();
    assert_eq!(store.upload_size(&repository(), upload).await.unwrap(), 0);
    append(&store, upload, b"x").await.unwrap();
    let digest = Digest::sha256(b"x");
    store
        .finish_upload(&repository(), upload, &digest)
        .await
        .unwrap();
}

#[tokio::test]
async fn damage_is_an_error_and_not_served() {
    let memory = Memory::new(1000);
    let store = open(&memory).await;
    let config = push(&store, b"{}").await;
    let image = manifest(&config, "");
    put(&store, &image, &[]).await.unwrap();
    let hex = image.digest.hex();
    let key = format!("docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
    let other = manifest(&config, "other").bytes;
    memory.put(&key.into(), other.into()).await.unwrap();
    let other_replica = open(&memory).await;
    let damaged = other_replica.manifest(&repository(), &image.digest).await;
    assert!(
        matches!(damaged, Err(StoreError::Damaged { .. })),
        "{damaged:?}"
    );
    // Its needs are unknown, so its blobs stay.
    other_replica.collect(late(), false).await.unwrap();
    assert_eq!(read(&open(&memory).await, &config).await, b"{}");
}

/// Names whose keys sort differently than their bytes, and histories longer than a page.
#[tokio::test]
async fn lists_are_sorted_by_bytes_for_all_page_sizes() {
    let names = [
        "a", "a-b", "a-b/c", "a.b", "a/0", "a/b", "a/b-c", "a/b/c/d", "a0", "b/c", "c",
    ];
    let tags = [
        "1", "1-x", "1.0", "1.0-x", "1.0.0", "10", "A", "a-b", "a.b", "a0", "a_",
    ];
    for page in [1, 2, 3, 1000] {
        let memory = Memory::new(page);
        let root = "docker/registry/v2/repositories";
        let digest = Digest::sha256(b"x").to_string();
        let write = async |below: String| {
            let key = format!("{root}/{below}").into();
            memory.put(&key, digest.clone().into()).await.unwrap();
        };
        for name in names {
            write(format!("{name}/_layers/sha256/x/link")).await;
            write(format!("{name}/_manifests/tags/t/current/link")).await;
            write(format!("{name}/_uploads/x/startedat")).await;
        }
        for tag in tags {
            let tag = format!("c/_manifests/tags/{tag}");
            write(format!("{tag}/current/link")).await;
            for n in 0..5 {
                write(format!("{tag}/index/sha256/{n}/link")).await;
            }
        }
        let store = open(&memory).await;
        for after in [
            "", "a", "a-", "a-b", "a-b/", "a.b", "a/b", "a/b-", "a/bb", "a0", "b", "c", "d",
        ] {
            for limit in [1, 2, 99] {
                let is_wanted = |name: &&str| *name > after;
                let expected: Vec<_> = names.into_iter().filter(is_wanted).take(limit).collect();
                let found = store.repositories(after, limit).await.unwrap();
                let found: Vec<_> = found.iter().map(Repository::as_str).collect();
                assert_eq!(found, expected, "{limit} after {after:?}, {page} a page");
            }
        }
        let repository = "c".parse().unwrap();
        for after in ["", "0", "1", "1-", "1.0", "1.0-x", "2", "a", "a.b", "z"] {
            for limit in [1, 2, 99] {
                let is_wanted = |tag: &&str| *tag > after;
                let mut expected: Vec<_> =
                    tags.into_iter().chain(["t"]).filter(is_wanted).collect();
                expected.truncate(limit);
                let found = store.tags(&repository, after, limit).await.unwrap();
                let found: Vec<_> = found.iter().map(Tag::as_str).collect();
                assert_eq!(found, expected, "{limit} after {after:?}, {page} a page");
            }
        }
    }
}

fn late() -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_hours(200 * 365 * 24)
}

/// Two replicas push and delete while two others collect without a grace period: acknowledged pushes stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_acknowledged_push_is_lost_by_collections_of_other_replicas() {
    let memory = Memory::new(1000);
    let has_ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let pushes = (0..4).map(|replica| {
        let memory = Arc::clone(&memory);
        tokio::spawn(async move {
            let store = open(&memory).await;
            let mut kept = Vec::new();
            for n in 0..40 {
                // Few contents, so that one replica pushes the content that another one deletes.
                let layer = format!("layer {}", n % 5);
                let pushed = async {
                    let config = try_push(&store, layer.as_bytes()).await?;
                    let image = manifest(&config, &format!("{replica} {}", n % 7));
                    let tag: Tag = format!("r{replica}-{n}").parse().unwrap();
                    put(&store, &image, std::slice::from_ref(&tag)).await?;
                    Ok::<_, StoreError>((image, tag))
                };
                match pushed.await {
                    Ok((image, _)) if n % 3 == 0 => {
                        kept.retain(|(other, _, _): &(Manifest, Tag, String)| *other != image);
                        store
                            .delete_manifest(&repository(), &image.digest)
                            .await
                            .unwrap();
                    }
                    Ok((image, tag)) => kept.push((image, tag, layer)),
                    // Without a grace period, a blob may be collected before its manifest: nothing was acknowledged.
                    Err(StoreError::MissingContent(_) | StoreError::Unavailable { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            kept
        })
    });
    let pushes: Vec<_> = pushes.collect();
    let collections = (0..2).map(|_| {
        let (memory, has_ended) = (Arc::clone(&memory), Arc::clone(&has_ended));
        tokio::spawn(async move {
            let (store, mut collected) = (open(&memory).await, 0);
            while !has_ended.load(Ordering::Relaxed) {
                let found = store.collect(late(), false).await.unwrap();
                collected += found.links + found.blobs;
            }
            collected
        })
    });
    let collections: Vec<_> = collections.collect();
    let mut kept = Vec::new();
    for push in pushes {
        kept.extend(push.await.unwrap());
    }
    has_ended.store(true, Ordering::Relaxed);
    let mut collected = 0;
    for collection in collections {
        collected += collection.await.unwrap();
    }
    assert!(
        !kept.is_empty() && collected > 0,
        "{} kept, {collected} collected",
        kept.len()
    );
    let store = open(&memory).await;
    store.collect(late(), false).await.unwrap();
    for (image, tag, layer) in kept {
        assert_eq!(
            store.resolve_tag(&repository(), &tag).await.unwrap(),
            image.digest
        );
        assert_eq!(
            *store.manifest(&repository(), &image.digest).await.unwrap(),
            image
        );
        assert_eq!(
            read(&store, &Digest::sha256(layer.as_bytes())).await,
            layer.as_bytes()
        );
    }
    let marks = memory.keys().await;
    assert!(
        !marks.iter().any(|key| key.contains("collections")),
        "{marks:?}"
    );
}

/// The result of `push` while another replica is about to remove an object whose key contains `part`. The removal
/// continues after the push, or the push waits for it.
async fn beside_a_removal<T: Send + 'static>(
    memory: &Arc<Memory>,
    part: &'static str,
    removal: impl Future<Output = ()> + Send + 'static,
    push: impl Future<Output = T> + Send + 'static,
) -> T {
    let hold = memory.hold(part);
    let removing = tokio::spawn(removal);
    hold.reached.notified().await;
    let looks = memory.looks.load(Ordering::Relaxed);
    let pushing = tokio::spawn(push);
    while !pushing.is_finished() && memory.looks.load(Ordering::Relaxed) < looks + 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    hold.go.notify_one();
    removing.await.unwrap();
    pushing.await.unwrap()
}

async fn collect(store: BucketStore) {
    store.collect(late(), false).await.unwrap();
}

#[tokio::test]
async fn a_manifest_is_not_acknowledged_while_its_blob_is_collected() {
    let memory = Memory::new(1000);
    let (one, two) = (open(&memory).await, open(&memory).await);
    let config = push(&one, b"{}").await;
    let image = manifest(&config, "");
    let putting = async move { put(&one, &image, &[]).await };
    let put = beside_a_removal(&memory, "_layers/", collect(two), putting).await;
    assert!(matches!(put, Err(StoreError::MissingContent(_))), "{put:?}");
}

#[tokio::test]
async fn a_blob_that_is_pushed_while_its_bytes_are_collected_exists() {
    let memory = Memory::new(1000);
    let (one, two) = (open(&memory).await, open(&memory).await);
    let digest = push(&one, b"again").await;
    one.delete_blob(&repository(), &digest).await.unwrap();
    let pushing = {
        let one = one.clone();
        async move { try_push(&one, b"again").await }
    };
    let pushed = beside_a_removal(&memory, "blobs/sha256/", collect(two), pushing).await;
    assert_eq!(pushed.unwrap(), digest);
    assert_eq!(read(&one, &digest).await, b"again");
}

#[tokio::test]
async fn a_blob_is_not_mounted_while_its_bytes_are_collected() {
    let memory = Memory::new(1000);
    let (one, two) = (open(&memory).await, open(&memory).await);
    let digest = push(&one, b"again").await;
    one.delete_blob(&repository(), &digest).await.unwrap();
    let mounting = {
        let digest = digest.clone();
        async move { one.mount_blob(&repository(), None, &digest).await }
    };
    let mounted = beside_a_removal(&memory, "blobs/sha256/", collect(two), mounting).await;
    assert!(!mounted.unwrap());
}

#[tokio::test]
async fn a_tag_that_is_pushed_while_it_expires_exists() {
    let memory = Memory::new(1000);
    let (one, two) = (open(&memory).await, open(&memory).await);
    let config = push(&one, b"{}").await;
    let (old, new) = (manifest(&config, "old"), manifest(&config, "new"));
    let tag: Tag = "t".parse().unwrap();
    put(&one, &old, std::slice::from_ref(&tag)).await.unwrap();
    let expiring = {
        let target = Target::Tag(tag.clone());
        async move {
            let expired = two.expire(&repository(), &target, late()).await;
            assert!(expired.unwrap());
        }
    };
    let putting = {
        let (one, new, tag) = (one.clone(), new.clone(), tag.clone());
        async move { put(&one, &new, &[tag]).await }
    };
    beside_a_removal(&memory, "current/link", expiring, putting)
        .await
        .unwrap();
    assert_eq!(
        one.resolve_tag(&repository(), &tag).await.unwrap(),
        new.digest
    );
}

#[tokio::test]
async fn manifests_of_other_programs_are_listed_as_referrers() {
    let memory = Memory::new(1000);
    let (config, subject) = (Digest::sha256(b"{}"), Digest::sha256(b"subject"));
    let body = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},"layers":[],
            "subject":{{"digest":"{subject}","size":1}}}}"#
    );
    let signature = Manifest::parse(body.into(), None).unwrap();
    let (digest, hex) = (&signature.digest, signature.digest.hex());
    let root = "docker/registry/v2";
    let data = format!("{root}/blobs/sha256/{}/{hex}/data", &hex[..2]).into();
    memory
        .put(&data, signature.bytes.clone().into())
        .await
        .unwrap();
    let link = format!("{root}/repositories/team/app/_manifests/revisions/sha256/{hex}/link");
    let text = PutPayload::from(digest.to_string());
    memory.put(&link.into(), text).await.unwrap();
    let store = open(&memory).await;
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !memory.keys().await.contains(&".atoll/adopted".to_owned()) {
        assert!(std::time::Instant::now() < deadline, "it was not adopted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let found = store.referrers(&repository(), &subject).await.unwrap();
    assert_eq!(found, [Referrer::of(&signature, digest)]);
}

#[tokio::test]
async fn nothing_is_left_of_a_replica_that_crashed_during_an_upload() {
    let memory = Memory::new(1000);
    let store = open(&memory).await;
    let upload = start(&store).await;
    // The state after one part was sent.
    let folder = format!("docker/registry/v2/repositories/team/app/_uploads/{upload}");
    let segment = format!("{folder}/data.00000000000000000000.x").into();
    let id = memory.create_multipart(&segment).await.unwrap();
    let part = PutPayload::from("part");
    memory
        .put_part(&segment, &id, 0, part.clone())
        .await
        .unwrap();
    let record = format!("{folder}/parts.data.00000000000000000000.x").into();
    memory
        .put(&record, PutPayload::from(format!("{segment}\n{id}")))
        .await
        .unwrap();
    assert_eq!(store.upload_size(&repository(), upload).await.unwrap(), 0);
    assert_eq!(store.purge_uploads(Timestamp::MAX_UTC).await.unwrap(), 1);
    assert!(
        !memory
            .keys()
            .await
            .iter()
            .any(|key| key.contains("_uploads"))
    );
    assert!(
        memory.put_part(&segment, &id, 1, part).await.is_err(),
        "the parts are gone"
    );
}

#[tokio::test(start_paused = true)]
async fn a_crashed_collection_delays_pushes_for_a_bounded_time_although_clients_give_up() {
    let memory = Memory::new(1000);
    let store = open(&memory).await;
    let mark = ".atoll/collections/crashed";
    memory
        .put(&mark.into(), PutPayload::default())
        .await
        .unwrap();
    let patience = Duration::from_mins(1);
    let mut pushed = Vec::new();
    for content in [b"1", b"2", b"3"] {
        pushed.push(tokio::time::timeout(patience, push(&store, content)).await);
    }
    assert!(pushed[0].is_err(), "the mark may be of a living collection");
    assert!(pushed[1].is_ok() && pushed[2].is_ok());
    assert!(!memory.keys().await.contains(&mark.to_owned()));
}

#[tokio::test]
async fn the_first_read_after_a_restart_detects_damage() {
    let memory = Memory::new(1000);
    let store = open(&memory).await;
    let content = vec![7; 1000];
    let digest = push(&store, &content).await;
    let hex = digest.hex();
    let key = format!("docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
    memory
        .put(&key.into(), PutPayload::from(vec![8; 1000]))
        .await
        .unwrap();
    // Content of a push is verified: it is not hashed again.
    assert_eq!(read(&store, &digest).await.len(), content.len());
    let other_replica = open(&memory).await;
    let pieces = other_replica
        .open_blob(&repository(), &digest, 0, 1000)
        .await;
    let got: std::io::Result<Vec<Bytes>> = pieces.unwrap().try_collect().await;
    assert_eq!(got.unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    // It is quarantined in the background.
    while other_replica
        .blob_size(&repository(), &digest)
        .await
        .is_ok()
    {
        tokio::task::yield_now().await;
    }
    // A push restores it.
    push(&other_replica, &content).await;
    assert_eq!(read(&open(&memory).await, &digest).await, content);
}
