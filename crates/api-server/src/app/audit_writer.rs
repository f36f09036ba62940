//! The writer of audit records: group commit over a connection of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::Error;
use service::{CancellationToken, StateLog};
use sqlx::PgConnection;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::audit::{AuditQueue, WaitingRecord, json_lines, log_lost};
use super::audit_file::AuditFile;
use crate::db::Database;
use crate::db::audit::{self, AuditRing};
use crate::settings::Settings;

/// Records of one statement.
const BATCH: usize = 256;
/// Retry interval while the database takes no records.
const RETRY: Duration = Duration::from_millis(500);
/// Timeout of a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval of repeated log lines about the same failure.
const REMINDER: Duration = Duration::from_mins(1);
/// A ring is trimmed when so many of its records were added: its bound may be exceeded by as many.
const MIN_TRIM_EVERY: u32 = 64;

/// The writer.
pub(crate) struct AuditWriter {
    db: Database,
    queue: Arc<AuditQueue>,
    receiver: mpsc::Receiver<WaitingRecord>,
    connection: Option<PgConnection>,
    file: Option<AuditFile>,
    rings: [RingState; 2],
    failures: StateLog,
}

/// A ring, and how many records were added since it was trimmed.
struct RingState {
    ring: AuditRing,
    limit: u32,
    added: u32,
}

impl RingState {
    /// Trimmed with the first record: the bound may have changed.
    fn new(ring: AuditRing, limit: u32) -> Self {
        Self {
            ring,
            limit: limit.max(1),
            added: u32::MAX,
        }
    }

    fn add(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.added = self.added.saturating_add(count);
    }

    fn is_due(&self) -> bool {
        self.added >= (self.limit / MIN_TRIM_EVERY).max(MIN_TRIM_EVERY)
    }
}

/// The result of a statement.
///
/// Errors: Unavailable – the database, or no result in time; those of the statement.
async fn timely<T>(
    doing: &str,
    statement: impl Future<Output = Result<T, crate::db::Error>>,
) -> Result<T, Error> {
    match timeout(STATEMENT_TIMEOUT, statement).await {
        Ok(done) => done.map_err(|error| error.into_domain(doing)),
        Err(elapsed) => Err(Error::unavailable("the database", elapsed)),
    }
}

impl AuditWriter {
    /// The one writer of this process; none if there is one already.
    pub(crate) async fn new(
        db: Database,
        queue: Arc<AuditQueue>,
        settings: &Settings,
    ) -> Option<Self> {
        let file = settings.audit_log_file.clone();
        let max_bytes = settings.audit_log_max_bytes;
        Some(Self {
            receiver: queue.receiver().await?,
            connection: None,
            file: file.map(|path| AuditFile::new(path, max_bytes)),
            rings: [
                RingState::new(AuditRing::Changes, settings.max_audit_records),
                RingState::new(AuditRing::Refusals, settings.max_audit_refusals),
            ],
            failures: StateLog::new(REMINDER),
            db,
            queue,
        })
    }

    /// Writes records until no request is in flight any more, and then those that wait.
    pub(crate) async fn run(mut self, drained: CancellationToken) {
        let mut batch = Vec::new();
        // After a record that the database refuses, one by one: the others of its batch are stored.
        let mut is_single = false;
        loop {
            if batch.is_empty() {
                is_single = false;
                tokio::select! {
                    count = self.receiver.recv_many(&mut batch, BATCH) => if count == 0 {
                        return;
                    },
                    () = drained.cancelled(), if !self.receiver.is_closed() => {
                        self.receiver.close();
                        continue;
                    }
                }
            }
            let count = if is_single { 1 } else { batch.len() };
            match self.store(&mut batch[..count]).await {
                Ok(()) => {
                    self.queue.set_failing(false);
                    self.append_to_file(&batch[..count]).await;
                    batch.drain(..count);
                    self.trim().await;
                }
                Err(error @ Error::Unavailable { .. }) if !drained.is_cancelled() => {
                    self.connection = None;
                    self.queue.set_failing(true);
                    for one in &mut batch {
                        one.waits = None;
                    }
                    self.log_failure(&error);
                    let pause = tokio::time::sleep(RETRY);
                    drained.run_until_cancelled(pause).await;
                }
                Err(error) if count == 1 || drained.is_cancelled() => {
                    self.connection = None;
                    for lost in batch.drain(..count) {
                        log_lost(&lost.record, &error.chain());
                    }
                }
                Err(_) => {
                    self.connection = None;
                    is_single = true;
                }
            }
        }
    }

    fn log_failure(&mut self, error: &Error) {
        let error = error.chain();
        if self.failures.admit(&error, Instant::now()).is_some() {
            let waiting = self.receiver.len();
            tracing::warn!(error, waiting, "audit records not stored, retrying");
        }
    }

    /// Stores records, which get their ids.
    async fn store(&mut self, batch: &mut [WaitingRecord]) -> Result<(), Error> {
        // Not before the schema is migrated, also after an outage.
        self.db.pool()?;
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let opened = self.db.connect().await;
                none.insert(opened.map_err(|error| Error::unavailable("the database", error))?)
            }
        };
        let records: Vec<_> = batch.iter().map(|one| &one.record).collect();
        let ids = timely("append audit records", audit::insert(connection, &records)).await?;
        for state in &mut self.rings {
            let records = records.iter();
            let added = records.filter(|record| AuditRing::of(record.status) == state.ring);
            state.add(added.count());
        }
        for (one, id) in batch.iter_mut().zip(ids) {
            one.record.id = id;
        }
        Ok(())
    }

    /// Trims the rings that are due. The records are stored already: a failure only delays this.
    async fn trim(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        for state in self.rings.iter_mut().filter(|state| state.is_due()) {
            let trimming = audit::trim(connection, state.ring, state.limit.into());
            match timely("trim audit records", trimming).await {
                Ok(()) => state.added = 0,
                Err(error) => {
                    tracing::warn!(error = error.chain(), "audit records not trimmed");
                    self.connection = None;
                    return;
                }
            }
        }
    }

    async fn append_to_file(&mut self, batch: &[WaitingRecord]) {
        let Some(mut file) = self.file.take() else {
            return;
        };
        let lines = json_lines(batch.iter().map(|one| &one.record));
        let count = batch.len();
        let appended = tokio::task::spawn_blocking(move || {
            file.append(&lines, count);
            file
        });
        self.file = appended.await.ok();
    }
}
