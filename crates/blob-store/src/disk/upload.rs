//! Uploads: bytes from the network to the disk, hashed as they arrive.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::OwnedMutexGuard;
use tokio::task::{JoinHandle, spawn_blocking};
use uuid::Uuid;

use super::inner::{DiskInner, DiskSession};
use crate::{Result, StoreError};
use oci::{Hasher, Repository};

/// Units: bytes. Size of a write: large enough that switching threads does not count, small enough that a hundred
/// uploads need less than 60 MiB.
const BATCH_BYTES: usize = 256 * 1024;
/// Units: bytes. Writes end at multiples of it: one that ends within a page makes the kernel handle that page twice
/// and fragments the file (measured on ext4: .44 ms of a processor for each MB instead of .30).
const ALIGNMENT: u64 = 64 * 1024;

/// An open upload.
struct UploadFile {
    file: File,
    size: u64,
}

enum BatchEnd {
    No,
    Whole,
    Cut(Box<dyn std::error::Error + Send + Sync>),
}

/// Appends `bytes` to an upload. On a full disk the upload is dropped: all requests need the space of its bytes, and
/// clients restart a refused upload.
pub(super) async fn append<S, E>(
    inner: &Arc<DiskInner>,
    repository: &Repository,
    upload: Uuid,
    session: OwnedMutexGuard<DiskSession>,
    offset: Option<u64>,
    bytes: S,
) -> Result<u64>
where
    S: Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    let appended = receive(inner, repository, upload, session, offset, bytes).await;
    if appended.as_ref().is_err_and(StoreError::is_full) {
        inner.sessions.forget(upload);
        let (inner, repository) = (Arc::clone(inner), repository.clone());
        let dropped = spawn_blocking(move || inner.drop_upload(&repository, upload)).await;
        if let Err(error) = dropped.unwrap_or_else(|error| Err(error.into())) {
            let error = model::error::chain(&error);
            tracing::error!(error, %upload, "an upload without room is not removed");
        }
    }
    appended
}

async fn receive<S, E>(
    inner: &DiskInner,
    repository: &Repository,
    upload: Uuid,
    mut session: OwnedMutexGuard<DiskSession>,
    offset: Option<u64>,
    mut bytes: S,
) -> Result<u64>
where
    S: Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    let size = inner.upload_size(repository, upload)?;
    if offset.is_some_and(|offset| offset != size) {
        return Err(StoreError::OutOfOrder { received: size });
    }
    let path = inner.layout().upload(repository, upload).join("data");
    // The hasher is moved out, so that a cancelled task leaves no stale hash.
    let hasher = session.hasher.take().filter(|_| session.size == size);
    let mut hasher = hasher.or_else(|| (size == 0).then(|| Hasher::new(oci::Algorithm::Sha256)));
    let mut writing: JoinHandle<io::Result<UploadFile>> = spawn_blocking(move || {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(UploadFile { file, size })
    });
    let mut end_of_batch = size;
    let mut tail_of_batch = Vec::new();
    loop {
        let (mut batch, end) = read_batch(&mut bytes, &mut hasher, tail_of_batch).await;
        end_of_batch += length(&batch);
        tail_of_batch = match end {
            BatchEnd::No => split_tail(&mut batch, end_of_batch % ALIGNMENT),
            BatchEnd::Whole | BatchEnd::Cut(_) => Vec::new(),
        };
        end_of_batch -= length(&tail_of_batch);
        // Pipeline: one batch is written while the next one arrives and is hashed, on two cores.
        let sink = written(writing).await?;
        // A released reserve is for deletions only.
        inner.may_add()?;
        writing = spawn_blocking(move || sink.write(&batch));
        let cut = match end {
            BatchEnd::No => continue,
            BatchEnd::Whole => None,
            BatchEnd::Cut(error) => Some(error),
        };
        let sink = written(writing).await?;
        *session = DiskSession {
            size: sink.size,
            hasher,
        };
        return match cut {
            None => Ok(sink.size),
            Some(error) => Err(StoreError::Interrupted(error)),
        };
    }
}

