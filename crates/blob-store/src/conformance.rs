//! Conformance tests of a store, as functions that the tests of each store call.
//!
//! Panics: each function, when the store breaks the rule in the function's name.

mod content;
mod fixtures;
mod uploads;

use std::time::Duration;

use bytes::Bytes;
use model::time::Timestamp;

use super::{CollectedGarbage, ContentStore, Referrer, StoreError, Usage};
use oci::{Algorithm, Digest, Manifest};

use fixtures::{append, index, manifest, push, put, read, repository, start, tag};

pub use content::damaged_content_is_lost_until_it_is_pushed;

/// The layer of the image in `oci/fixtures/schema1.json`: an archive without entries, compressed.
pub const EMPTY_LAYER: [u8; 32] = [
    31, 139, 8, 0, 0, 9, 110, 136, 0, 255, 98, 24, 5, 163, 96, 20, 140, 88, 0, 8, 0, 0, 255, 255,
    46, 175, 181, 239, 0, 4, 0, 0,
];

pub use uploads::{
    abandoned_uploads_are_purged, uploads_resume_and_keep_order, wrong_digests_leave_nothing,
};

/// Runs every function of this module against an empty store.
pub async fn all<S: ContentStore>(store: &S) {
    a_probe_leaves_nothing(store).await;
    blobs_come_back_whole(store).await;
    uploads_resume_and_keep_order(store).await;
    wrong_digests_leave_nothing(store).await;
    abandoned_uploads_are_purged(store).await;
    blobs_belong_to_repositories(store).await;
    long_digests_name_the_same_content(store).await;
    manifests_need_their_content(store).await;
    tags_move_and_manifests_stay(store).await;
    signed_manifests_keep_their_signatures(store).await;
    deleting_a_manifest_takes_its_tags(store).await;
    lists_are_sorted_and_come_in_pages(store).await;
    tags_are_found_by_their_manifests(store).await;
    what_a_repository_has_is_counted(store).await;
    referrers_are_listed(store).await;
    content::content_is_listed_with_who_has_it(store).await;
    content::only_what_nothing_needs_expires(store).await;
    content::records_are_replaced_whole(store).await;
    garbage_is_collected_and_nothing_else(store).await;
}

/// A probe of a working store succeeds.
pub async fn a_probe_leaves_nothing<S: ContentStore>(store: &S) {
    let before = store.repositories("", 10).await.expect("repositories");
    for may_write in [true, false] {
        store.probe(may_write).await.expect("a store that works");
    }
    let after = store.repositories("", 10).await.expect("repositories");
    assert_eq!(after, before);
}

/// Uploaded bytes can be read from any offset, also of empty blobs and of blobs uploaded twice.
pub async fn blobs_come_back_whole<S: ContentStore>(store: &S) {
    let repository = repository("whole/blobs");
    for content in [Vec::new(), b"x".to_vec(), vec![7; 700_000]] {
        for _ in 0..2 {
            let digest = push(store, &repository, &content).await;
            assert_eq!(
                store.blob_size(&repository, &digest).await.expect("size"),
                content.len() as u64
            );
            for offset in [0, content.len() / 2, content.len()] {
                let read = read(store, &repository, &digest, offset..content.len()).await;
                assert_eq!(read, content[offset..]);
            }
        }
    }
}

/// A blob is visible only in repositories where it was pushed or mounted, and deleted from one only.
pub async fn blobs_belong_to_repositories<S: ContentStore>(store: &S) {
    let (first, second, third) = (
        repository("own/a"),
        repository("own/b"),
        repository("own/c"),
    );
    let digest = push(store, &first, b"shared").await;
    assert!(store.blob_size(&second, &digest).await.is_err());
    assert!(
        !store
            .mount_blob(&second, Some(&third), &digest)
            .await
            .expect("mount")
    );
    assert!(
        store
            .mount_blob(&second, Some(&first), &digest)
            .await
            .expect("mount")
    );
    assert!(
        store
            .mount_blob(&third, None, &digest)
            .await
            .expect("mount")
    );
    assert!(
        !store
            .mount_blob(&third, None, &Digest::sha256(b"nowhere"))
            .await
            .expect("mount")
    );
    store.delete_blob(&first, &digest).await.expect("delete");
    let gone = store.delete_blob(&first, &digest).await;
    assert!(matches!(gone, Err(StoreError::UnknownBlob(_))), "{gone:?}");
    assert!(store.blob_size(&first, &digest).await.is_err());
    assert_eq!(read(store, &second, &digest, 0..6).await, b"shared");
    assert_eq!(read(store, &third, &digest, 0..6).await, b"shared");
}

