//! Verification of an archive set.

use mirror::archive;
use mirror::progress::RunProgress;
use model::Error;
use model::jobs::ArchiveVerification;

use super::{CarryIn, blocking};

/// Faults that a result lists.
const FAULTS: usize = 100;

/// Ends the verification's threads when its future is dropped.
struct CancelOnDrop(RunProgress);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl CarryIn {
    /// Compares every byte of a set with its digest.
    ///
    /// Errors: as [`CarryIn::check`]; Internal – it cannot be read. Faults are no error.
    pub(crate) async fn verify(
        &self,
        name: &str,
        progress: &RunProgress,
    ) -> Result<ArchiveVerification, Error> {
        let path = self.find(name).await?;
        let _running = CancelOnDrop(progress.clone());
        let progress = progress.clone();
        let report = blocking(move || archive::verify(path.as_path(), None, &progress)).await?;
        let faults = report.faults.iter();
        Ok(ArchiveVerification {
            files: report.files as u64,
            members: report.members as u64,
            hashed_bytes: report.hashed_bytes,
            is_signed: report.is_signed,
            faults: faults.take(FAULTS).map(Error::chain).collect(),
            fault_count: report.faults.len() as u64,
        })
    }
}
