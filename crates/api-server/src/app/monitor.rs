//! Periodic refresh of clusters with running timeouts, and the flush of heartbeats.

use std::time::Duration;

use chrono::TimeDelta;
use model::Error;
use model::time::Timestamp;
use service::CancellationToken;

use super::{ApiServer, ClusterTransaction, Scope};
use crate::db::tx;
use crate::db::{check_ins, clusters, hosts};

/// Clusters, and pool hosts, refreshed in one round; the others follow in the next.
const ROUND_LIMIT: i64 = 10_000;
/// Time after the end of an installation in which logs may still arrive.
const LOGS_TIMEOUT: Duration = Duration::from_hours(2);
/// Units: heartbeats written by one statement.
const FLUSH_CHUNK: usize = 5000;

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

impl ApiServer {
    /// Refreshes clusters with running timeouts, and those whose heartbeats timed out. Clusters that another replica is
    /// changing are skipped.
    pub(crate) async fn monitor(&self, shutdown: &CancellationToken) -> Result<(), Error> {
        let now = service::clock::now();
        let mut silent_since = now - delta(self.policy.host_max_disconnection);
        if self.grace_period.since(now) > silent_since {
            // Grace period: no host has had the time to send a heartbeat yet.
            silent_since = Timestamp::UNIX_EPOCH;
        }
        let ended_after = now - delta(LOGS_TIMEOUT);
        let (due, silent) = tx("find what is due", async || {
            let mut connection = self.pool()?.acquire().await?;
            let mut due =
                clusters::to_monitor(&mut connection, silent_since, ended_after, ROUND_LIMIT)
                    .await?;
            // Left behind by a crashed replica, or by a failed refresh.
            due.extend(clusters::refresh_due(&mut connection, ROUND_LIMIT).await?);
            due.retain(|id| !self.refreshes.is_pending(*id));
            due.sort_unstable();
            due.dedup();
            let silent = hosts::silent_in_pool(&mut connection, silent_since, ROUND_LIMIT).await?;
            Ok((due, silent))
        })
        .await?;
        let due = due.into_iter().map(Scope::Cluster);
        let silent = silent
            .into_iter()
            .map(|(infra_env, id)| Scope::Host(infra_env, id));
        for scope in due.chain(silent) {
            if shutdown.is_cancelled() {
                break;
            }
            let refresh = |change: &mut ClusterTransaction| {
                change.refresh(&self.policy);
                Ok(())
            };
            match self.change_if_free("monitor", scope, refresh).await {
                // Deleted since the query.
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error @ Error::Unavailable { .. }) => return Err(error),
                Err(error) => tracing::warn!(?scope, error = error.chain(), "refresh failed"),
            }
        }
        Ok(())
    }

    /// Flushes the heartbeats since the last call.
    pub(crate) async fn flush_check_ins(&self) -> Result<(), Error> {
        let batch = self.check_ins.take();
        if batch.is_empty() {
            return Ok(());
        }
        let result = tx("flush check-ins", async || {
            let mut connection = self.pool()?.acquire().await?;
            for chunk in batch.chunks(FLUSH_CHUNK) {
                check_ins::flush(&mut connection, chunk).await?;
            }
            Ok(())
        })
        .await;
        if result.is_ok() {
            self.check_ins.written();
        } else {
            self.check_ins.put_back();
        }
        result
    }
}