/// SHA-512 digests work like the others.
pub async fn long_digests_name_the_same_content<S: ContentStore>(store: &S) {
    let repository = repository("long");
    let upload = start(store, &repository).await;
    append(store, &repository, upload, None, b"{}")
        .await
        .expect("append");
    let long = Digest::of(Algorithm::Sha512, b"{}");
    store
        .finish_upload(&repository, upload, &long)
        .await
        .expect("finish");
    assert_eq!(read(store, &repository, &long, 0..2).await, b"{}");
    assert_eq!(
        read(store, &repository, &Digest::sha256(b"{}"), 0..2).await,
        b"{}"
    );
    let other = self::repository("long/other");
    assert!(store.mount_blob(&other, None, &long).await.expect("mount"));
    assert_eq!(read(store, &other, &long, 0..2).await, b"{}");
    let manifest = manifest(&long, "");
    let name = Digest::of(Algorithm::Sha512, &manifest.bytes);
    store
        .put_manifest(&repository, &manifest, &name, &[], false)
        .await
        .expect("put");
    assert_eq!(
        store
            .manifest(&repository, &name)
            .await
            .expect("manifest")
            .bytes,
        manifest.bytes
    );
    store
        .delete_manifest(&repository, &name)
        .await
        .expect("delete");
    assert!(store.manifest(&repository, &name).await.is_err());
    assert!(store.manifest(&repository, &manifest.digest).await.is_err());
    store.delete_blob(&repository, &long).await.expect("delete");
    assert!(store.blob_size(&repository, &long).await.is_err());
}

/// A manifest is refused with all missing digests until its content exists.
pub async fn manifests_need_their_content<S: ContentStore>(store: &S) {
    let repository = repository("needy");
    let config = Digest::sha256(b"needed");
    let image = manifest(&config, "");
    let refused = put(store, &repository, &image, &["t"]).await;
    assert!(
        matches!(&refused, Err(StoreError::MissingContent(missing)) if *missing == [config]),
        "{refused:?}"
    );
    assert!(store.resolve_tag(&repository, &tag("t")).await.is_err());
    let index = index(&image);
    let refused = put(store, &repository, &index, &[]).await;
    assert!(
        matches!(&refused, Err(StoreError::MissingContent(missing)) if *missing == [image.digest.clone()]),
        "{refused:?}"
    );
    push(store, &repository, b"needed").await;
    put(store, &repository, &image, &[])
        .await
        .expect("put image");
    put(store, &repository, &index, &["t"])
        .await
        .expect("put index");
    assert_eq!(
        store
            .resolve_tag(&repository, &tag("t"))
            .await
            .expect("tag"),
        index.digest
    );
}

/// A tag points at the latest push; its earlier manifest stays reachable by digest.
pub async fn tags_move_and_manifests_stay<S: ContentStore>(store: &S) {
    let repository = repository("moving");
    let config = push(store, &repository, b"{}").await;
    let (old, new) = (manifest(&config, "old"), manifest(&config, "new"));
    put(store, &repository, &old, &["t", "u"])
        .await
        .expect("put");
    put(store, &repository, &new, &["t"]).await.expect("put");
    assert_eq!(
        store
            .resolve_tag(&repository, &tag("t"))
            .await
            .expect("tag"),
        new.digest
    );
    assert_eq!(
        store
            .resolve_tag(&repository, &tag("u"))
            .await
            .expect("tag"),
        old.digest
    );
    assert_eq!(
        store
            .manifest(&repository, &old.digest)
            .await
            .expect("manifest")
            .as_ref(),
        &old
    );
    store
        .delete_tag(&repository, &tag("t"))
        .await
        .expect("delete");
    let gone = store.delete_tag(&repository, &tag("t")).await;
    assert!(
        matches!(gone, Err(StoreError::UnknownManifest(_))),
        "{gone:?}"
    );
    assert_eq!(
        store
            .manifest(&repository, &new.digest)
            .await
            .expect("manifest")
            .as_ref(),
        &new
    );
}

