//! Objects of clusters in a bucket: replicas need no shared folder.
//!
//! Keys are `<cluster>/<name>`. Invariant: an object appears whole, by one request or by the completion of its multipart
//! upload; parts of crashed processes are removed by the lifecycle rule of the bucket.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use ::bucket::{Bucket, BucketError, ObjectInfo, Path, Position, S3Options, s3};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use model::Error;
use model::ids::ClusterId;
use service::server::ClientQuota;
use tokio::io::AsyncRead;
use tokio::sync::Semaphore;
use tokio_util::io::StreamReader;

use crate::name::ObjectName;

/// Concurrent streamed uploads: each holds up to one part in memory.
pub const MAX_UPLOADS: usize = 64;
/// The same with those that wait, of the clusters of one owner.
pub const UPLOADS_OF_OWNER: usize = 16;
/// Keys of one removal. Source: S3, DeleteObjects.
const MAX_REMOVED: usize = 1000;
/// Key of the object that is written at the start.
const PROBE: &str = "probe";
const ROLE: &str = "the bucket of files (S3_BUCKET)";

/// A bucket with objects of clusters. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FileBucket {
    pub(crate) bucket: Bucket,
    pub(crate) uploads: Arc<Semaphore>,
    pub(crate) owners: ClientQuota,
}

/// An opened object.
pub(crate) struct BucketObject {
    pub(crate) info: ObjectInfo,
    content: BoxStream<'static, io::Result<Bytes>>,
}

impl FileBucket {
    /// Opens a bucket with permission to list, read, write and delete.
    pub(crate) async fn open(options: &S3Options) -> Result<Self, Error> {
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
    pub(crate) fn free_uploads(&self) -> usize {
        self.uploads.available_permits()
    }

    /// Metadata of an object.
    pub(crate) async fn head(
        &self,
        cluster: ClusterId,
        name: &ObjectName,
    ) -> Result<Option<ObjectInfo>, Error> {
        let found = self.bucket.head(&key(cluster, name)?).await;
        found.map_err(failure)
    }

    pub(crate) async fn get(
        &self,
        cluster: ClusterId,
        name: &ObjectName,
    ) -> Result<Option<BucketObject>, Error> {
        let found = self.bucket.open(&key(cluster, name)?).await;
        let found = found.map_err(failure)?;
        Ok(found.map(|(info, content)| BucketObject { info, content }))
    }

    pub(crate) async fn put(
        &self,
        cluster: ClusterId,
        name: &ObjectName,
        content: Vec<u8>,
    ) -> Result<(), Error> {
        let key = key(cluster, name)?;
        let put = self.bucket.put(&key, Bytes::from(content));
        put.await.map_err(failure)
    }

    /// Names and sizes of the cluster's objects, sorted by name.
    pub(crate) async fn list(&self, cluster: ClusterId) -> Result<Vec<(ObjectName, u64)>, Error> {
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
    pub(crate) async fn delete(
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
    pub(crate) async fn by_cluster(&self) -> Result<HashMap<ClusterId, u64>, Error> {
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
    pub(crate) async fn clusters(&self) -> Result<Vec<ClusterId>, Error> {
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
    pub(crate) fn modified(&self) -> SystemTime {
        self.info.modified.into()
    }

    /// The content as a reader.
    pub(crate) fn reader(self) -> impl AsyncRead + Send {
        StreamReader::new(self.content)
    }

    /// The whole content of a small object.
    pub(crate) async fn bytes(self) -> Result<Vec<u8>, Error> {
        let pieces: Vec<Bytes> = self
            .content
            .try_collect()
            .await
            .map_err(|error| Error::unavailable(ROLE, error))?;
        Ok(pieces.concat())
    }
}

pub(crate) fn key(cluster: ClusterId, name: &ObjectName) -> Result<Path, Error> {
    Path::parse(format!("{cluster}/{name}"))
        .map_err(|error| Error::invalid("file_name", error.to_string()))
}

/// Answers of the server may repeat requests: clients get the kind of failure alone, the log has the cause.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn failure(error: BucketError) -> Error {
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
