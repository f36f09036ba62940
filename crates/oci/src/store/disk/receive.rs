//! Bytes of an upload from the network to the disk, hashed as they pass.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::OwnedMutexGuard;
use tokio::task::{JoinHandle, spawn_blocking};
use uuid::Uuid;

use super::inner::{Inner, Session};
use crate::store::{Result, StoreError};
use crate::{Hasher, Repository};

/// Units: bytes. What is written at once: large enough that switching threads does not count, small enough that
/// a hundred uploads stay below 60 MiB.
const BATCH_BYTES: usize = 256 * 1024;

/// An open upload with the hash of what it holds, if that is known.
struct Sink {
    file: File,
    size: u64,
    hasher: Option<Hasher>,
}

enum End {
    No,
    Whole,
    Cut(Box<dyn std::error::Error + Send + Sync>),
}

/// Appends `bytes` to an upload. On a full disk the upload is dropped: its bytes are the room that everybody else
/// lacks, and clients begin a refused upload anew.
pub(super) async fn append<S, E>(
    inner: &Arc<Inner>,
    repository: &Repository,
    upload: Uuid,
    session: OwnedMutexGuard<Session>,
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
            tracing::error!(error, %upload, "an upload that found no room keeps its bytes");
        }
    }
    appended
}

async fn receive<S, E>(
    inner: &Inner,
    repository: &Repository,
    upload: Uuid,
    mut session: OwnedMutexGuard<Session>,
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
    // The hasher is taken out: should this task be dropped half-way, no stale hash stays behind.
    let hasher = session.hasher.take().filter(|_| session.size == size);
    let hasher = hasher.or_else(|| (size == 0).then(|| Hasher::new(crate::Algorithm::Sha256)));
    let mut writing: JoinHandle<io::Result<Sink>> = spawn_blocking(move || {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Sink { file, size, hasher })
    });
    loop {
        let (batch, end) = gather(&mut bytes).await;
        // One batch is written while the next one arrives.
        let sink = written(writing).await?;
        // A reserve that was released is for deletions.
        inner.may_add()?;
        writing = spawn_blocking(move || sink.write(&batch));
        let cut = match end {
            End::No => continue,
            End::Whole => None,
            End::Cut(error) => Some(error),
        };
        let sink = written(writing).await?;
        *session = Session {
            size: sink.size,
            hasher: sink.hasher,
        };
        return match cut {
            None => Ok(sink.size),
            Some(error) => Err(StoreError::Interrupted(error)),
        };
    }
}

async fn gather<S, E>(bytes: &mut S) -> (Vec<Bytes>, End)
where
    S: Stream<Item = std::result::Result<Bytes, E>> + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    let (mut batch, mut held) = (Vec::new(), 0);
    while held < BATCH_BYTES {
        match bytes.next().await {
            None => return (batch, End::Whole),
            Some(Err(error)) => return (batch, End::Cut(error.into())),
            Some(Ok(chunk)) => {
                held += chunk.len();
                batch.push(chunk);
            }
        }
    }
    (batch, End::No)
}

async fn written(writing: JoinHandle<io::Result<Sink>>) -> Result<Sink> {
    writing
        .await
        .unwrap_or_else(|error| Err(error.into()))
        .map_err(StoreError::io("writing an upload"))
}

impl Sink {
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
        for chunk in batch {
            self.size += chunk.len() as u64;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(chunk);
            }
        }
        Ok(self)
    }
}
