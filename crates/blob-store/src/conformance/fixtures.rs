//! Pushes and reads of the tests, and their manifests.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{TryStreamExt as _, stream};
use model::time::Timestamp;
use uuid::Uuid;

use crate::{ContentStore, Result};
use oci::{Digest, Manifest, Repository, Tag};

pub(super) fn repository(name: &str) -> Repository {
    name.parse().expect("the name fits the grammar")
}

pub(super) fn tag(name: &str) -> Tag {
    name.parse().expect("the tag fits the grammar")
}

pub(super) async fn start<S: ContentStore>(store: &S, repository: &Repository) -> Uuid {
    store
        .start_upload(repository, Timestamp::UNIX_EPOCH)
        .await
        .expect("start")
}

pub(super) async fn append<S: ContentStore>(
    store: &S,
    repository: &Repository,
    upload: Uuid,
    offset: Option<u64>,
    content: &[u8],
) -> Result<u64> {
    let pieces: Vec<_> = content
        .chunks(1 << 16)
        .map(|chunk| Ok::<_, std::io::Error>(Bytes::copy_from_slice(chunk)))
        .collect();
    store
        .append_upload(repository, upload, offset, stream::iter(pieces))
        .await
}

pub(super) async fn push<S: ContentStore>(
    store: &S,
    repository: &Repository,
    content: &[u8],
) -> Digest {
    let upload = start(store, repository).await;
    append(store, repository, upload, None, content)
        .await
        .expect("append");
    let digest = Digest::sha256(content);
    store
        .finish_upload(repository, upload, &digest)
        .await
        .expect("finish");
    digest
}

pub(super) async fn read<S: ContentStore>(
    store: &S,
    repository: &Repository,
    digest: &Digest,
    part: Range<usize>,
) -> Vec<u8> {
    let (first, length) = (part.start as u64, part.len() as u64);
    let pieces = store.open_blob(repository, digest, first, length).await;
    let bytes: Vec<Bytes> = pieces.expect("open").try_collect().await.expect("read");
    bytes.concat()
}

pub(super) fn manifest(config: &Digest, note: &str) -> Manifest {
    let body = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"{config}","size":2}},"layers":[],"note":"{note}"}}"#
    );
    Manifest::parse(body.into(), None).expect("a manifest")
}

pub(super) fn index(child: &Manifest) -> Manifest {
    let child = serde_json::json!(child.descriptor());
    let body = serde_json::json!({"schemaVersion": 2, "manifests": [child]}).to_string();
    Manifest::parse(body.into(), None).expect("an index")
}

pub(super) async fn put<S: ContentStore>(
    store: &S,
    repository: &Repository,
    manifest: &Manifest,
    tags: &[&str],
) -> Result<()> {
    let tags: Vec<_> = tags.iter().map(|name| tag(name)).collect();
    store
        .put_manifest(repository, manifest, &manifest.digest, &tags, false)
        .await
}
