//! Content without regard to repositories: listing, quarantine, expiry, records.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use model::time::Timestamp;

use super::fixtures::{index, manifest, push, put, read, repository, tag};
use crate::{ContentStore, StoreError, StoredContent};
use oci::{Digest, Manifest, Repository, Target};

/// Content is listed once, with its holders and the manifests that need it; undamaged content stays.
pub(super) async fn content_is_listed_with_who_has_it<S: ContentStore>(store: &S) {
    let (first, second) = (repository("listed"), repository("listed/too"));
    let mut digests = Vec::new();
    for repository in [&first, &second] {
        for n in 0..5 {
            digests.push(push(store, repository, format!("listed {n}").as_bytes()).await);
        }
    }
    digests.truncate(5);
    let image = manifest(&digests[0], "listed");
    put(store, &second, &image, &[]).await.expect("put");
    let index = index(&image);
    put(store, &second, &index, &[]).await.expect("put");
    let mut all = Vec::new();
    loop {
        let after = all
            .last()
            .map(|content: &StoredContent| content.digest.clone());
        let page = store.contents(after.as_ref(), 3).await.expect("contents");
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        all.extend(page);
    }
    assert!(
        all.is_sorted_by(|a, b| a.digest < b.digest),
        "sorted, each once"
    );
    for digest in &digests {
        let size = Some(8);
        let content = StoredContent {
            digest: digest.clone(),
            size,
        };
        assert!(all.contains(&content), "{digest}");
        let pieces = store.open_content(digest).await.expect("open");
        let bytes: Vec<Bytes> = pieces.try_collect().await.expect("read");
        assert!(digest.matches(&bytes.concat()));
        let holders = store.holders(digest).await.expect("holders");
        assert_eq!(holders, [first.clone(), second.clone()]);
        assert!(
            !store.quarantine(digest).await.expect("quarantine"),
            "whole"
        );
        assert_eq!(read(store, &first, digest, 0..8).await, bytes.concat());
    }
    let needed_by = async |repository: &Repository, digest: &Digest| {
        store
            .needed_by(repository, digest)
            .await
            .expect("needed by")
    };
    assert_eq!(needed_by(&first, &digests[0]).await, []);
    let of_config = needed_by(&second, &digests[0]).await;
    assert_eq!(of_config.as_slice(), std::slice::from_ref(&image.digest));
    let of_image = needed_by(&second, &image.digest).await;
    assert_eq!(of_image.as_slice(), std::slice::from_ref(&index.digest));
    digests.sort();
    let after = Some(&digests[1]);
    let blobs = store.blobs(&first, after, 2).await.expect("blobs");
    let blobs: Vec<_> = blobs.into_iter().map(|blob| blob.digest).collect();
    assert_eq!(blobs, digests[2..4]);
    let manifests = store.manifests(&second, None, 9).await.expect("manifests");
    let mut manifests: Vec<_> = manifests.into_iter().map(|found| found.digest).collect();
    assert!(manifests.is_sorted());
    manifests.retain(|digest| *digest != image.digest);
    assert_eq!(manifests, [index.digest]);
    let absent = Digest::sha256(b"in no store");
    assert_eq!(store.holders(&absent).await.expect("holders"), []);
    assert!(!store.quarantine(&absent).await.expect("quarantine"));
    let unknown = store.open_content(&absent).await.map(drop);
    assert!(
        matches!(unknown, Err(StoreError::UnknownBlob(_))),
        "{unknown:?}"
    );
}

