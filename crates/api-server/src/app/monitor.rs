//! Periodic refresh of clusters with running timeouts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use model::Error;
use model::time::Timestamp;
use rules::host::heartbeat::CLOCK_SKEW;
use service::CancellationToken;

use super::heartbeats::Heartbeats;
use super::{ClusterStore, ClusterTransaction, Scope};
use crate::db::check_ins::ExpiredHeartbeats;
use crate::db::{Database, clusters as cluster_rows, hosts, tx};
use crate::measurements::{
    CLUSTERS_CYCLE, HOSTS_CYCLE, MONITORED_CLUSTER, MONITORED_HOST, Metric, OPERATION_DURATION,
};

/// Clusters, and pool hosts, refreshed in one round; the others follow in the next.
const ROUND_LIMIT: i64 = 10_000;
/// Time after the end of an installation in which logs may still arrive.
const LOGS_TIMEOUT: Duration = Duration::from_hours(2);

/// The metrics of one pass.
struct MonitorPass {
    operation: &'static str,
    /// Of each refresh.
    one: Metric,
    cycle: Metric,
    /// The pass has all that was due.
    is_full: bool,
}

/// Whether a query with the limit of a round found all.
fn has_room<T>(found: &[T]) -> bool {
    i64::try_from(found.len()).is_ok_and(|count| count < ROUND_LIMIT)
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

/// Refreshes clusters and pool hosts with running timeouts, and those whose heartbeats timed out. Those that another
/// replica is changing are skipped.
pub(crate) async fn refresh_due(
    db: &Database,
    clusters: &Arc<ClusterStore>,
    heartbeats: &Heartbeats,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let now = service::clock::now();
    let mut expired = ExpiredHeartbeats {
        before: now - delta(clusters.policy.host_max_disconnection),
        after: Some(now + CLOCK_SKEW),
    };
    if heartbeats.grace_period.since(now) > expired.before {
        // Grace period: no host has had the time to send a heartbeat yet.
        expired = ExpiredHeartbeats {
            before: Timestamp::UNIX_EPOCH,
            after: None,
        };
    }
    let ended_after = now - delta(LOGS_TIMEOUT);
    let (due, pool, is_full) = tx("find what is due", async || {
        let mut connection = db.pool()?.acquire().await?;
        let mut due =
            cluster_rows::to_monitor(&mut connection, expired, ended_after, ROUND_LIMIT).await?;
        // Left behind by a crashed replica, or by a failed refresh.
        let left = cluster_rows::refresh_due(&mut connection, ROUND_LIMIT).await?;
        let pool = hosts::pool_to_monitor(&mut connection, expired, ROUND_LIMIT).await?;
        let is_full = [has_room(&due) && has_room(&left), has_room(&pool)];
        due.extend(left);
        due.retain(|id| !clusters.is_refresh_pending(*id));
        due.sort_unstable();
        due.dedup();
        Ok((due, pool, is_full))
    })
    .await?;
    let due = due.into_iter().map(Scope::Cluster);
    let pass = MonitorPass {
        operation: "ClusterMonitoring",
        one: MONITORED_CLUSTER,
        cycle: CLUSTERS_CYCLE,
        is_full: is_full[0],
    };
    refresh_all(clusters, due, &pass, shutdown).await?;
    let pool = pool
        .into_iter()
        .map(|(infra_env, id)| Scope::Host(infra_env, id));
    let pass = MonitorPass {
        operation: "HostMonitoring",
        one: MONITORED_HOST,
        cycle: HOSTS_CYCLE,
        is_full: is_full[1],
    };
    refresh_all(clusters, pool, &pass, shutdown).await
}

/// One pass: refreshes each of `scopes`, and measures it.
async fn refresh_all(
    clusters: &Arc<ClusterStore>,
    scopes: impl Iterator<Item = Scope>,
    pass: &MonitorPass,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let started = Instant::now();
    for scope in scopes {
        if shutdown.is_cancelled() {
            break;
        }
        let refresh = |change: &mut ClusterTransaction| {
            change.refresh();
            Ok(())
        };
        let began = Instant::now();
        match clusters.change_if_free("monitor", scope, refresh).await {
            // Deleted since the query.
            Ok(()) | Err(Error::NotFound { .. }) => {}
            Err(error @ Error::Unavailable { .. }) => return Err(error),
            Err(error) => tracing::warn!(?scope, error = error.chain(), "refresh failed"),
        }
        pass.one.millis(began.elapsed(), &[]).record();
    }
    let is_full = if pass.is_full { "true" } else { "false" };
    let took = started.elapsed();
    pass.cycle.millis(took, &[is_full]).record();
    OPERATION_DURATION.millis(took, &[pass.operation]).record();
    Ok(())
}
