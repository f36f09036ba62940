//! The writer of one blob.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use model::Error;
use oci::{Digest, Hasher};

use super::state::{BlobProgress, JournaledBlobs, WriterState};
use crate::archive::takeover;

/// Bytes between two lines of the journal: at most these are fetched again after a kill. Units: bytes.
const NOTE_BYTES: u64 = 4 << 20;

/// Writes one blob from front to back. Bytes written before it is dropped are resumed.
#[derive(Debug)]
pub struct BlobWriter {
    shared: Arc<WriterState>,
    digest: Digest,
    size: u64,
    file: File,
    offset: u64,
    /// None where the source verifies the digest.
    hasher: Option<Hasher>,
    written: u64,
    /// Bytes recorded in the journal.
    noted: u64,
    is_done: bool,
}

impl BlobWriter {
    pub(super) fn open(shared: &Arc<WriterState>, digest: &Digest) -> Result<Option<Self>, Error> {
        let mut state = shared.state();
        let blob = state.blobs.get_mut(digest);
        let blob = blob.ok_or_else(|| Error::not_found("planned blob", digest))?;
        let (written, size, spot) = match blob.progress {
            BlobProgress::Whole => return Ok(None),
            BlobProgress::Busy(_) => {
                return Err(Error::conflict(format!("blob {digest} is being written")));
            }
            BlobProgress::Partial(written) => (written, blob.size, blob.spots[0]),
        };
        blob.progress = BlobProgress::Busy(written);
        drop(state);
        let opened = || {
            let file = shared.parts.file(spot.0)?;
            let hasher = takeover::hashed(&file, spot.1, written, digest)?;
            Ok((file, hasher.ok_or(io::ErrorKind::UnexpectedEof)?))
        };
        match opened() {
            Ok((file, hasher)) => Ok(Some(Self {
                shared: shared.clone(),
                digest: digest.clone(),
                size,
                file,
                offset: spot.1,
                hasher: Some(hasher),
                written,
                noted: written,
                is_done: false,
            })),
            Err(error) => {
                shared.set(digest, BlobProgress::Partial(0));
                Err(shared.failed(error))
            }
        }
    }

    /// Bytes written: only the rest is fetched. Units: bytes.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The hasher of the existing bytes, for a source that compares the digest itself. Take it before the first write; the
    /// digest is not compared here then: bytes are hashed once.
    pub fn take_hasher(&mut self) -> Hasher {
        let hasher = self.hasher.take();
        hasher.unwrap_or_else(|| Hasher::new(self.digest.algorithm()))
    }

    /// Discards the existing bytes: the blob is sent from the beginning.
    pub fn restart(&mut self) {
        self.hasher = Some(Hasher::new(self.digest.algorithm()));
        self.written = 0;
        self.noted = 0;
    }

    /// Writes the next bytes.
    ///
    /// Blocking. Errors: Invalid – more than the blob has; Conflict – the medium is full; Internal – it cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() as u64 > self.size - self.written {
            return Err(self.wrong("is larger than its manifest says"));
        }
        let at = self.offset + self.written;
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|e| self.shared.failed(e))?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        self.written += bytes.len() as u64;
        // Lines with all bytes are reserved for blobs with a verified digest.
        if self.written - self.noted >= NOTE_BYTES && self.written < self.size {
            self.note(self.written).map_err(|e| self.shared.failed(e))?;
        }
        Ok(())
    }

    /// Records that it is complete. A blob with another digest is fetched again the next time.
    ///
    /// Blocking. Errors: Invalid – it has another size or digest; Conflict and Internal as [`Self::write`].
    pub fn finish(mut self) -> Result<(), Error> {
        if self.written < self.size {
            return Err(self.wrong("is smaller than its manifest says"));
        }
        let actual = self.hasher.take().map(Hasher::finish);
        if actual.is_some_and(|actual| actual != self.digest) {
            return Err(self.wrong("has another digest"));
        }
        let mut state = self.shared.state();
        let JournaledBlobs { journal, blobs } = &mut *state;
        if let Some(blob) = blobs.get_mut(&self.digest) {
            let spread = self.shared.spread(&self.digest, blob, journal);
            if let Err(error) = spread {
                drop(state);
                return Err(self.shared.failed(error));
            }
            blob.progress = BlobProgress::Whole;
        }
        drop(state);
        self.is_done = true;
        Ok(())
    }

    fn note(&mut self, written: u64) -> io::Result<()> {
        let mut state = self.shared.state();
        let JournaledBlobs { journal, blobs } = &mut *state;
        if let Some(blob) = blobs.get(&self.digest) {
            journal.note(blob.spots[0], &blob.entry(&self.digest, written))?;
        }
        drop(state);
        self.noted = written;
        Ok(())
    }

    fn wrong(&self, how: &str) -> Error {
        Error::invalid(
            "blob",
            format!("{}: the received content {how}", self.digest),
        )
    }
}

impl Drop for BlobWriter {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        // A record of all bytes means complete, which a blob with another digest is not.
        let kept = if self.written < self.size {
            self.written
        } else {
            0
        };
        if kept < self.size {
            // Without the line, the next run fetches a little more.
            self.note(kept).ok();
        }
        self.shared.set(&self.digest, BlobProgress::Partial(kept));
    }
}

impl WriterState {
    fn set(&self, digest: &Digest, progress: BlobProgress) {
        if let Some(blob) = self.state().blobs.get_mut(digest) {
            blob.progress = progress;
        }
    }
}