/// Expiry keeps a tag that was pushed again, and a manifest with a tag, an index or an existing subject.
pub(super) async fn only_what_nothing_needs_expires<S: ContentStore>(store: &S) {
    let repository = repository("expiring");
    let config = push(store, &repository, b"{}").await;
    let image = manifest(&config, "expiring");
    let index = index(&image);
    let body = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},"layers":[],
            "subject":{{"digest":"{}","size":1}}}}"#,
        index.digest
    );
    let signature = Manifest::parse(body.into(), None).expect("a manifest");
    for (manifest, tags) in [(&image, &[][..]), (&index, &["t"]), (&signature, &[])] {
        put(store, &repository, manifest, tags).await.expect("put");
    }
    let tag = Target::Tag(tag("t"));
    let [image, index, signature] =
        [&image, &index, &signature].map(|manifest| Target::Digest(manifest.digest.clone()));
    let expire = async |target: &Target, pushed_at: Timestamp| {
        let expired = store.expire(&repository, target, pushed_at).await;
        expired.expect("expire")
    };
    let late = Timestamp::UNIX_EPOCH + Duration::from_hours(200 * 365 * 24);
    let pushed_at = store.pushed_at(&repository, &tag).await.expect("pushed at");
    assert!(pushed_at > Timestamp::UNIX_EPOCH && pushed_at < late);
    for needed in [&image, &index, &signature] {
        assert!(!expire(needed, late).await, "{needed}");
    }
    assert!(!expire(&tag, Timestamp::UNIX_EPOCH).await, "pushed since");
    assert!(expire(&tag, pushed_at).await);
    assert!(!expire(&tag, late).await, "gone already");
    for (target, is_gone) in [
        (&image, false),
        (&signature, false),
        (&index, true),
        (&image, true),
        (&signature, true),
    ] {
        let its_time = store
            .pushed_at(&repository, target)
            .await
            .expect("pushed at");
        assert!(!expire(target, Timestamp::UNIX_EPOCH).await, "pushed since");
        assert_eq!(expire(target, its_time).await, is_gone, "{target}");
    }
    let unknown = store.pushed_at(&repository, &image).await;
    assert!(
        matches!(unknown, Err(StoreError::UnknownManifest(_))),
        "{unknown:?}"
    );
}

/// A record is replaced whole, under its name only.
pub(super) async fn records_are_replaced_whole<S: ContentStore>(store: &S) {
    for text in ["a longer one", "short", ""] {
        let record = Bytes::from_static(text.as_bytes());
        store.put_record("kept", record.clone()).await.expect("put");
        let found = store.record("kept").await.expect("record");
        assert_eq!(found, Some(record));
        assert_eq!(store.record("other").await.expect("record"), None);
    }
}

/// Content that `damage` corrupts is detected and withheld; a push restores it to all repositories.
/// Not among [`super::all`]: only the tests of a store know its files.
pub async fn damaged_content_is_lost_until_it_is_pushed<S: ContentStore>(
    store: &S,
    damage: impl AsyncFn(&Digest),
) {
    let (first, second) = (repository("damaged"), repository("damaged/too"));
    let layer = vec![7; 700_000];
    let digest = push(store, &first, &layer).await;
    let config = push(store, &first, b"{}").await;
    let body = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},
            "layers":[{{"mediaType":"x","digest":"{digest}","size":700000}}]}}"#
    );
    let image = Manifest::parse(body.into(), None).expect("a manifest");
    for content in [&digest, &config] {
        let is_there = store.mount_blob(&second, Some(&first), content).await;
        assert!(is_there.expect("mount"));
    }
    for repository in [&first, &second] {
        put(store, repository, &image, &["t"]).await.expect("put");
    }
    for content in [&digest, &image.digest] {
        damage(content).await;
        assert!(store.quarantine(content).await.expect("quarantine"));
        assert!(
            !store.quarantine(content).await.expect("quarantine"),
            "gone already"
        );
        let holders = store.holders(content).await.expect("holders");
        assert_eq!(holders, [first.clone(), second.clone()]);
        let listed = store.contents(None, usize::MAX).await.expect("contents");
        let listed = listed.iter().find(|found| found.digest == *content);
        assert_eq!(listed.expect("listed").size, None);
    }
    for repository in [&first, &second] {
        let lost = store.blob_size(repository, &digest).await;
        assert!(matches!(lost, Err(StoreError::UnknownBlob(_))), "{lost:?}");
        let lost = store.manifest(repository, &image.digest).await;
        assert!(
            matches!(lost, Err(StoreError::UnknownManifest(_))),
            "{lost:?}"
        );
        let refused = put(store, repository, &image, &["u"]).await;
        assert!(
            matches!(&refused, Err(StoreError::MissingContent(missing)) if *missing == [digest.clone()]),
            "{refused:?}"
        );
    }
    assert_eq!(push(store, &first, &layer).await, digest);
    put(store, &first, &image, &["t"]).await.expect("put");
    for repository in [&first, &second] {
        assert_eq!(
            read(store, repository, &digest, 0..layer.len()).await,
            layer
        );
        let healed = store.manifest(repository, &image.digest).await;
        assert_eq!(*healed.expect("manifest"), image);
    }
}
