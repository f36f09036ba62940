//! Timeouts of statuses and stages: one row for the guards of the state tables and for explanations.

use chrono::TimeDelta;
use model::cluster::Cluster;
use model::host::Host;
use model::logs::LogsState;
use model::time::{DateTime, Timestamp};

use crate::host::progress;
use crate::policy::InstallationPolicy;
use crate::snapshot::host_state::ObservedTime;

/// Time that an agent has to start the installation.
/// Source: assisted-service, internal/host/host.go, InstallationTimeout.
const START: TimeDelta = TimeDelta::minutes(20);

/// Time that a reclaimed host has for each of its two steps.
/// Source: assisted-service, internal/host/host.go, ReclaimTimeout.
const RECLAIM: TimeDelta = TimeDelta::minutes(60);

/// A running clock: its start, and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timeout {
    pub(crate) since: DateTime,
    pub(crate) limit: TimeDelta,
}

impl Timeout {
    /// Whether the limit has passed. A clock without start does not run; after a step of the server's clock, it starts
    /// again.
    pub(crate) fn is_expired(self, now: Timestamp, observed: ObservedTime) -> bool {
        let since = self.since.0;
        let since = since.map(|since| observed.clock_set_at.map_or(since, |set| since.max(set)));
        older(DateTime(since), now) > self.limit
    }
}

/// The current stage of a host's installation, since the host's last report.
pub(crate) fn host_stage(record: &Host, single_node: bool) -> Option<Timeout> {
    let progress = record.progress.as_ref()?;
    Some(Timeout {
        since: progress.stage_updated_at,
        limit: progress::stage_limit(progress.current_stage?, single_node),
    })
}

/// Tests of the installation disk and of container images.
pub(crate) fn host_preparation(record: &Host, policy: &InstallationPolicy) -> Timeout {
    Timeout {
        since: record.status_updated_at,
        limit: limit_of(policy.prepare_host_timeout),
    }
}

/// Start of a host's installation.
pub(crate) fn host_start(record: &Host) -> Timeout {
    Timeout {
        since: record.status_updated_at,
        limit: START,
    }
}

/// Download of boot artifacts, and restart into the discovery image.
pub(crate) fn host_reclaim(record: &Host) -> Timeout {
    Timeout {
        since: record.status_updated_at,
        limit: RECLAIM,
    }
}

/// An action of the host's user.
pub(crate) fn host_user_action(record: &Host, policy: &InstallationPolicy) -> Timeout {
    Timeout {
        since: record.status_updated_at,
        limit: limit_of(policy.pending_user_action_timeout),
    }
}

/// The retry of a failed host that its cluster lacks.
pub(crate) fn host_retry(record: &Host, policy: &InstallationPolicy) -> Timeout {
    Timeout {
        since: record.status_updated_at,
        limit: limit_of(policy.host_retry_timeout),
    }
}

/// Logs of a host: their arrival once requested; before, the request.
pub(crate) fn host_logs(record: &Host, policy: &InstallationPolicy) -> Option<Timeout> {
    let limits = LogLimits {
        pending: limit_of(policy.host_log_pending_timeout),
        collection: limit_of(policy.host_log_collection_timeout),
    };
    limits.timeout(
        record.logs_info,
        record.logs_started_at,
        record.status_updated_at,
    )
}

/// Preparation of a cluster.
pub(crate) fn preparation(cluster: &Cluster, policy: &InstallationPolicy) -> Timeout {
    Timeout {
        since: cluster.status_updated_at,
        limit: limit_of(policy.prepare_timeout),
    }
}

/// The whole installation of a cluster.
pub(crate) fn installation(cluster: &Cluster, policy: &InstallationPolicy) -> Timeout {
    Timeout {
        since: cluster.install_started_at,
        limit: limit_of(policy.installation_timeout),
    }
}

/// Finalizing.
pub(crate) fn finalizing(cluster: &Cluster, policy: &InstallationPolicy) -> Timeout {
    Timeout {
        since: cluster.status_updated_at,
        limit: limit_of(policy.finalizing_timeout),
    }
}

