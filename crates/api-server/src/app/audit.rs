//! The audit log: changes that users requested.
//!
//! Invariants: a change by a user has a record, also if its connection is closed before the response; the response comes
//! after the record, unless the database takes none. One writer stores all records, so that they wait for no connection
//! of the pool.

use std::sync::Arc;

use futures_util::stream::{self, Stream};
use model::Error;
use model::audit::AuditRecord;
use tokio::sync::{Mutex, mpsc, oneshot, watch};

use crate::db::{Database, audit, tx};

/// Records that wait for the writer: some megabytes. A burst of closed connections fits while the database is busy.
pub(crate) const MAX_WAITING: usize = 4096;
/// Records read in one statement.
const PAGE: i64 = 1000;
/// Status of a change whose connection was closed before the response.
const CLOSED: u16 = 499;
/// Status of a change whose handler panicked.
const PANICKED: u16 = 500;

/// The queue of the writer.
#[derive(Debug)]
pub(crate) struct AuditQueue {
    sender: mpsc::Sender<WaitingRecord>,
    /// Taken by the writer.
    receiver: Mutex<Option<mpsc::Receiver<WaitingRecord>>>,
    /// Whether the database takes no records: responses do not wait for them then.
    is_failing: watch::Sender<bool>,
}

/// A record on its way to the database.
#[derive(Debug)]
pub(crate) struct WaitingRecord {
    pub(crate) record: AuditRecord,
    /// Dropped when the record is stored, or cannot be for now.
    pub(crate) waits: Option<oneshot::Sender<()>>,
}

impl Default for AuditQueue {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            is_failing: watch::Sender::new(false),
        }
    }
}

impl AuditQueue {
    /// The records, for the one writer.
    pub(crate) async fn receiver(&self) -> Option<mpsc::Receiver<WaitingRecord>> {
        self.receiver.lock().await.take()
    }

    /// Records whether the database takes records.
    pub(crate) fn set_failing(&self, is_failing: bool) {
        self.is_failing.send_if_modified(|known| {
            let is_changed = *known != is_failing;
            *known = is_failing;
            is_changed
        });
    }

    /// Completes when the database takes no records.
    async fn failing(&self) {
        let mut is_failing = self.is_failing.subscribe();
        is_failing.wait_for(|is_failing| *is_failing).await.ok();
    }

    /// Adds a record without waiting; one that finds no room is in the log at least.
    fn add(&self, record: AuditRecord) {
        let waits = None;
        if let Err(refused) = self.sender.try_send(WaitingRecord { record, waits }) {
            let (mpsc::error::TrySendError::Full(lost) | mpsc::error::TrySendError::Closed(lost)) =
                refused;
            log_lost(&lost.record, "too many records wait for the database");
        }
    }
}

/// The record of a change, in the log of the server: the last resort.
pub(crate) fn log_lost(record: &AuditRecord, error: &str) {
    tracing::error!(
        error,
        user = record.user_name,
        operation = record.operation,
        path = record.path,
        status = record.status,
        "audit record not stored"
    );
}

/// Records as JSON lines.
pub(crate) fn json_lines<'a>(records: impl Iterator<Item = &'a AuditRecord>) -> Vec<u8> {
    let mut lines = Vec::new();
    for record in records {
        // Records are texts, numbers and times: printing them cannot fail.
        lines.extend(serde_json::to_vec(record).unwrap_or_default());
        lines.push(b'\n');
    }
    lines
}

/// A record before its change has ended. It is written when it is dropped, too.
#[derive(Debug)]
pub(crate) struct PendingRecord {
    queue: Arc<AuditQueue>,
    /// None once it is on its way.
    record: Option<AuditRecord>,
    /// Whether the outcome is known.
    is_complete: bool,
}

impl PendingRecord {
    /// A change that begins.
    pub(crate) fn new(queue: Arc<AuditQueue>, record: AuditRecord) -> Self {
        Self {
            queue,
            record: Some(record),
            is_complete: false,
        }
    }

    /// Completes and writes the record.
    pub(crate) async fn write(mut self, complete: impl FnOnce(&mut AuditRecord)) {
        if let Some(record) = &mut self.record {
            complete(record);
            self.is_complete = true;
        }
        let queue = Arc::clone(&self.queue);
        // The record stays here until there is room: a connection that is closed meanwhile drops it, and that writes it.
        let permit = tokio::select! {
            biased;
            () = queue.failing() => return,
            permit = queue.sender.reserve() => permit,
        };
        let Ok(permit) = permit else { return };
        let Some(record) = self.record.take() else {
            return;
        };
        let (waits, stored) = oneshot::channel();
        permit.send(WaitingRecord {
            record,
            waits: Some(waits),
        });
        tokio::select! {
            () = queue.failing() => {}
            _ = stored => {}
        }
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else {
            return;
        };
        if !self.is_complete {
            record.status = if std::thread::panicking() {
                PANICKED
            } else {
                CLOSED
            };
        }
        self.queue.add(record);
    }
}

/// The stored records.
#[derive(Debug)]
pub(crate) struct AuditRecords {
    db: Database,
}

impl AuditRecords {
    /// The records in the database.
    pub(super) fn new(db: Database) -> Self {
        Self { db }
    }

    /// Records with ids above `after`, oldest first, read page by page.
    pub(crate) fn since(
        self: Arc<Self>,
        after: i64,
    ) -> impl Stream<Item = Result<Vec<AuditRecord>, Error>> {
        stream::try_unfold((self, after), |(records, after)| async move {
            let page = records.page(after).await?;
            let last = page.last().map(|record| record.id);
            Ok(last.map(|last| (page, (records, last))))
        })
    }

    async fn page(&self, after: i64) -> Result<Vec<AuditRecord>, Error> {
        tx("read audit records", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            audit::page(&mut connection, after, PAGE).await
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // limit: audit records that wait for the database
    #[tokio::test]
    async fn waiting_records_are_bounded() {
        let queue = AuditQueue::default();
        for number in 0..=MAX_WAITING {
            let id = i64::try_from(number).unwrap();
            queue.add(AuditRecord {
                id,
                ..AuditRecord::default()
            });
        }
        let mut receiver = queue.receiver().await.unwrap();
        let mut received = Vec::new();
        receiver.recv_many(&mut received, usize::MAX).await;
        assert_eq!(received.len(), MAX_WAITING, "the last one is in the log");
        queue.set_failing(true);
        queue.failing().await;
        queue.add(AuditRecord::default());
        assert_eq!(receiver.len(), 1);
    }
}
