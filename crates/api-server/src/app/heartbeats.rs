//! Heartbeats of hosts: buffered here, flushed in batches, and applied to the records that are read.
//!
//! Missing heartbeats count only for the time in which this server could have received them.

mod check_ins;
mod clock_watch;
mod grace_period;

use std::collections::HashMap;
use std::time::Instant;

use model::Error;
use model::host::Host;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use rules::ObservedTime;
use rules::Snapshot;
use rules::host::heartbeat::CLOCK_SKEW;
use sqlx::PgConnection;

use self::check_ins::CheckIns;
use self::clock_watch::ClockWatch;
use self::grace_period::GracePeriod;
use crate::db::check_ins as rows;
use crate::db::{self, CheckIn, Database, tx};

/// Units: heartbeats written by one statement.
const FLUSH_CHUNK: usize = 5000;

/// The last heartbeats of hosts, and since when they are received.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    db: Database,
    /// Those that are not flushed yet.
    check_ins: CheckIns,
    /// Start of the time in which they were accepted without a break.
    pub(crate) grace_period: GracePeriod,
    clock_watch: ClockWatch,
}

impl Heartbeats {
    /// Heartbeats that are flushed to the database.
    pub(super) fn new(db: Database) -> Self {
        Self {
            db,
            check_ins: CheckIns::default(),
            grace_period: GracePeriod::default(),
            clock_watch: ClockWatch::default(),
        }
    }

    /// Records a heartbeat; `clock_offset_s` if the poll carries the host's time.
    pub(super) fn note(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        now: Timestamp,
        clock_offset_s: Option<i64>,
    ) {
        self.check_ins.note(infra_env, host, now, clock_offset_s);
    }

    /// Applies the buffered heartbeats to a record.
    pub(super) fn apply(&self, host: &mut Host) {
        self.check_ins.apply(host);
    }

    /// Applies the last heartbeats, as any replica received them.
    pub(super) async fn overlay(
        &self,
        connection: &mut PgConnection,
        id: ClusterId,
        snapshot: &mut Snapshot,
    ) -> Result<(), db::Error> {
        // Before the query: a flush in between would hide them from both.
        let buffered: Vec<Vec<CheckIn>> = snapshot
            .hosts
            .iter()
            .map(|host| {
                let (infra_env, id) = (host.record.infra_env_id, host.record.id);
                self.check_ins.known(infra_env, id).collect()
            })
            .collect();
        let flushed = by_host(rows::of_cluster(connection, id).await?);
        let now = service::clock::now();
        for (at, buffered) in buffered.into_iter().enumerate() {
            let record = &snapshot.hosts[at].record;
            let flushed = flushed.get(&(record.infra_env_id, record.id)).copied();
            for check_in in flushed.into_iter().chain(buffered) {
                // Copy on write: an unchanged host stays shared with other copies of the snapshot.
                let record = &snapshot.hosts[at].record;
                if rules::host::heartbeat::is_newer(record, check_in.checked_in_at, now) {
                    check_ins::apply(&check_in, &mut snapshot.hosts[at].record, now);
                }
            }
        }
        Ok(())
    }

    /// Records that hold the last heartbeats of a snapshot's hosts and nothing else, in its order.
    pub(super) fn of_hosts(
        &self,
        snapshot: &Snapshot,
        flushed: Vec<CheckIn>,
    ) -> impl Iterator<Item = Host> {
        let flushed = by_host(flushed);
        let now = service::clock::now();
        snapshot.hosts.iter().map(move |host| {
            let record = &host.record;
            let mut heartbeat = Host {
                infra_env_id: record.infra_env_id,
                id: record.id,
                checked_in_at: record.checked_in_at,
                timestamp: record.timestamp,
                ..Host::default()
            };
            if let Some(check_in) = flushed.get(&(record.infra_env_id, record.id)) {
                check_ins::apply(check_in, &mut heartbeat, now);
            }
            self.check_ins.apply(&mut heartbeat);
            heartbeat
        })
    }

    /// Since when this server has observed clusters and hosts.
    pub(super) fn observed(&self, now: Timestamp) -> ObservedTime {
        ObservedTime {
            heartbeats_since: Some(self.grace_period.since(now)),
            clock_set_at: self
                .clock_watch
                .set_at(service::clock::now(), Instant::now()),
        }
    }

    /// Sets [`Heartbeats::observed`] where it differs: a written host is no longer shared with other copies (copy on write).
    pub(super) fn observe(&self, snapshot: &mut Snapshot, now: Timestamp) {
        let observed = self.observed(now);
        snapshot.observed = observed;
        for at in 0..snapshot.hosts.len() {
            if snapshot.hosts[at].observed != observed {
                snapshot.hosts[at].observed = observed;
            }
        }
    }

    /// Flushes the heartbeats since the last call.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        let batch = self.check_ins.take();
        if batch.is_empty() {
            return Ok(());
        }
        let result = tx("flush check-ins", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            for chunk in batch.chunks(FLUSH_CHUNK) {
                let ahead = service::clock::now() + CLOCK_SKEW;
                rows::flush(&mut connection, chunk, ahead).await?;
            }
            Ok(())
        })
        .await;
        if result.is_err() {
            self.check_ins.put_back();
        }
        result
    }
}

/// Heartbeats by their hosts.
fn by_host(check_ins: Vec<CheckIn>) -> HashMap<(InfraEnvId, HostId), CheckIn> {
    let keyed = check_ins
        .into_iter()
        .map(|check_in| ((check_in.infra_env_id, check_in.host_id), check_in));
    keyed.collect()
}