/// Collects and hashes arriving bytes until `batch` is large enough for a write.
async fn read_batch<S, E>(
    bytes: &mut S,
    hasher: &mut Option<Hasher>,
    mut batch: Vec<Bytes>,
) -> (Vec<Bytes>, BatchEnd)
where
    S: Stream<Item = std::result::Result<Bytes, E>> + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    let mut held: usize = batch.iter().map(Bytes::len).sum();
    while held < BATCH_BYTES {
        match bytes.next().await {
            None => return (batch, BatchEnd::Whole),
            Some(Err(error)) => return (batch, BatchEnd::Cut(error.into())),
            Some(Ok(chunk)) => {
                held += chunk.len();
                if let Some(hasher) = hasher {
                    hasher.update(&chunk);
                }
                batch.push(chunk);
            }
        }
    }
    (batch, BatchEnd::No)
}

/// Takes the last `count` bytes off `batch`.
fn split_tail(batch: &mut Vec<Bytes>, count: u64) -> Vec<Bytes> {
    let mut left = usize::try_from(count).unwrap_or(usize::MAX);
    let mut kept = Vec::new();
    while left > 0
        && let Some(mut chunk) = batch.pop()
    {
        let tail = chunk.split_off(chunk.len().saturating_sub(left));
        left -= tail.len();
        if !chunk.is_empty() {
            batch.push(chunk);
        }
        kept.push(tail);
    }
    kept.reverse();
    kept
}

/// Units: bytes.
fn length(chunks: &[Bytes]) -> u64 {
    chunks.iter().map(|chunk| chunk.len() as u64).sum()
}

async fn written(writing: JoinHandle<io::Result<UploadFile>>) -> Result<UploadFile> {
    writing
        .await
        .unwrap_or_else(|error| Err(error.into()))
        .map_err(StoreError::io("writing an upload"))
}

impl UploadFile {
    fn write(mut self, batch: &[Bytes]) -> io::Result<Self> {
        let mut slices: Vec<_> = batch.iter().map(|chunk| IoSlice::new(chunk)).collect();
        let mut left = slices.as_mut_slice();
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match self.file.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.size += length(batch);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_split_off_in_order() {
        let chunks = || vec![Bytes::from("abc"), Bytes::new(), Bytes::from("defg")];
        for count in 0..=7 {
            let mut batch = chunks();
            let kept = split_tail(&mut batch, count);
            assert_eq!((length(&batch), length(&kept)), (7 - count, count));
            assert_eq!([batch, kept].concat().concat(), b"abcdefg");
        }
    }

    #[tokio::test]
    async fn batches_are_as_large_as_the_bound_and_lose_nothing() {
        let content: Vec<u8> = (0..=250).cycle().take(BATCH_BYTES * 3).collect();
        let pieces = content.chunks(50_001).map(Bytes::copy_from_slice);
        let mut bytes = futures_util::stream::iter(pieces.map(Ok::<_, io::Error>));
        let mut hasher = Some(Hasher::new(oci::Algorithm::Sha256));
        let (mut found, mut kept) = (Vec::new(), Vec::new());
        loop {
            let (mut batch, end) = read_batch(&mut bytes, &mut hasher, kept).await;
            let is_end = matches!(end, BatchEnd::Whole);
            let offset = found.len() as u64 + length(&batch);
            kept = if is_end {
                Vec::new()
            } else {
                split_tail(&mut batch, offset % ALIGNMENT)
            };
            found.extend(batch.concat());
            if is_end {
                break;
            }
            assert_eq!(found.len() as u64 % ALIGNMENT, 0);
        }
        assert_eq!(found, content);
        assert_eq!(hasher.unwrap().finish(), oci::Digest::sha256(&content));
    }
}
