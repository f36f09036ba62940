//! Streaming of bytes to one object: a small one in one request, a large one by multipart upload.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use object_store::PutPayload;
use object_store::multipart::PartId;
use object_store::path::Path;
use tokio::task::{JoinHandle, spawn_blocking};

use super::inner::BucketInner;
use super::multipart_record::MultipartRecord;
use super::requests::unavailable;
use crate::{Result, StoreError};
use bucket::Bucket;
use oci::{Algorithm, Digest, Hasher};

/// Parts of one object. Source: S3.
pub(super) const PARTS_LIMIT: u64 = 10_000;
/// Parts in flight while the next one is received.
const IN_FLIGHT: usize = 2;

/// Units: bytes. Batch of a hash.
const HASH_BYTES: usize = 1 << 20;

/// Destination of a stream.
#[derive(Debug)]
pub(super) struct WriteTarget {
    pub(super) key: Path,
    /// Key of the record about the multipart upload, by which it can be aborted or completed after a crash.
    pub(super) parts: Option<Path>,
    /// Units: bytes.
    pub(super) part_bytes: u64,
    /// Units: bytes. The object ends with the part that reaches it.
    pub(super) limit: u64,
}

/// The written object; with no bytes, none is written.
#[derive(Debug)]
pub(super) struct Written {
    /// Units: bytes.
    pub(super) size: u64,
    pub(super) hasher: Option<Hasher>,
    pub(super) end: BatchEnd,
}

/// End of a batch.
#[derive(Debug)]
pub(super) enum BatchEnd {
    No,
    Whole,
    Cut(Box<dyn std::error::Error + Send + Sync>),
}

/// Incoming bytes, split into batches.
#[derive(Debug)]
pub(super) struct ByteSource<S> {
    bytes: S,
    /// Bytes after the last batch.
    rest: Bytes,
}

impl<S, E> ByteSource<S>
where
    S: Stream<Item = std::result::Result<Bytes, E>> + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    pub(super) fn new(bytes: S) -> Self {
        let rest = Bytes::new();
        Self { bytes, rest }
    }

    /// The next `length` bytes, or fewer at the end: some S3 servers require parts of equal length.
    pub(super) async fn batch(&mut self, length: usize) -> (Vec<Bytes>, BatchEnd) {
        let (mut batch, mut missing) = (Vec::new(), length);
        loop {
            let mut chunk = std::mem::take(&mut self.rest);
            self.rest = chunk.split_off(missing.min(chunk.len()));
            missing -= chunk.len();
            if !chunk.is_empty() {
                batch.push(chunk);
            }
            if missing == 0 {
                return (batch, BatchEnd::No);
            }
            match self.bytes.next().await {
                None => return (batch, BatchEnd::Whole),
                Some(Err(error)) => return (batch, BatchEnd::Cut(error.into())),
                Some(Ok(chunk)) => self.rest = chunk,
            }
        }
    }
}

/// Writes and hashes `bytes`. When they are interrupted, the bytes before are kept.
pub(super) async fn write<S, E>(
    inner: &BucketInner,
    target: &WriteTarget,
    bytes: &mut ByteSource<S>,
    mut hasher: Option<Hasher>,
) -> Result<Written>
where
    S: Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    let part_bytes = usize::try_from(target.part_bytes).unwrap_or(usize::MAX);
    let (batch, mut end) = bytes.batch(part_bytes).await;
    let mut size = length(&batch);
    if !matches!(end, BatchEnd::No) {
        hasher = update_hash(hasher, batch.clone()).await?;
        if size > 0 {
            inner.bucket.put(&target.key, payload(batch)).await?;
        }
        return Ok(Written { size, hasher, end });
    }
    // Back-pressure: a waiting upload holds one part in memory, and its client waits with it.
    let _permit = inner.large_writes.acquire().await;
    let mut parts = MultipartWrite::begin(&inner.bucket, target).await?;
    let mut batch = Some(batch);
    while let Some(full) = batch.take() {
        let sent = parts.send(full.clone()).await;
        let sent = match sent {
            Ok(()) => update_hash(hasher.take(), full).await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(passed) => hasher = passed,
            Err(error) => return parts.abort(error).await,
        }
        if matches!(end, BatchEnd::No) && size < target.limit {
            let received = parts.store_while(bytes.batch(part_bytes)).await;
            let (next, at_end) = match received {
                Ok(received) => received,
                Err(error) => return parts.abort(error).await,
            };
            end = at_end;
            size += length(&next);
            batch = (!next.is_empty()).then_some(next);
        }
    }
    parts.end().await?;
    Ok(Written { size, hasher, end })
}

/// A multipart upload in progress.
struct MultipartWrite<'a> {
    bucket: &'a Bucket,
    target: &'a WriteTarget,
    id: String,
    sent: Vec<PartId>,
    next: usize,
    in_flight: VecDeque<JoinHandle<Result<PartId>>>,
    /// Parts in the last record.
    recorded: usize,
    /// The record being written.
    recording: Option<JoinHandle<()>>,
}

impl<'a> MultipartWrite<'a> {
    async fn begin(bucket: &'a Bucket, target: &'a WriteTarget) -> Result<Self> {
        let id = bucket.begin_parts(&target.key).await?;
        let parts = Self {
            bucket,
            target,
            id,
            sent: Vec::new(),
            next: 0,
            in_flight: VecDeque::new(),
            recorded: 0,
            recording: None,
        };
        if let Some(record) = &target.parts
            && let Err(error) = bucket.put(record, parts.record()).await
        {
            return parts.abort(error.into()).await;
        }
        Ok(parts)
    }

