//! All manifests of a repository, tagged or not: our own.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use axum::Json;
use axum::http::request::Parts;
use axum::response::IntoResponse as _;
use blob_store::{ContentStore as _, StoreError, StoredContent};
use futures_util::{StreamExt as _, stream};
use model::time::Timestamp;
use oci::{Digest, Kind, Manifest, Repository, Tag, Target};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::json;
use service::limits::{Bound, Limit};

use super::headers::Answer;
use super::lists::{self, ListState, Page};
use super::route::REPOSITORY;
use crate::error::RegistryError;
use crate::storage::Store;

/// Entries of a page without a number.
const PAGE: usize = 100;
/// Most entries of a page: each manifest is read.
const PAGE_LIMIT: usize = 1000;
/// Manifests that the indexes of a page name: it ends after the one that reaches it.
const CHILDREN_LIMIT: usize = 10_000;
/// Units: bytes. Longest artifact type that is listed. Source: RFC 6838, 4.2.
const TYPE_LIMIT: usize = 255;
/// Manifests that are read at once.
const AT_ONCE: usize = 16;

/// A manifest of the list; without media type and size if its bytes are missing or damaged.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedManifest {
    /// Its SHA-256.
    digest: Digest,
    #[serde(flatten)]
    description: Option<Description>,
    tags: Vec<Tag>,
    pushed_at: Timestamp,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    media_type: &'static str,
    /// Units: bytes. Of the manifest itself.
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<Digest>,
    /// Units: bytes. Of config and layers, each counted once; none for an index, or if the manifest has no sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_size: Option<u64>,
    /// The manifests that an index names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    manifests: Vec<Digest>,
}

/// A page of them, sorted by digest. Of a copy of another registry's repository, those that are here.
pub(super) async fn list(state: &ListState, name: &Repository, head: &Parts) -> Answer {
    let page = Page::parse(&head.uri)?;
    let limit = page.limit(PAGE, PAGE_LIMIT);
    let after = match page.last.as_str() {
        "" => None,
        last => {
            let last = last.parse::<Digest>();
            Some(last.map_err(|e| RegistryError::digest(e.to_string()))?)
        }
    };
    let (entries, last) = self::page(&state.store, name, after.as_ref(), limit).await?;
    let name_encoded = utf8_percent_encode(name.as_str(), NON_ALPHANUMERIC);
    let more = format!("&{REPOSITORY}={name_encoded}");
    let path = state.origins.path(head);
    let link = last.and_then(|last| lists::link(&path, &last.to_string(), limit, &more));
    let body = Json(json!({ "name": name, "manifests": entries }));
    Ok((link, body).into_response())
}

/// Up to `limit` manifests after `after`, and the last of them that was read if there are more.
///
/// Errors: UnknownRepository.
async fn page(
    store: &Store,
    name: &Repository,
    after: Option<&Digest>,
    limit: usize,
) -> Result<(Vec<ListedManifest>, Option<Digest>), StoreError> {
    // Manifests before tags: else one that is pushed meanwhile would look as if it had none.
    let mut contents = store.manifests(name, after, limit + 1).await?;
    if contents.is_empty() {
        store.tags(name, "", 1).await?;
    }
    let found = contents.len();
    contents.truncate(limit);
    let (mut entries, last) = read(store, name, contents).await?;
    add_tags(store, name, &mut entries).await?;
    let next = last.filter(|(read, _)| *read < found);
    Ok((entries, next.map(|(_, last)| last)))
}

/// Reads manifests until their indexes name too many others. Returns the entries, and how many were read and the last of
/// them: of these, some may be deleted meanwhile.
async fn read(
    store: &Store,
    name: &Repository,
    contents: Vec<StoredContent>,
) -> Result<(Vec<ListedManifest>, Option<(usize, Digest)>), StoreError> {
    let mut reading = stream::iter(contents)
        .map(async |StoredContent { digest, .. }| {
            let entry = entry(store, name, digest.clone()).await;
            (digest, entry)
        })
        .buffered(AT_ONCE);
    let (mut entries, mut read, mut last, mut children) = (Vec::new(), 0, None, 0);
    while children < CHILDREN_LIMIT
        && let Some((digest, entry)) = reading.next().await
    {
        (read, last) = (read + 1, Some(digest));
        if let Some(entry) = entry? {
            let named = entry.description.as_ref();
            children += named.map_or(0, |description| description.manifests.len());
            entries.push(entry);
        }
    }
    Ok((entries, last.map(|last| (read, last))))
}

