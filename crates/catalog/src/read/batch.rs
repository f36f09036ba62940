//! Batches of documents, from the threads that read files to the thread that delivers them.

use std::sync::mpsc::SyncSender;

use crate::{CatalogProblem, Document};

/// Size of a batch: enough to keep threads from waiting for each other.
const BATCH_BYTES: usize = 256 << 10;

/// Consecutive documents of one file, and the problems between them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) documents: Vec<Document>,
    pub(super) problems: Vec<CatalogProblem>,
    bytes: usize,
}

/// Output of a reading thread: a bounded channel of batches.
pub(super) struct BatchSink {
    pub(super) batch: Batch,
    pub(super) sender: SyncSender<Batch>,
}

/// The receiver has been dropped.
pub(super) struct ReceiverDropped;

impl BatchSink {
    pub(super) fn document(&mut self, document: Document) -> Result<(), ReceiverDropped> {
        self.batch.bytes += size_of::<Document>() + document.json.len();
        self.batch.documents.push(document);
        if self.batch.bytes < BATCH_BYTES {
            return Ok(());
        }
        self.flush()
    }

    pub(super) fn problem(&mut self, problem: CatalogProblem) -> Result<(), ReceiverDropped> {
        self.batch.bytes += size_of::<CatalogProblem>() + problem.text.len();
        self.batch.problems.push(problem);
        if self.batch.bytes < BATCH_BYTES {
            return Ok(());
        }
        self.flush()
    }

    pub(super) fn flush(&mut self) -> Result<(), ReceiverDropped> {
        let batch = std::mem::take(&mut self.batch);
        self.sender.send(batch).map_err(|_| ReceiverDropped)
    }
}
