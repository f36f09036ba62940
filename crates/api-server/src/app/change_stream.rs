//! Streams of changes: which clusters and infra-envs changed, for pages that show them. Many changes have no event.
//!
//! One reader for each process looks for changes of all replicas while a stream is open: a notification in each commit would
//! cost every change.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use futures_util::stream::{self, Stream};
use model::Error;
use model::time::Timestamp;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

use crate::db::changes::{self, ChangedRecord};
use crate::db::{Database, EventFilter, tx};

/// Changes that a slow stream may lag behind before it is sent one without ids.
const LAG: usize = 256;
/// Age up to which changes are looked for: transactions commit later than the time of their change, and the clocks of
/// replicas differ. Units: seconds.
const WINDOW_S: i64 = 30;

/// A change as it is sent; without ids, any record may have changed.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct StreamedChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    infra_env_id: Option<Uuid>,
}

/// The streams of this process.
#[derive(Debug)]
pub(crate) struct ChangeStreams {
    db: Database,
    sender: broadcast::Sender<StreamedChange>,
    seen: Mutex<SeenChanges>,
}

/// Changes of the window by their records.
#[derive(Debug, Default)]
struct SeenChanges(HashMap<(Option<Uuid>, Option<Uuid>), Timestamp>);

impl SeenChanges {
    /// The changes of `found` that were not seen before. The others of the window were found again.
    fn take(&mut self, found: Vec<ChangedRecord>) -> Vec<StreamedChange> {
        let mut seen = HashMap::with_capacity(found.len());
        let mut new = Vec::new();
        for record in found {
            let key = (record.cluster_id, record.infra_env_id);
            if self.0.get(&key) != Some(&record.updated_at) {
                new.push(StreamedChange {
                    cluster_id: record.cluster_id,
                    infra_env_id: record.infra_env_id,
                });
            }
            seen.insert(key, record.updated_at);
        }
        self.0 = seen;
        new
    }
}

impl StreamedChange {
    fn matches(&self, filter: &EventFilter) -> bool {
        let is_in = |own: Option<Uuid>, id: Option<Uuid>| own.is_none_or(|own| id == Some(own));
        let is_any = self.cluster_id.is_none() && self.infra_env_id.is_none();
        is_any
            || (is_in(filter.cluster_id, self.cluster_id)
                && is_in(filter.infra_env_id, self.infra_env_id))
    }
}

impl ChangeStreams {
    /// Streams of the changes in the database.
    pub(super) fn new(db: Database) -> Self {
        Self {
            db,
            sender: broadcast::Sender::new(LAG),
            seen: Mutex::default(),
        }
    }

    /// Changes within the filter's cluster or infra-env, from now on.
    pub(crate) fn open(&self, filter: EventFilter) -> impl Stream<Item = StreamedChange> + use<> {
        let receiver = self.sender.subscribe();
        stream::unfold((receiver, filter), |(mut receiver, filter)| async {
            loop {
                let change = match receiver.recv().await {
                    Ok(change) => change,
                    Err(RecvError::Lagged(_)) => StreamedChange::default(),
                    Err(RecvError::Closed) => return None,
                };
                if change.matches(&filter) {
                    return Some((change, (receiver, filter)));
                }
            }
        })
    }

    /// Sends new changes to the streams of this process.
    ///
    /// Errors: those of the database; nothing is lost, the next call reads them.
    pub(crate) async fn read_new(&self) -> Result<(), Error> {
        if self.sender.receiver_count() == 0 {
            return Ok(());
        }
        let since = service::clock::now() - TimeDelta::seconds(WINDOW_S);
        let found = tx("read new changes", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            changes::since(&mut connection, since).await
        })
        .await?;
        let seen = self.seen.lock();
        let new = seen.unwrap_or_else(PoisonError::into_inner).take(found);
        for change in new {
            // Without receivers, it is not needed.
            self.sender.send(change).ok();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_sent_once() {
        let at = |seconds| Timestamp::from_timestamp(seconds, 0).unwrap();
        let cluster = Uuid::from_u128(1);
        let record = |seconds| ChangedRecord {
            cluster_id: Some(cluster),
            infra_env_id: None,
            updated_at: at(seconds),
        };
        let mut seen = SeenChanges::default();
        assert_eq!(seen.take(vec![record(1)]).len(), 1);
        assert_eq!(seen.take(vec![record(1)]).len(), 0);
        assert_eq!(seen.take(vec![record(2)]).len(), 1);
        // It left the window; a late commit of the same time would come again.
        assert_eq!(seen.take(Vec::new()).len(), 0);
        assert!(seen.0.is_empty());
    }
}