/// A manifest of schema 1 has the digest of its signed payload, and keeps its signatures.
pub async fn signed_manifests_keep_their_signatures<S: ContentStore>(store: &S) {
    let repository = repository("signed");
    let signed = Bytes::from_static(include_bytes!("../../oci/fixtures/schema1.json"));
    let signed = Manifest::parse(signed, None).expect("a manifest");
    let early = put(store, &repository, &signed, &["t"]).await;
    assert!(
        matches!(&early, Err(StoreError::MissingContent(missing)) if missing.len() == 1),
        "{early:?}"
    );
    push(store, &repository, &EMPTY_LAYER).await;
    put(store, &repository, &signed, &["t"]).await.expect("put");
    assert_eq!(
        store
            .resolve_tag(&repository, &tag("t"))
            .await
            .expect("tag"),
        signed.digest
    );
    for _ in 0..2 {
        let found = store.manifest(&repository, &signed.digest).await;
        assert_eq!(found.expect("manifest").as_ref(), &signed);
    }
    store
        .delete_manifest(&repository, &signed.digest)
        .await
        .expect("delete");
    let gone = store.manifest(&repository, &signed.digest).await;
    assert!(
        matches!(gone, Err(StoreError::UnknownManifest(_))),
        "{gone:?}"
    );
}

/// Deleting a manifest by digest deletes its tags, and no others.
pub async fn deleting_a_manifest_takes_its_tags<S: ContentStore>(store: &S) {
    let repository = repository("deleted");
    let config = push(store, &repository, b"{}").await;
    let (one, two) = (manifest(&config, "one"), manifest(&config, "two"));
    put(store, &repository, &one, &["a", "b"])
        .await
        .expect("put");
    put(store, &repository, &two, &["c"]).await.expect("put");
    store
        .delete_manifest(&repository, &one.digest)
        .await
        .expect("delete");
    let gone = store.delete_manifest(&repository, &one.digest).await;
    assert!(
        matches!(gone, Err(StoreError::UnknownManifest(_))),
        "{gone:?}"
    );
    assert!(store.manifest(&repository, &one.digest).await.is_err());
    let tags = store.tags(&repository, "", 9).await.expect("tags");
    assert_eq!(tags, [tag("c")]);
    put(store, &repository, &one, &["a"])
        .await
        .expect("put again");
    assert_eq!(
        store
            .resolve_tag(&repository, &tag("a"))
            .await
            .expect("tag"),
        one.digest
    );
}

/// Tags have their digests; content counts once under all of its digests.
pub async fn what_a_repository_has_is_counted<S: ContentStore>(store: &S) {
    let (repository, neighbour) = (repository("counted"), repository("counted/too"));
    let none = store.usage(&repository).await.expect("usage");
    assert_eq!(none, Usage::default());
    for repository in [&repository, &neighbour] {
        let config = push(store, repository, b"{}").await;
        let one = manifest(&config, "one");
        put(store, repository, &one, &["a", "b"])
            .await
            .expect("put");
        let long = Digest::of(Algorithm::Sha512, &one.bytes);
        store
            .put_manifest(repository, &one, &long, &[tag("long")], false)
            .await
            .expect("put by another digest");
        let tagged = store.tagged(repository, "a", 9).await.expect("tagged");
        let expected = [(tag("b"), one.digest.clone()), (tag("long"), long)];
        assert_eq!(tagged, expected);
        let usage = store.usage(repository).await.expect("usage");
        let expected = Usage {
            tags: 3,
            manifests: 1,
            bytes: 2 + one.bytes.len() as u64,
        };
        assert_eq!(usage, expected);
    }
}

