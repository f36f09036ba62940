//! Downloads of content: verified by the first read, quarantined when damaged.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::download::{DigestCheck, Pieces};
use super::examine::{DamagedContent, examine};
use super::inner::DiskInner;
use super::queries::IndexedBlob;
use super::{scan, staged};
use crate::{Result, StoreError};
use oci::{Digest, Manifest, Repository};

impl DiskInner {
    /// A range of a blob. The first read of a whole blob verifies its digest.
    ///
    /// Errors: UnknownBlob – its bytes are missing or damaged.
    pub(super) fn open_blob(
        self: &Arc<Self>,
        blob: &IndexedBlob,
        first: u64,
        length: u64,
    ) -> Result<Pieces> {
        let (canonical, is_whole) = (&blob.canonical, length == blob.size);
        let is_verified = self.shared.verified.contains(canonical);
        let opened = self.content(canonical, Some(blob.size)).and_then(|file| {
            let check = (is_whole && !is_verified).then(|| DigestCheck::new(self, canonical));
            Pieces::open(file, first, length, check)
        });
        if !is_whole && !is_verified {
            self.verify_in_background(canonical);
        }
        opened.map_err(|error| self.unreadable(canonical, error))
    }

    /// The file of a verified blob. Errors: UnknownBlob – its bytes are missing or damaged.
    pub(super) fn verified_file(&self, blob: &IndexedBlob) -> Result<Option<File>> {
        if !self.shared.verified.contains(&blob.canonical) {
            return Ok(None);
        }
        let opened = self.content(&blob.canonical, Some(blob.size));
        opened
            .map(Some)
            .map_err(|error| self.unreadable(&blob.canonical, error))
    }

    /// The file of content. Errors: UnexpectedEof – its length is not `size`.
    pub(super) fn content(&self, canonical: &Digest, size: Option<u64>) -> io::Result<File> {
        let file = File::open(self.layout().data(canonical))?;
        if size.is_some_and(|size| file.metadata().is_ok_and(|found| found.len() != size)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(file)
    }

    /// The error for a client that reads unreadable content; damaged content is quarantined.
    pub(super) fn unreadable(&self, canonical: &Digest, error: io::Error) -> StoreError {
        let is_damage = staged::is_absent(&error)
            || matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
            );
        if !is_damage {
            return StoreError::io("reading a blob")(error);
        }
        log_failure(canonical, self.quarantine(canonical));
        StoreError::UnknownBlob(canonical.clone())
    }

    /// Quarantines content whose digest differs. Returns whether it was damaged.
    pub(super) fn quarantine(&self, canonical: &Digest) -> Result<bool> {
        let found = examine(self.layout(), canonical, || true)?;
        self.quarantine_if_damaged(canonical, found)
    }

    fn quarantine_if_damaged(
        &self,
        canonical: &Digest,
        found: Option<DamagedContent>,
    ) -> Result<bool> {
        if let Some(condemned) = found {
            return self.committer.quarantine(condemned);
        }
        self.shared.verified.mark(canonical);
        Ok(false)
    }

    /// Verifies content in the background after a range of it was read.
    fn verify_in_background(self: &Arc<Self>, canonical: &Digest) {
        if !self.verify_queue.add(canonical) {
            return;
        }
        let (store, shared) = (Arc::downgrade(self), Arc::clone(&self.shared));
        tokio::task::spawn_blocking(move || {
            // Closing the store does not wait for the hash of a large blob.
            let is_open = || store.strong_count() > 0;
            while let Some(canonical) = store.upgrade().and_then(|inner| inner.verify_queue.next())
            {
                let found = examine(&shared.layout, &canonical, is_open);
                let Some(inner) = store.upgrade() else { return };
                let taken = found.and_then(|found| inner.quarantine_if_damaged(&canonical, found));
                log_failure(&canonical, taken);
            }
        });
    }

    /// A manifest of a repository, verified; `None` when it is missing, or damaged and quarantined.
    pub(super) fn manifest(
        &self,
        repository: &Repository,
        canonical: &Digest,
    ) -> Result<Option<Manifest>> {
        match scan::manifest_of(self.layout(), repository, canonical) {
            Ok(Some(manifest)) => {
                self.shared.verified.mark(canonical);
                Ok(Some(manifest))
            }
            Ok(None) | Err(StoreError::Damaged { .. }) => {
                log_failure(canonical, self.quarantine(canonical));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn log_failure(canonical: &Digest, taken: Result<bool>) {
    if let Err(error) = taken {
        let error = model::error::chain(&error);
        tracing::error!(digest = %canonical, error, "damaged content is not quarantined");
    }
}
