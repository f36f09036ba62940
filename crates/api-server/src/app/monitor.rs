//! What time alone changes, and writing the times of polls.

use std::time::Duration;

use chrono::TimeDelta;
use model::Error;
use model::time::Timestamp;
use service::CancellationToken;

use super::{App, Scope, Work};
use crate::db::tx;
use crate::db::{check_ins, clusters, hosts};

/// Clusters, and hosts of the pool, looked at in one round; the others come with the next.
const ROUND_LIMIT: i64 = 10_000;
/// How long after its end logs of a cluster may still be awaited.
const LOGS_AWAITED: Duration = Duration::from_hours(2);
/// Units: check-ins written by one statement.
const FLUSH_CHUNK: usize = 5000;

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

impl App {
    /// Refreshes clusters in which a clock runs, and whatever fell silent. Replicas leave each other's clusters alone.
    pub(crate) async fn monitor(&self, shutdown: &CancellationToken) -> Result<(), Error> {
        let now = service::clock::now();
        let mut silent_since = now - delta(self.policy.host_max_disconnection);
        if self.hearing.since(now) > silent_since {
            // Nobody has been able to call for so long that he would be missed.
            silent_since = Timestamp::UNIX_EPOCH;
        }
        let ended_after = now - delta(LOGS_AWAITED);
        let (due, silent) = tx("find what is due", async || {
            let mut connection = self.pool()?.acquire().await?;
            let mut due =
                clusters::to_monitor(&mut connection, silent_since, ended_after, ROUND_LIMIT)
                    .await?;
            // Left behind by a process that ended, or by a refresh that failed.
            due.extend(clusters::refresh_due(&mut connection, ROUND_LIMIT).await?);
            due.retain(|id| !self.refreshes.are_asked_for(*id));
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
            let refresh = |work: &mut Work| {
                work.refresh(&self.policy);
                Ok(())
            };
            match self.change_if_free("monitor", scope, refresh).await {
                // Deleted since it was found.
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error @ Error::Unavailable { .. }) => return Err(error),
                Err(error) => tracing::warn!(?scope, error = error.chain(), "refreshing failed"),
            }
        }
        Ok(())
    }

    /// Writes the times of polls since the last call.
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
