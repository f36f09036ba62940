//! Events: recording and listing.

use model::Error;
use model::events::Event;
use model::time::Timestamp;
use rules::NewEvent;
use sqlx::PgConnection;

use super::request;
use crate::db::{self, Database, EventCounts, EventFilter, EventLimits, RecordPage, events, tx};
use crate::settings::Settings;

/// Bound of name, message and props of a client's event. Units: bytes.
pub(crate) const EVENT_BYTES: usize = 16 << 10;
/// Events that are asked for at a time: those beyond a page are sent in vain.
const EVENTS_AT_ONCE: usize = 1000;

/// Stored events, within their bounds.
#[derive(Debug)]
pub(crate) struct Events {
    db: Database,
    limits: EventLimits,
}

/// Converts events of the rules into stored events.
fn to_record(events: &[NewEvent], now: Timestamp) -> Vec<Event> {
    events
        .iter()
        .map(|event| Event {
            name: event.name.to_owned(),
            cluster_id: event.cluster_id,
            host_id: event.host_id,
            infra_env_id: event.infra_env_id,
            severity: event.severity,
            category: Some(event.category),
            message: event.message.clone(),
            event_time: now.into(),
            request_id: event.request_id.or_else(request::id),
            props: serde_json::to_string(&event.props).unwrap_or_default(),
        })
        .collect()
}

impl Events {
    /// Events in the database, within the bounds of the settings.
    pub(super) fn new(db: Database, settings: &Settings) -> Self {
        let limits = EventLimits {
            per_cluster: settings.max_events_per_cluster.into(),
            per_owner: match settings.max_events_per_owner {
                0 => i64::MAX,
                share => share.into(),
            },
            total: settings.max_events.into(),
        };
        Self { db, limits }
    }

    /// Adds events to a transaction.
    pub(super) async fn insert(
        &self,
        transaction: &mut PgConnection,
        new: &[NewEvent],
        now: Timestamp,
    ) -> Result<(), db::Error> {
        events::insert(transaction, &to_record(new, now), self.limits, now).await
    }

    /// Records events outside a cluster transaction.
    pub(crate) async fn record(&self, new: &[NewEvent]) -> Result<(), Error> {
        let now = service::clock::now();
        let records = to_record(new, now);
        self.store(&records, now).await
    }

    /// Records an event of a client, with the server's time.
    ///
    /// Errors: TooLarge – name, message and props exceed [`EVENT_BYTES`].
    pub(crate) async fn trigger(&self, mut event: Event) -> Result<(), Error> {
        if event.name.len() + event.message.len() + event.props.len() > EVENT_BYTES {
            return Err(Error::TooLarge {
                what: "the event",
                limit: EVENT_BYTES as u64,
            });
        }
        event.request_id = event.request_id.or_else(request::id);
        self.store(std::slice::from_ref(&event), service::clock::now())
            .await
    }

    async fn store(&self, records: &[Event], now: Timestamp) -> Result<(), Error> {
        if request::is_dry_run() {
            return Ok(());
        }
        tx("record events", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            events::insert(&mut connection, records, self.limits, now).await
        })
        .await
    }

    /// Events that match the filter.
    pub(crate) async fn list(&self, filter: &EventFilter) -> Result<Vec<Event>, Error> {
        let (ids, _) = self.ids(filter).await?;
        let (mut rest, mut events) = (ids.as_slice(), Vec::new());
        while !rest.is_empty() {
            let page = self.page(&rest[..rest.len().min(EVENTS_AT_ONCE)]).await?;
            events.extend(page.records);
            rest = &rest[page.covered.min(rest.len())..];
        }
        Ok(events)
    }

    /// Ids of the events that match the filter, and their counts.
    pub(crate) async fn ids(&self, filter: &EventFilter) -> Result<(Vec<i64>, EventCounts), Error> {
        tx("list events", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            events::list(&mut connection, filter).await
        })
        .await
    }

    /// A page of those events.
    pub(crate) async fn page(&self, ids: &[i64]) -> Result<RecordPage<Event>, Error> {
        tx("list events", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            events::page(&mut connection, ids).await
        })
        .await
    }
}
