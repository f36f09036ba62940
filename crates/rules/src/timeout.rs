//! Timeouts of statuses and stages: one row for the guards of the state tables and for explanations.

use chrono::TimeDelta;
use model::cluster::Cluster;
use model::host::Host;
use model::time::{DateTime, Timestamp};

use crate::host::{limit_of, older};
use crate::host_state::ObservedTime;
use crate::policy::InstallationPolicy;
use crate::progress;

/// Time that an agent has to start the installation.
/// Source: assisted-service, internal/host/host.go, InstallationTimeout.
const START: TimeDelta = TimeDelta::minutes(20);

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

/// An action of the host's user.
pub(crate) fn host_user_action(record: &Host, policy: &InstallationPolicy) -> Timeout {
    Timeout {
        since: record.status_updated_at,
        limit: limit_of(policy.pending_user_action_timeout),
    }
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
