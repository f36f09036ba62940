//! Writes the files of a plan: small members at once, blobs as they arrive, several at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Error;
use oci::Digest;

use self::state::{WriterRecovery, WriterState};
use super::parts::PartFiles;
use super::plan::SetPlan;
use super::space;

mod blob;
mod state;

pub use blob::BlobWriter;

/// The files of a set while they are written. Clones write the same files.
#[derive(Debug, Clone)]
pub struct ArchiveWriter(Arc<WriterState>);

/// An incomplete blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub digest: Digest,
    /// Units: bytes.
    pub size: u64,
    /// Bytes written. Units: bytes.
    pub written: u64,
}

impl ArchiveWriter {
    /// Resumes a stopped run with the same layout, takes over complete blobs of others, and writes all but the blobs.
    ///
    /// Blocking. Errors: Conflict – another run writes there, the medium is full, or a local file has changed since it was
    /// planned; Internal – it cannot be written.
    pub fn open(target: &Path, plan: SetPlan) -> Result<Self, Error> {
        let parts = PartFiles::open(target, &plan)?;
        let prepared =
            WriterState::prepare(&plan, &parts).map_err(|e| space::failed(target, plan.size(), e));
        let WriterRecovery {
            records,
            journal,
            offers,
            left,
        } = prepared?;
        space::check(target, left)?;
        let shared = WriterState::resume(plan, parts, records, journal)
            .map_err(|e| space::failed(target, left, e))?;
        shared.take_over(offers).map_err(|e| shared.failed(e))?;
        for (number, member) in shared.plan.members() {
            shared.write_small(number, member)?;
        }
        Ok(Self(Arc::new(shared)))
    }

    /// Blobs to fetch, in the order of their places.
    pub fn missing(&self) -> Vec<Missing> {
        let state = self.0.state();
        let mut missing: Vec<_> = state
            .blobs
            .iter()
            .filter_map(|(digest, blob)| {
                let missing = Missing {
                    digest: digest.clone(),
                    size: blob.size,
                    written: blob.progress.written()?,
                };
                Some((blob.spots[0], missing))
            })
            .collect();
        missing.sort_by_key(|(spot, _)| *spot);
        missing.into_iter().map(|(_, missing)| missing).collect()
    }

    /// Begins or resumes a blob; none when it is complete.
    ///
    /// Blocking: existing bytes are hashed again. Errors: NotFound – it is not planned; Conflict – another writer has it;
    /// Internal – it cannot be read.
    pub fn blob(&self, digest: &Digest) -> Result<Option<BlobWriter>, Error> {
        BlobWriter::open(&self.0, digest)
    }

    /// Makes everything durable, and renames the files; those of an older set with the same sequence are replaced. Until
    /// [`Self::forget`], the same plan finds the set complete.
    ///
    /// Blocking. Errors: Conflict – a blob is missing; Internal – it cannot be written.
    pub fn name(&self) -> Result<Vec<PathBuf>, Error> {
        if let [Missing { digest, .. }, others @ ..] = &self.missing()[..] {
            let reason = format!(
                "blob {digest} and {} others are not in the archive yet",
                others.len()
            );
            return Err(Error::conflict(reason));
        }
        let named = || {
            // Content is durable before the journal has the line, and the line before the first rename: a run that is stopped
            // between renames finds the line, takes the names back and repeats them.
            for number in 0..self.0.plan.files.len() {
                self.0.parts.file(number)?.sync_all()?;
            }
            self.0.state().journal.note_finishing()?;
            self.0.parts.name()
        };
        named().map_err(|e| self.0.failed(e))
    }

    /// Removes the state that a stopped run resumes from.
    ///
    /// Blocking. Errors: Internal – it cannot be removed.
    pub fn forget(self) -> Result<(), Error> {
        self.0.parts.forget().map_err(|e| self.0.failed(e))
    }

    /// [`Self::name`], and then [`Self::forget`].
    ///
    /// Errors: as these.
    pub fn finish(self) -> Result<Vec<PathBuf>, Error> {
        let files = self.name()?;
        self.forget().map(|()| files)
    }
}
