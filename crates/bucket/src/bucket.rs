//! Requests to a bucket. Each has a timeout, and only an object that S3 itself reports as missing counts as missing:
//! every other failure makes the store unavailable.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use model::time::Timestamp;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, PutOptions, PutPayload,
};

use crate::error::{BucketError, BucketResult, is_absent};

/// Timeout of a request about names or a few kilobytes, retries included.
const SMALL_LIMIT: Duration = Duration::from_secs(30);
/// Timeout of a request that moves a blob or a part of it, enough to copy five gigabytes.
const LARGE_LIMIT: Duration = Duration::from_mins(10);
/// Names in one page. Source: S3, ListObjectsV2.
const PAGE_LIMIT: usize = 1000;

/// Operations that a bucket has to support.
pub trait Objects: ObjectStore + MultipartStore + PaginatedListStore {}

impl<T: ObjectStore + MultipartStore + PaginatedListStore> Objects for T {}

/// A bucket. Clones share it.
#[derive(Clone)]
pub struct Bucket(Arc<dyn Objects>);

/// Metadata of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Units: bytes.
    pub size: u64,
    /// Time of the last change, by the bucket's clock.
    pub modified: Timestamp,
    /// Entity tag, which changes with the content.
    pub tag: Option<String>,
}

/// An object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEntry {
    /// The key after the listed prefix.
    pub below: String,
    pub meta: ObjectInfo,
}

/// A page of a listing.
#[derive(Debug, Default)]
pub struct ListingPage {
    pub entries: Vec<ObjectEntry>,
    /// Keys after the prefix, cut at the next slash.
    pub folders: Vec<String>,
    /// Continuation token.
    pub next: Option<String>,
}

/// Start of a page.
#[derive(Debug, Clone)]
pub enum Position {
    /// After this key, relative to the prefix.
    After(String),
    /// At a continuation token.
    Token(String),
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({})", self.0)
    }
}

