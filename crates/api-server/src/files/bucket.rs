//! Objects of clusters in a bucket: replicas need no shared folder.
//!
//! Keys are `<cluster>/<name>`. Invariant: an object appears whole, by one request or by the completion of its multipart
//! upload; parts of crashed processes are removed by the lifecycle rule of the bucket.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use ::bucket::{
    Bucket, BucketError, ObjectInfo, PART_BYTES_MIN, PartId, Path, Position, S3Options, s3,
};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use model::Error;
use model::ids::ClusterId;
use service::server::ClientQuota;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::Semaphore;
use tokio_util::io::StreamReader;

use super::name::ObjectName;
use super::quota::Reservation;

/// Part of a multipart upload, and longest object of one request. Units: bytes.
const PART_BYTES: usize = 5 << 20;
const _: () = assert!(PART_BYTES as u64 >= PART_BYTES_MIN);
/// Concurrent streamed uploads: each holds up to one part in memory.
pub(crate) const MAX_UPLOADS: usize = 64;
/// The same with those that wait, of the clusters of one owner.
pub(crate) const UPLOADS_OF_OWNER: usize = 16;
/// Buffer of a streamed upload. Units: bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// Keys of one removal. Source: S3, DeleteObjects.
const MAX_REMOVED: usize = 1000;
/// Key of the object that is written at the start.
const PROBE: &str = "probe";
const ROLE: &str = "the bucket of files (S3_BUCKET)";

/// A bucket with objects of clusters. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct FileBucket {
    bucket: Bucket,
    uploads: Arc<Semaphore>,
    owners: ClientQuota,
}

/// An opened object.
pub(super) struct BucketObject {
    pub(super) info: ObjectInfo,
    content: BoxStream<'static, io::Result<Bytes>>,
}

impl FileBucket {
    /// Opens a bucket with permission to list, read, write and delete.
    pub(super) async fn open(options: &S3Options) -> Result<Self, Error> {
        let bucket = Bucket::new(Arc::new(s3(options)?));
        let key = Path::from(PROBE);
        bucket.is_any(PROBE).await.map_err(failure)?;
        bucket.put(&key, "").await.map_err(failure)?;
        bucket.head(&key).await.map_err(failure)?;
        bucket.delete(vec![key]).await.map_err(failure)?;
        Ok(Self {
            bucket,
            uploads: Arc::new(Semaphore::new(MAX_UPLOADS)),
            owners: ClientQuota::new(0, UPLOADS_OF_OWNER),
        })
    }

    #[cfg(test)]
    pub(super) fn free_uploads(&self) -> usize {
        self.uploads.available_permits()
    }

    /// Metadata of an object.
    pub(super) async fn head(
        &self,
        cluster: ClusterId,
        name: &ObjectName,
    ) -> Result<Option<ObjectInfo>, Error> {
        let found = self.bucket.head(&key(cluster, name)?).await;
        found.map_err(failure)
    }

    pub(super) async fn get(
        &self,
        cluster: ClusterId,
        name: &ObjectName,
    ) -> Result<Option<BucketObject>, Error> {
        let found = self.bucket.open(&key(cluster, name)?).await;
        let found = found.map_err(failure)?;
        Ok(found.map(|(info, content)| BucketObject { info, content }))
    }

    pub(super) async fn put(
        &self,
        cluster: ClusterId,
        name: &ObjectName,
        content: Vec<u8>,
    ) -> Result<(), Error> {
        let key = key(cluster, name)?;
        let put = self.bucket.put(&key, Bytes::from(content));
        put.await.map_err(failure)
    }

    /// Stores a stream, up to `limit` bytes; returns the length.
    pub(super) async fn put_stream(
        &self,
        cluster: ClusterId,
        name: &ObjectName,
        source: impl AsyncRead,
        limit: u64,
        reservation: &mut Reservation,
    ) -> Result<u64, Error> {
        let key = key(cluster, name)?;
        let share = self.owners.acquire(reservation.holder());
        let _share = share.map_err(|_| Error::Unavailable {
            what: "one more upload of logs of this owner",
            source: None,
        })?;
        let permit = self.uploads.acquire().await;
        let _permit = permit.map_err(|error| Error::internal("storing a file", error))?;
        let mut source = std::pin::pin!(source);
        let mut upload = StreamedUpload::new(&self.bucket, &key);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut length = 0;
        loop {
            let count = source.read(&mut chunk).await;
            let count = count.map_err(|error| Error::internal(format!("storing {key}"), error))?;
            if count == 0 {
                break;
            }
            length += count as u64;
            if length > limit {
                return Err(Error::TooLarge {
                    what: "upload",
                    limit,
                });
            }
            reservation.grow(count as u64)?;
            upload.write(&chunk[..count]).await.map_err(failure)?;
        }
        upload.complete().await.map_err(failure)?;
        Ok(length)
    }

    /// Names and sizes of the cluster's objects, sorted by name.
    pub(super) async fn list(&self, cluster: ClusterId) -> Result<Vec<(ObjectName, u64)>, Error> {
        let listed = self.bucket.list(format!("{cluster}/"));
        let named = listed.try_filter_map(async |entry| {
            // Objects of others are ignored.
            let name = ObjectName::parse(&entry.below).ok();
            Ok(name.map(|name| (name, entry.meta.size)))
        });
        let mut names: Vec<_> = named.try_collect().await.map_err(failure)?;
        names.sort();
        Ok(names)
    }

