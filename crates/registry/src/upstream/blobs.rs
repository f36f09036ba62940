//! Blobs of upstreams.

use std::io;

use blob_store::{ContentStore as _, StoreError};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use oci::Digest;
use tokio::sync::watch;

use super::Source;
use super::in_progress::Progress;
use super::metrics::{self, Traffic};
use super::registry::Refusal;
use crate::error::RegistryError;
use crate::storage::Store;

/// A blob that is not here, or not yet.
#[derive(Debug)]
pub(crate) enum Remote {
    /// No fetch is in progress.
    There {
        /// Units: bytes.
        size: u64,
    },
    /// It is on its way.
    Coming(Coming),
}

/// A blob on its way, which can be read as far as it has come.
#[derive(Debug)]
pub(crate) struct Coming {
    source: Source,
    digest: Digest,
    progress: watch::Receiver<Progress>,
    size: u64,
}

impl Remote {
    /// Units: bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::There { size } => *size,
            Self::Coming(coming) => coming.size,
        }
    }
}

impl Source {
    /// A blob was asked for and was here.
    pub(crate) fn had_blob() {
        metrics::asked(Traffic::Blob, true);
    }

    /// A blob that is not here: on its way to stay, when it `is_wanted` and not only asked about.
    ///
    /// Errors: the upstream does not have it, or does not give it.
    pub(crate) async fn blob(
        &self,
        digest: &Digest,
        is_wanted: bool,
    ) -> Result<Remote, RegistryError> {
        metrics::asked(Traffic::Blob, false);
        let fetches = &self.all.0.fetches;
        let progress = match fetches.under_way(&self.name, digest) {
            Some(progress) => progress,
            None if is_wanted => self.begin_fetch(digest),
            None => {
                let size = self.remote_size(digest).await?;
                return Ok(Remote::There { size });
            }
        };
        self.coming(digest, progress).await.map(Remote::Coming)
    }

    async fn coming(
        &self,
        digest: &Digest,
        mut progress: watch::Receiver<Progress>,
    ) -> Result<Coming, RegistryError> {
        let size = loop {
            match &*progress.borrow_and_update() {
                Progress::Asking => {}
                Progress::Coming { size, .. } | Progress::Kept { size } => break *size,
                Progress::Failed(refusal) => return Err(refusal.clone().into()),
            }
            if progress.changed().await.is_err() {
                return Err(self.upstream.is_away_for("a fetch did not end").into());
            }
        };
        Ok(Coming {
            source: self.clone(),
            digest: digest.clone(),
            progress,
            size,
        })
    }

    /// Errors: the upstream does not have it.
    pub(super) async fn remote_size(&self, digest: &Digest) -> Result<u64, Refusal> {
        self.upstream.may_ask()?;
        let _turn = self.upstream.lookups.acquire().await;
        let unknown = || RegistryError::from(StoreError::UnknownBlob(digest.clone()));
        let size = self.upstream.client.blob_size(&self.remote, digest).await;
        self.upstream
            .heard(size)
            .map_err(|error| self.upstream.refusal(&error, unknown()))?
            .ok_or_else(|| Refusal::own(unknown()))
    }
}

type Pieces = <Store as blob_store::ContentStore>::Bytes;

struct Reading {
    coming: Coming,
    /// Units: bytes. Offsets of the next byte and of the end.
    at: u64,
    end: u64,
    pieces: Option<Pieces>,
}

impl Coming {
    /// `length` bytes from `first` on, each as soon as it is here, but the last ones only when the whole is known to
    /// be right.
    pub(crate) fn read(
        self,
        first: u64,
        length: u64,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let reading = Reading {
            coming: self,
            at: first,
            end: first + length,
            pieces: None,
        };
        stream::try_unfold(reading, |mut reading| async move {
            let piece = reading.next().await?;
            Ok(piece.map(|piece| (piece, reading)))
        })
    }
}

impl Reading {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        while self.at < self.end {
            if let Some(pieces) = &mut self.pieces {
                if let Some(piece) = pieces.next().await.transpose()? {
                    self.at += piece.len() as u64;
                    return Ok(Some(piece));
                }
                self.pieces = None;
            } else {
                self.pieces = self.open().await?;
            }
        }
        Ok(None)
    }

    /// The bytes received since; waits for at least one.
    async fn open(&mut self) -> io::Result<Option<Pieces>> {
        let Self {
            coming, at, end, ..
        } = self;
        let store = &coming.source.all.0.store;
        let name = &coming.source.name;
        let progress = coming.progress.borrow_and_update().clone();
        let opened = match progress {
            Progress::Kept { .. } => {
                let pieces = store.open_blob(name, &coming.digest, *at, *end - *at).await;
                return pieces.map(Some).map_err(io::Error::other);
            }
            Progress::Failed(_) => return Err(io::Error::other("the upstream broke off")),
            Progress::Coming {
                written, upload, ..
            } if written > *at => {
                let length = written.min(*end) - *at;
                store.open_upload(name, upload, *at, length).await
            }
            Progress::Asking | Progress::Coming { .. } => Err(StoreError::UnknownUpload),
        };
        match opened {
            Ok(pieces) => Ok(Some(pieces)),
            // Nothing more yet, or it has just become a blob.
            Err(StoreError::UnknownUpload) => match coming.progress.changed().await {
                Ok(()) => Ok(None),
                Err(_) => Err(io::Error::other("a fetch did not end")),
            },
            Err(error) => Err(io::Error::other(error)),
        }
    }
}