/// None: it was deleted meanwhile.
async fn entry(
    store: &Store,
    name: &Repository,
    digest: Digest,
) -> Result<Option<ListedManifest>, StoreError> {
    let description = match store.manifest(name, &digest).await {
        Ok(manifest) => Some(Description::of(&manifest)),
        Err(StoreError::Damaged { .. } | StoreError::UnknownManifest(_)) => None,
        Err(error) => return Err(error),
    };
    let target = Target::Digest(digest.clone());
    let pushed_at = match store.pushed_at(name, &target).await {
        Ok(time) => time,
        // Only the link of a damaged manifest stays.
        Err(StoreError::UnknownManifest(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(ListedManifest {
        digest,
        description,
        tags: Vec::new(),
        pushed_at,
    }))
}

async fn add_tags(
    store: &Store,
    name: &Repository,
    entries: &mut [ListedManifest],
) -> Result<(), StoreError> {
    let digests: BTreeSet<_> = entries.iter().map(|entry| entry.digest.clone()).collect();
    if digests.is_empty() {
        return Ok(());
    }
    let mut tags = BTreeMap::<Digest, Vec<Tag>>::new();
    for (tag, digest) in store.tags_at(name, digests).await? {
        tags.entry(digest).or_default().push(tag);
    }
    for entry in entries {
        entry.tags = tags.remove(&entry.digest).unwrap_or_default();
    }
    Ok(())
}

impl Description {
    fn of(manifest: &Manifest) -> Self {
        let is_short = |text: &&String| text.len() <= TYPE_LIMIT;
        Self {
            media_type: manifest.media_type,
            size: manifest.bytes.len() as u64,
            artifact_type: manifest.artifact_type.as_ref().filter(is_short).cloned(),
            subject: manifest.subject.as_ref().map(|it| it.digest.clone()),
            content_size: match manifest.kind {
                Kind::Image { .. } => Some(content_size(manifest)),
                Kind::Index { .. } | Kind::Schema1 { .. } => None,
            },
            manifests: manifest.required_manifests().cloned().collect(),
        }
    }
}

fn content_size(manifest: &Manifest) -> u64 {
    let mut counted = HashSet::new();
    let blobs = manifest.blobs().filter(|blob| counted.insert(&blob.digest));
    blobs.fold(0, |sum, blob| sum.saturating_add(blob.size))
}

pub(crate) fn limits() -> Vec<Limit> {
    vec![
        Limit::fixed(
            "manifests of a page",
            Bound::Count(PAGE_LIMIT as u64, "manifests"),
            "request",
            "the first of them, with a link to the others",
        ),
        Limit::fixed(
            "manifests of the indexes of a page",
            Bound::Count(CHILDREN_LIMIT as u64, "manifests"),
            "request",
            "the page ends with a link to the others",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use blob_store::DiskStore;
    use bytes::Bytes;

    use super::*;

    /// An index whose manifests are not here.
    fn index(first: usize, count: usize) -> Manifest {
        let entries: Vec<_> = (first..first + count)
            .map(|n| {
                json!({
                    "mediaType": oci::media_type::OCI_MANIFEST,
                    "digest": Digest::sha256(n.to_string().as_bytes()),
                    "size": 1,
                })
            })
            .collect();
        let body = json!({ "schemaVersion": 2, "manifests": entries }).to_string();
        Manifest::parse(Bytes::from(body), None).unwrap()
    }

    // limit: manifests of the indexes of a page
    #[tokio::test]
    async fn a_page_ends_when_its_indexes_name_too_many_manifests() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::Disk(DiskStore::open(dir.path()).await.unwrap());
        let name: Repository = "a".parse().unwrap();
        // All at the bound, so that their order does not matter.
        for n in 0..3 {
            let index = index(n, CHILDREN_LIMIT);
            let put = store.put_manifest(&name, &index, &index.digest, &[], true);
            put.await.unwrap();
        }
        let (mut after, mut pages) = (None, Vec::new());
        loop {
            let (entries, last) = page(&store, &name, after.as_ref(), 10).await.unwrap();
            pages.push(entries.len());
            let Some(last) = last else { break };
            assert_eq!(last, entries[entries.len() - 1].digest);
            after = Some(last);
        }
        assert_eq!(pages, [1, 1, 1]);
        let name: Repository = "b".parse().unwrap();
        for n in 0..3 {
            let index = index(n, CHILDREN_LIMIT / 2 - 1);
            let put = store.put_manifest(&name, &index, &index.digest, &[], true);
            put.await.unwrap();
        }
        let (entries, last) = page(&store, &name, None, 10).await.unwrap();
        assert_eq!(
            (entries.len(), last),
            (3, None),
            "below the bound until the last"
        );
        let (entries, last) = page(&store, &name, None, 2).await.unwrap();
        assert_eq!((entries.len(), last.is_some()), (2, true));
    }

    #[test]
    fn blobs_count_once_and_long_types_are_left_out() {
        let blob = |text: &str, size: u64| json!({"mediaType": "x", "digest": Digest::sha256(text.as_bytes()), "size": size});
        for (length, is_listed) in [(TYPE_LIMIT, true), (TYPE_LIMIT + 1, false)] {
            let body = json!({
                "schemaVersion": 2, "artifactType": "t".repeat(length),
                "config": blob("c", 1), "layers": [blob("l", 10), blob("l", 10), blob("m", u64::MAX)],
            });
            let manifest = Manifest::parse(body.to_string().into(), None).unwrap();
            let described = Description::of(&manifest);
            assert_eq!(described.content_size, Some(u64::MAX));
            assert_eq!(described.artifact_type.is_some(), is_listed);
        }
    }
}