    /// Deletes objects, including missing ones.
    pub(super) async fn delete(
        &self,
        cluster: ClusterId,
        names: &[ObjectName],
    ) -> Result<(), Error> {
        for names in names.chunks(MAX_REMOVED) {
            let keys = names.iter().map(|name| key(cluster, name));
            let keys = keys.collect::<Result<_, _>>()?;
            self.bucket.delete(keys).await.map_err(failure)?;
        }
        Ok(())
    }

    /// Usage of each cluster. Units: bytes.
    pub(super) async fn by_cluster(&self) -> Result<HashMap<ClusterId, u64>, Error> {
        let objects = self.bucket.list(String::new());
        let sum = objects.try_fold(HashMap::new(), async |mut usage, entry| {
            let id = entry.below.split('/').next();
            if let Some(id) = id.and_then(|id| id.parse().ok()) {
                *usage.entry(id).or_default() += entry.meta.size;
            }
            Ok(usage)
        });
        sum.await.map_err(failure)
    }

    /// Clusters with objects.
    pub(super) async fn clusters(&self) -> Result<Vec<ClusterId>, Error> {
        let (mut clusters, mut from) = (Vec::new(), None);
        loop {
            let page = self.bucket.page("", from, true).await.map_err(failure)?;
            let ids = page.folders.iter().map(|id| id.trim_end_matches('/'));
            clusters.extend(ids.filter_map(|id| id.parse::<ClusterId>().ok()));
            match page.next {
                Some(token) => from = Some(Position::Token(token)),
                None => return Ok(clusters),
            }
        }
    }
}

impl BucketObject {
    pub(super) fn modified(&self) -> SystemTime {
        self.info.modified.into()
    }

    /// The content as a reader.
    pub(super) fn reader(self) -> impl AsyncRead + Send {
        StreamReader::new(self.content)
    }

    /// The whole content of a small object.
    pub(super) async fn bytes(self) -> Result<Vec<u8>, Error> {
        let pieces: Vec<Bytes> = self
            .content
            .try_collect()
            .await
            .map_err(|error| Error::unavailable(ROLE, error))?;
        Ok(pieces.concat())
    }
}

/// An upload in progress: one request, or a multipart upload that is aborted unless it is completed.
struct StreamedUpload<'a> {
    bucket: &'a Bucket,
    key: &'a Path,
    part: Vec<u8>,
    /// Id of the multipart upload, once it has begun.
    id: Option<String>,
    sent: Vec<PartId>,
}

impl<'a> StreamedUpload<'a> {
    fn new(bucket: &'a Bucket, key: &'a Path) -> Self {
        Self {
            bucket,
            key,
            part: Vec::new(),
            id: None,
            sent: Vec::new(),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> ::bucket::BucketResult<()> {
        self.part.extend_from_slice(bytes);
        if self.part.len() < PART_BYTES {
            return Ok(());
        }
        if self.id.is_none() {
            self.id = Some(self.bucket.begin_parts(self.key).await?);
        }
        self.send().await
    }

    async fn send(&mut self) -> ::bucket::BucketResult<()> {
        if let Some(id) = &self.id {
            let content = Bytes::from(std::mem::take(&mut self.part)).into();
            let put = self.bucket.put_part(self.key, id, self.sent.len(), content);
            self.sent.push(put.await?);
        }
        Ok(())
    }

    async fn complete(mut self) -> ::bucket::BucketResult<()> {
        if self.id.is_some() && !self.part.is_empty() {
            self.send().await?;
        }
        match &self.id {
            None => {
                let part = std::mem::take(&mut self.part);
                self.bucket.put(self.key, Bytes::from(part)).await
            }
            Some(id) => {
                let sent = std::mem::take(&mut self.sent);
                self.bucket.end_parts(self.key, id, sent).await?;
                self.id = None;
                Ok(())
            }
        }
    }
}

impl Drop for StreamedUpload<'_> {
    /// On a task of its own, because drop cannot await: a client that disconnects drops its upload.
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (bucket, key) = (self.bucket.clone(), self.key.clone());
        runtime.spawn(async move {
            if let Err(error) = bucket.drop_parts(&key, &id).await {
                let error = model::error::chain(&error);
                tracing::warn!(error, key = %key, "parts of an upload not removed");
            }
        });
    }
}

fn key(cluster: ClusterId, name: &ObjectName) -> Result<Path, Error> {
    Path::parse(format!("{cluster}/{name}"))
        .map_err(|error| Error::invalid("file_name", error.to_string()))
}

/// Answers of the server may repeat requests: clients get the kind of failure alone, the log has the cause.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failure(error: BucketError) -> Error {
    let remedy = match &error {
        BucketError::Unavailable(_) => "it does not answer (S3_ENDPOINT_URL)",
        BucketError::Missing => "it does not exist: create it, or correct S3_BUCKET",
        BucketError::Denied(_) => {
            "it refuses AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, which have to list, read, write and delete"
        }
        BucketError::Full(_) => "it is full",
        BucketError::TooLarge { .. } => "an object is too large",
    };
    let error = model::error::chain(&error);
    tracing::warn!(error, "request to the bucket of files failed");
    Error::unavailable(ROLE, remedy)
}