/// Tags and repositories are listed by bytes; a repository without manifests is unknown.
pub async fn lists_are_sorted_and_come_in_pages<S: ContentStore>(store: &S) {
    let (outer, nested, bare) = (
        repository("list"),
        repository("list/nested"),
        repository("bare"),
    );
    for repository in [&nested, &outer] {
        let config = push(store, repository, b"{}").await;
        let tags = ["b", "a", "A", "1.0", "a-b", "_"];
        put(store, repository, &manifest(&config, ""), &tags)
            .await
            .expect("put");
    }
    push(store, &bare, b"{}").await;
    let tags = store.tags(&outer, "", 9).await.expect("tags");
    assert_eq!(tags, ["1.0", "A", "_", "a", "a-b", "b"].map(tag));
    for (after, limit, page) in [
        ("A", 2, vec!["_", "a"]),
        ("B", 2, vec!["_", "a"]),
        ("a-b", 9, vec!["b"]),
        ("b", 9, vec![]),
        ("", 0, vec![]),
    ] {
        let page: Vec<_> = page.into_iter().map(tag).collect();
        let tags = store.tags(&outer, after, limit).await.expect("tags");
        assert_eq!(tags, page, "{limit} after {after:?}");
    }
    let unknown = store.tags(&bare, "", 9).await;
    assert!(
        matches!(unknown, Err(StoreError::UnknownRepository(_))),
        "{unknown:?}"
    );
    let repositories = store
        .repositories("", usize::MAX)
        .await
        .expect("repositories");
    assert!(repositories.is_sorted());
    let page = store
        .repositories(outer.as_str(), 1)
        .await
        .expect("repositories");
    assert_eq!(page.as_slice(), std::slice::from_ref(&nested));
    assert!(
        repositories.contains(&outer)
            && repositories.contains(&nested)
            && !repositories.contains(&bare)
    );
}

/// The tags of a manifest are those that point at it now, by any of its digests.
pub async fn tags_are_found_by_their_manifests<S: ContentStore>(store: &S) {
    let repository = repository("tags/at");
    let config = push(store, &repository, b"{}").await;
    let [moved, named, bare] = ["moved", "named", "bare"].map(|note| manifest(&config, note));
    put(store, &repository, &moved, &["b", "a", "a-b"])
        .await
        .expect("put");
    put(store, &repository, &named, &["a", "a.1"])
        .await
        .expect("put");
    put(store, &repository, &bare, &[]).await.expect("put");
    let long = Digest::of(Algorithm::Sha512, &bare.bytes);
    let tags = [tag("long")];
    let by_long = store.put_manifest(&repository, &bare, &long, &tags, false);
    by_long.await.expect("put");
    let at = async |manifests: &[&Manifest]| {
        let wanted = manifests.iter().map(|it| it.digest.clone()).collect();
        let found = store.tags_at(&repository, wanted).await.expect("tags");
        let found = found.into_iter();
        found
            .map(|(tag, digest)| format!("{tag} {digest}"))
            .collect::<Vec<_>>()
    };
    let line = |tag: &str, manifest: &Manifest| format!("{tag} {}", manifest.digest);
    assert_eq!(at(&[]).await, [""; 0]);
    assert_eq!(
        at(&[&moved]).await,
        [line("a-b", &moved), line("b", &moved)]
    );
    assert_eq!(at(&[&bare]).await, [line("long", &bare)]);
    assert_eq!(
        at(&[&moved, &named]).await,
        [
            line("a", &named),
            line("a-b", &moved),
            line("a.1", &named),
            line("b", &moved)
        ]
    );
    let gone = store.delete_manifest(&repository, &named.digest).await;
    gone.expect("delete");
    assert_eq!(at(&[&named]).await, [""; 0]);
    let none = self::repository("tags/none");
    let found = store.tags_at(&none, [moved.digest.clone()].into()).await;
    assert_eq!(found.expect("no tags"), []);
}