    async fn send(&mut self, batch: Vec<Bytes>) -> Result<()> {
        if self.in_flight.len() >= IN_FLIGHT {
            self.wait_for_one().await?;
        }
        let (bucket, key) = (self.bucket.clone(), self.target.key.clone());
        let (id, index) = (self.id.clone(), self.next);
        self.next += 1;
        let content = payload(batch);
        let sending = async move { Ok(bucket.put_part(&key, &id, index, content).await?) };
        self.in_flight.push_back(tokio::spawn(sending));
        Ok(())
    }

    async fn wait_for_one(&mut self) -> Result<()> {
        if let Some(sending) = self.in_flight.pop_front() {
            let part = sending.await?;
            self.sent.push(part?);
            self.record_parts();
        }
        Ok(())
    }

    /// The result of `receiving`. Meanwhile parts are recorded as they are stored, also while the client pauses.
    async fn store_while<T>(&mut self, receiving: impl Future<Output = T>) -> Result<T> {
        let mut receiving = pin!(receiving);
        loop {
            self.record_parts();
            tokio::select! {
                received = &mut receiving => return Ok(received),
                part = oldest(&mut self.in_flight) => {
                    self.in_flight.pop_front();
                    self.sent.push(part?);
                }
                () = ended(&mut self.recording) => self.recording = None,
            }
        }
    }

    fn record(&self) -> String {
        let record = MultipartRecord {
            key: self.target.key.clone(),
            id: self.id.clone(),
            parts: self.sent.clone(),
        };
        record.to_string()
    }

    /// Records the stored parts in the background, unless a record is being written.
    fn record_parts(&mut self) {
        let is_busy = |task: &JoinHandle<()>| !task.is_finished();
        if let Some(key) = self.target.parts.clone()
            && self.recorded < self.sent.len()
            && !self.recording.as_ref().is_some_and(is_busy)
        {
            self.recorded = self.sent.len();
            let (bucket, record) = (self.bucket.clone(), self.record());
            self.recording = Some(tokio::spawn(async move {
                // Without it, a crash loses the parts since the last record.
                bucket.put(&key, record).await.ok();
            }));
        }
    }

    async fn end(mut self) -> Result<()> {
        while !self.in_flight.is_empty() {
            if let Err(error) = self.wait_for_one().await {
                return self.abort(error).await;
            }
        }
        let sent = std::mem::take(&mut self.sent);
        if let Err(error) = self
            .bucket
            .end_parts(&self.target.key, &self.id, sent)
            .await
        {
            return self.abort(error.into()).await;
        }
        // After the completion: until then the record is needed to abort the parts.
        self.forget().await;
        Ok(())
    }

    async fn abort<T>(mut self, error: StoreError) -> Result<T> {
        for sending in self.in_flight.drain(..) {
            sending.abort();
        }
        match self.bucket.drop_parts(&self.target.key, &self.id).await {
            Ok(()) => self.forget().await,
            Err(error) => {
                let error = model::error::chain(&error);
                tracing::warn!(
                    error,
                    "the parts of an upload are not removed until it is dropped"
                );
            }
        }
        Err(error)
    }

    async fn forget(&mut self) {
        if let Some(recording) = self.recording.take() {
            recording.await.ok();
        }
        if let Some(record) = &self.target.parts {
            self.bucket.delete(vec![record.clone()]).await.ok();
        }
    }
}

/// The result of the oldest part; pending without any.
async fn oldest(in_flight: &mut VecDeque<JoinHandle<Result<PartId>>>) -> Result<PartId> {
    match in_flight.front_mut() {
        Some(sending) => sending.await?,
        None => pending().await,
    }
}

/// The end of a record's write; pending without any.
async fn ended(recording: &mut Option<JoinHandle<()>>) {
    match recording {
        Some(task) => drop(task.await),
        None => pending().await,
    }
}

/// The digest of `bytes`. Errors: Unavailable – they were interrupted.
pub(super) async fn hash<S, E>(bytes: S, algorithm: Algorithm) -> Result<Digest>
where
    S: Stream<Item = std::result::Result<Bytes, E>> + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    let mut bytes = ByteSource::new(bytes);
    let mut hasher = Hasher::new(algorithm);
    loop {
        let (batch, end) = bytes.batch(HASH_BYTES).await;
        hasher = hash_batch(hasher, batch).await?;
        match end {
            BatchEnd::No => {}
            BatchEnd::Whole => return Ok(hasher.finish()),
            BatchEnd::Cut(error) => return Err(unavailable(error)),
        }
    }
}

/// `hasher` after `batch`.
async fn hash_batch(mut hasher: Hasher, batch: Vec<Bytes>) -> Result<Hasher> {
    let hashing = spawn_blocking(move || {
        for chunk in &batch {
            hasher.update(chunk);
        }
        hasher
    });
    Ok(hashing.await?)
}

async fn update_hash(hasher: Option<Hasher>, batch: Vec<Bytes>) -> Result<Option<Hasher>> {
    match hasher {
        Some(hasher) => hash_batch(hasher, batch).await.map(Some),
        None => Ok(None),
    }
}

fn length(batch: &[Bytes]) -> u64 {
    batch.iter().map(|chunk| chunk.len() as u64).sum()
}

fn payload(batch: Vec<Bytes>) -> PutPayload {
    batch.into_iter().collect()
}
