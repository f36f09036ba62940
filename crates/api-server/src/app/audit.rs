//! The audit log: changes that users requested.
//!
//! Invariant: a change by a user has a record, also if its connection is closed before the response.

use futures_util::stream::{self, Stream};
use model::Error;
use model::audit::AuditRecord;
use tokio::runtime::Handle;

use super::ApiServer;
use crate::db::{audit, tx};

/// Records read in one statement.
const PAGE: i64 = 1000;
/// Status of a change whose connection was closed before the response.
const CLOSED: u16 = 499;
/// Status of a change whose handler panicked.
const PANICKED: u16 = 500;

/// A record without its outcome. It is written when it is dropped, too.
#[derive(Debug)]
pub(crate) struct PendingRecord(Option<(ApiServer, AuditRecord)>);

impl PendingRecord {
    /// A change that begins.
    pub(crate) fn new(app: ApiServer, record: AuditRecord) -> Self {
        Self(Some((app, record)))
    }

    /// Completes and writes the record.
    pub(crate) async fn write(mut self, complete: impl FnOnce(&mut AuditRecord)) {
        if let Some((app, mut record)) = self.0.take() {
            complete(&mut record);
            app.append(&record).await;
        }
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        let Some((app, mut record)) = self.0.take() else {
            return;
        };
        record.status = if std::thread::panicking() {
            PANICKED
        } else {
            CLOSED
        };
        if let Ok(runtime) = Handle::try_current() {
            let requests = app.requests.clone();
            let write = async move { app.append(&record).await };
            drop(requests.spawn_on(write, &runtime));
        }
    }
}

impl ApiServer {
    /// The change is made already: a record that cannot be stored is in the log at least.
    async fn append(&self, record: &AuditRecord) {
        let limit = self.settings.max_audit_records.max(1).into();
        let stored = tx("append audit record", async || {
            let mut connection = self.pool()?.acquire().await?;
            audit::insert(&mut connection, record, limit).await
        })
        .await;
        if let Err(error) = stored {
            tracing::error!(
                error = error.chain(),
                user = record.user_name,
                operation = record.operation,
                path = record.path,
                status = record.status,
                "audit record not stored"
            );
        }
    }

    /// Records with ids above `after`, oldest first, read page by page.
    pub(crate) fn audit_records(
        &self,
        after: i64,
    ) -> impl Stream<Item = Result<Vec<AuditRecord>, Error>> + use<> {
        stream::try_unfold((self.clone(), after), |(app, after)| async move {
            let page = app.audit_page(after).await?;
            let last = page.last().map(|record| record.id);
            Ok(last.map(|last| (page, (app, last))))
        })
    }

    async fn audit_page(&self, after: i64) -> Result<Vec<AuditRecord>, Error> {
        tx("read audit records", async || {
            let mut connection = self.pool()?.acquire().await?;
            audit::page(&mut connection, after, PAGE).await
        })
        .await
    }
}