/// Referrers of a subject, existing or not, are listed until they are deleted.
pub async fn referrers_are_listed<S: ContentStore>(store: &S) {
    let repository = repository("signed");
    let config = push(store, &repository, b"{}").await;
    let subject = manifest(&config, "subject");
    let body = format!(
        r#"{{"schemaVersion":2,"artifactType":"a/b","config":{{"mediaType":"x","digest":"{config}","size":2}},
            "layers":[],"subject":{{"digest":"{}","size":1}},"annotations":{{"k":"v"}}}}"#,
        subject.digest
    );
    let signature = Manifest::parse(body.into(), None).expect("a manifest");
    put(store, &repository, &signature, &[]).await.expect("put");
    put(store, &repository, &subject, &["t"])
        .await
        .expect("put");
    for _ in 0..2 {
        let found = store.referrers(&repository, &subject.digest).await;
        let expected = Referrer::of(&signature, &signature.digest);
        assert_eq!(expected.artifact_type.as_deref(), Some("a/b"));
        assert_eq!(found.expect("referrers"), [expected]);
        // A second push keeps it.
        put(store, &repository, &signature, &[]).await.expect("put");
    }
    let none = store.referrers(&repository, &signature.digest).await;
    assert_eq!(none.expect("referrers"), []);
    store
        .delete_manifest(&repository, &signature.digest)
        .await
        .expect("delete");
    let none = store.referrers(&repository, &subject.digest).await;
    assert_eq!(none.expect("referrers"), []);
}

/// Collection removes blobs that no manifest needs, unused content and empty repositories, except recent ones.
pub async fn garbage_is_collected_and_nothing_else<S: ContentStore>(store: &S) {
    let (repository, other) = (repository("collected"), repository("collected/other"));
    let late = Timestamp::UNIX_EPOCH + Duration::from_hours(200 * 365 * 24);
    let config = push(store, &repository, b"{}").await;
    let needed = manifest(&config, "kept");
    put(store, &repository, &needed, &["t"]).await.expect("put");
    let unneeded = push(store, &repository, b"nobody needs this").await;
    let elsewhere = push(store, &other, b"nor this").await;
    let young = store.collect(Timestamp::UNIX_EPOCH, false).await;
    assert_eq!(young.expect("collect"), CollectedGarbage::default());
    let counted = store.collect(late, true).await.expect("collect");
    assert!(counted.links >= 2, "{counted:?}");
    let collected = store.collect(late, false).await.expect("collect");
    assert!(
        collected.links >= 2 && collected.blobs >= 2,
        "{collected:?}"
    );
    assert!(
        collected.bytes >= 25 && collected.repositories >= 1,
        "{collected:?}"
    );
    for (repository, digest) in [(&repository, &unneeded), (&other, &elsewhere)] {
        let gone = store.blob_size(repository, digest).await;
        assert!(matches!(gone, Err(StoreError::UnknownBlob(_))), "{gone:?}");
        let stored = store.mount_blob(repository, None, digest).await;
        assert!(!stored.expect("mount"), "the content is left");
    }
    assert_eq!(read(store, &repository, &config, 0..2).await, b"{}");
    let kept = store.manifest(&repository, &needed.digest).await;
    assert_eq!(*kept.expect("manifest"), needed);
    let again = store.collect(late, false).await.expect("collect");
    assert_eq!(again, CollectedGarbage::default());
    // Collected content can be pushed again.
    assert_eq!(
        push(store, &repository, b"nobody needs this").await,
        unneeded
    );
    store
        .delete_manifest(&repository, &needed.digest)
        .await
        .expect("delete");
    let all = store.collect(late, false).await.expect("collect");
    assert!(all.links >= 2 && all.repositories == 1, "{all:?}");
    let unknown = store.tags(&repository, "", 9).await;
    assert!(
        matches!(unknown, Err(StoreError::UnknownRepository(_))),
        "{unknown:?}"
    );
}