/// The current stage of finalizing.
pub(crate) fn finalizing_stage(cluster: &Cluster, policy: &InstallationPolicy) -> Option<Timeout> {
    let progress = cluster.progress.as_ref()?;
    Some(Timeout {
        since: progress.finalizing_stage_started_at,
        limit: progress::finalizing_limit(
            progress.finalizing_stage?,
            cluster,
            policy.soft_timeouts,
        ),
    })
}

/// Logs of a cluster's controller: their arrival once requested; before, the request.
pub(crate) fn cluster_logs(cluster: &Cluster, policy: &InstallationPolicy) -> Option<Timeout> {
    let limits = LogLimits {
        pending: limit_of(policy.log_pending_timeout),
        collection: limit_of(policy.log_collection_timeout),
    };
    limits.timeout(
        cluster.logs_info,
        cluster.controller_logs_started_at,
        cluster.status_updated_at,
    )
}

struct LogLimits {
    pending: TimeDelta,
    collection: TimeDelta,
}

impl LogLimits {
    /// None once the logs are complete, or given up.
    fn timeout(
        self,
        state: Option<LogsState>,
        started_at: DateTime,
        status_updated_at: DateTime,
    ) -> Option<Timeout> {
        let (since, limit) = match state {
            None | Some(LogsState::Unset) => (status_updated_at, self.pending),
            Some(LogsState::Requested | LogsState::Collecting) => {
                let started_at = started_at.0.or(status_updated_at.0);
                (DateTime(started_at), self.collection)
            }
            Some(LogsState::Completed | LogsState::Timeout) => return None,
        };
        Some(Timeout { since, limit })
    }
}

/// Age of a moment; zero for an unset one.
pub(crate) fn older(moment: DateTime, now: Timestamp) -> TimeDelta {
    moment.0.map_or(TimeDelta::zero(), |moment| {
        now.signed_duration_since(moment)
    })
}

/// A limit of the settings; one beyond the range never expires.
pub(crate) fn limit_of(limit: std::time::Duration) -> TimeDelta {
    TimeDelta::from_std(limit).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{later, now};

    fn observed(clock_set_at: Option<Timestamp>) -> ObservedTime {
        ObservedTime {
            clock_set_at,
            ..ObservedTime::default()
        }
    }

    #[test]
    fn a_timeout_starts_again_when_the_clock_is_set() {
        let timeout = Timeout {
            since: now().into(),
            limit: TimeDelta::minutes(10),
        };
        for (clock_set_min, now_min, is_expired) in [
            (None, 10, false),
            (None, 11, true),
            (Some(60), 61, false),
            (Some(60), 70, false),
            (Some(60), 71, true),
            // Set before the timeout started.
            (Some(-60), 11, true),
        ] {
            let observed = observed(clock_set_min.map(later));
            let found = timeout.is_expired(later(now_min), observed);
            assert_eq!(found, is_expired, "{clock_set_min:?} {now_min}");
        }
        let unset = Timeout {
            since: DateTime(None),
            ..timeout
        };
        assert!(!unset.is_expired(later(11), observed(Some(now()))));
    }

    #[test]
    fn logs_are_awaited_until_they_end() {
        let policy = InstallationPolicy::default();
        let with = |state, started_at| Host {
            logs_info: state,
            logs_started_at: started_at,
            status_updated_at: now().into(),
            ..Host::default()
        };
        let (unset, started) = (DateTime(None), later(5).into());
        let pending = limit_of(policy.host_log_pending_timeout);
        let collection = limit_of(policy.host_log_collection_timeout);
        for (state, started_at, expected) in [
            (None, unset, Some((now().into(), pending))),
            (
                Some(LogsState::Requested),
                unset,
                Some((now().into(), collection)),
            ),
            (
                Some(LogsState::Collecting),
                started,
                Some((started, collection)),
            ),
            (Some(LogsState::Completed), started, None),
            (Some(LogsState::Timeout), started, None),
        ] {
            let expected = expected.map(|(since, limit)| Timeout { since, limit });
            assert_eq!(host_logs(&with(state, started_at), &policy), expected);
        }
    }
}
