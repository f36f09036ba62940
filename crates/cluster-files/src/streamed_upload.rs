//! Streamed uploads to a bucket: bounded in number and memory, within the quotas.

use ::bucket::{Bucket, PART_BYTES_MIN, PartId, Path};
use bytes::Bytes;
use model::Error;
use model::ids::ClusterId;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::bucket::{FileBucket, failure, key};
use crate::name::ObjectName;
use crate::quota::Reservation;

/// Part of a multipart upload, and longest object of one request. Units: bytes.
const PART_BYTES: usize = 5 << 20;
const _: () = assert!(PART_BYTES as u64 >= PART_BYTES_MIN);
/// Buffer of a streamed upload. Units: bytes.
const CHUNK_BYTES: usize = 64 * 1024;

impl FileBucket {
    /// Stores a stream, up to `limit` bytes; returns the length.
    pub(crate) async fn put_stream(
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
            reservation.receive(count as u64, length, limit)?;
            upload.write(&chunk[..count]).await.map_err(failure)?;
        }
        upload.complete().await.map_err(failure)?;
        Ok(length)
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