impl Bucket {
    /// The bucket behind a client.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self(objects)
    }

    /// Metadata of an object.
    ///
    /// Errors: the bucket's.
    pub async fn head(&self, key: &Path) -> BucketResult<Option<ObjectInfo>> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let found = timed(SMALL_LIMIT, self.0.get_opts(key, options)).await?;
        Ok(found.map(|found| ObjectInfo::of(&found.meta)))
    }

    /// A small object. Errors: `TooLarge` – it is larger than `limit`.
    pub async fn get(&self, key: &Path, limit: u64) -> BucketResult<Option<Bytes>> {
        let read = async {
            let found = self.0.get_opts(key, GetOptions::default()).await?;
            let size = found.meta.size;
            if size > limit {
                return Ok(Err(size));
            }
            found.bytes().await.map(Ok)
        };
        match timed(SMALL_LIMIT, read).await? {
            None => Ok(None),
            Some(Ok(bytes)) => Ok(Some(bytes)),
            Some(Err(size)) => Err(BucketError::TooLarge {
                key: key.to_string(),
                size,
                limit,
            }),
        }
    }

    /// The size of an object, and a range of its bytes.
    ///
    /// Errors: the bucket's.
    pub async fn read(
        &self,
        key: &Path,
        part: Range<u64>,
    ) -> BucketResult<Option<(u64, BoxStream<'static, std::io::Result<Bytes>>)>> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(part)),
            ..GetOptions::default()
        };
        let found = timed(SMALL_LIMIT, self.0.get_opts(key, options)).await?;
        Ok(found.map(|found| {
            let size = found.meta.size;
            let bytes = found.into_stream().map_err(std::io::Error::other);
            (size, bytes.boxed())
        }))
    }

    /// An object with its content, in pieces.
    ///
    /// Errors: the bucket's.
    pub async fn open(
        &self,
        key: &Path,
    ) -> BucketResult<Option<(ObjectInfo, BoxStream<'static, std::io::Result<Bytes>>)>> {
        let found = timed(SMALL_LIMIT, self.0.get_opts(key, GetOptions::default())).await?;
        Ok(found.map(|found| {
            let info = ObjectInfo::of(&found.meta);
            let bytes = found.into_stream().map_err(std::io::Error::other);
            (info, bytes.boxed())
        }))
    }

    /// Stores an object.
    ///
    /// Errors: the bucket's.
    pub async fn put(&self, key: &Path, content: impl Into<PutPayload>) -> BucketResult<()> {
        let put = self.0.put_opts(key, content.into(), PutOptions::default());
        required(timed(LARGE_LIMIT, put).await?).map(drop)
    }

    /// Deletes objects, including missing ones.
    ///
    /// Errors: the bucket's.
    pub async fn delete(&self, keys: Vec<Path>) -> BucketResult<()> {
        let removal = async {
            let keys = stream::iter(keys.into_iter().map(Ok)).boxed();
            let mut removed = self.0.delete_stream(keys);
            while let Some(result) = removed.next().await {
                match result {
                    Err(error) if !is_absent(&error) => return Err(error),
                    _ => {}
                }
            }
            Ok(())
        };
        required(timed(SMALL_LIMIT, removal).await?)
    }

    /// Copies an object. Returns false if `from` does not exist.
    ///
    /// Errors: the bucket's.
    pub async fn copy(&self, from: &Path, to: &Path) -> BucketResult<bool> {
        let copy = self.0.copy_opts(from, to, CopyOptions::default());
        Ok(timed(LARGE_LIMIT, copy).await?.is_some())
    }

    /// Begins a multipart upload; returns its id.
    ///
    /// Errors: the bucket's.
    pub async fn begin_parts(&self, key: &Path) -> BucketResult<String> {
        required(timed(SMALL_LIMIT, self.0.create_multipart(key)).await?)
    }

    /// Stores part `index` of a multipart upload.
    ///
    /// Errors: the bucket's.
    pub async fn put_part(
        &self,
        key: &Path,
        id: &String,
        index: usize,
        content: PutPayload,
    ) -> BucketResult<PartId> {
        let put = self.0.put_part(key, id, index, content);
        required(timed(LARGE_LIMIT, put).await?)
    }

    /// Completes a multipart upload: the object appears whole.
    ///
    /// Errors: the bucket's.
    pub async fn end_parts(&self, key: &Path, id: &String, parts: Vec<PartId>) -> BucketResult<()> {
        let end = self.0.complete_multipart(key, id, parts);
        required(timed(LARGE_LIMIT, end).await?).map(drop)
    }

    /// Aborts a multipart upload, also one that does not exist any more.
    ///
    /// Errors: the bucket's.
    pub async fn drop_parts(&self, key: &Path, id: &String) -> BucketResult<()> {
        timed(SMALL_LIMIT, self.0.abort_multipart(key, id))
            .await
            .map(drop)
    }

    /// A page of the sorted keys with `prefix`; with `is_folded`, cut at the next slash.
    ///
    /// Errors: the bucket's.
    pub async fn page(
        &self,
        prefix: &str,
        from: Option<Position>,
        is_folded: bool,
    ) -> BucketResult<ListingPage> {
        self.page_of(prefix, from, is_folded, PAGE_LIMIT).await
    }

    async fn page_of(
        &self,
        prefix: &str,
        from: Option<Position>,
        is_folded: bool,
        limit: usize,
    ) -> BucketResult<ListingPage> {
        let (offset, page_token) = match from {
            None => (None, None),
            Some(Position::After(below)) => (Some(format!("{prefix}{below}")), None),
            Some(Position::Token(token)) => (None, Some(token)),
        };
        let options = PaginatedListOptions {
            offset,
            page_token,
            delimiter: is_folded.then_some("/".into()),
            max_keys: Some(limit),
            ..PaginatedListOptions::default()
        };
        let listed = timed(SMALL_LIMIT, self.0.list_paginated(Some(prefix), options)).await?;
        let Some(listed) = listed else {
            return Ok(ListingPage::default());
        };
        let below = |path: &Path| path.as_ref().strip_prefix(prefix).map(str::to_owned);
        let mut page = ListingPage {
            entries: Vec::new(),
            folders: Vec::new(),
            next: listed.page_token,
        };
        for meta in &listed.result.objects {
            page.entries
                .extend(below(&meta.location).map(|below| ObjectEntry {
                    below,
                    meta: ObjectInfo::of(meta),
                }));
        }
        page.folders
            .extend(listed.result.common_prefixes.iter().filter_map(below));
        Ok(page)
    }

    /// Whether any key has the prefix.
    ///
    /// Errors: the bucket's.
    pub async fn is_any(&self, prefix: &str) -> BucketResult<bool> {
        let page = self.page_of(prefix, None, false, 1).await?;
        Ok(!page.entries.is_empty())
    }

    /// All objects with `prefix`, sorted by key.
    pub fn list(&self, prefix: String) -> impl Stream<Item = BucketResult<ObjectEntry>> + Send {
        self.list_from(prefix, None)
    }

    /// [`Self::list`] from a position on.
    pub fn list_from(
        &self,
        prefix: String,
        from: Option<Position>,
    ) -> impl Stream<Item = BucketResult<ObjectEntry>> + Send {
        let pages = stream::try_unfold(Some(from), move |from| {
            let (bucket, prefix) = (self.clone(), prefix.clone());
            async move {
                let Some(from) = from else {
                    return Ok(None);
                };
                let page = bucket.page(&prefix, from, false).await?;
                let next = page.next.map(|token| Some(Position::Token(token)));
                let entries = page.entries.into_iter().map(Ok);
                Ok::<_, BucketError>(Some((stream::iter(entries), next)))
            }
        });
        pages.try_flatten()
    }
}

impl ObjectInfo {
    fn of(meta: &ObjectMeta) -> Self {
        Self {
            size: meta.size,
            modified: meta.last_modified,
            tag: meta.e_tag.clone(),
        }
    }
}

/// The response within `limit`, or `None` when the object does not exist.
async fn timed<T>(
    limit: Duration,
    request: impl Future<Output = object_store::Result<T>>,
) -> BucketResult<Option<T>> {
    match tokio::time::timeout(limit, request).await {
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(error)) if is_absent(&error) => Ok(None),
        Ok(Err(error)) => Err(error.into()),
        Err(elapsed) => Err(BucketError::Unavailable(elapsed.into())),
    }
}

/// The response to a request without a source object: a 404 then means that the bucket is missing.
fn required<T>(answer: Option<T>) -> BucketResult<T> {
    answer.ok_or(BucketError::Missing)
}
