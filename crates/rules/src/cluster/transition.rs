//! Transitions of a cluster by its rules.

use model::Error;
use model::cluster::ClusterStatus;
use model::events::EventSeverity;

use super::effects;
use super::facts::Facts;
use super::table::{ClusterRule, TABLE};
use super::trigger::On;
use crate::event::{NewEvent, about_cluster};
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;
use crate::table::{self, To};

/// Applies the first refresh rule that fits.
pub(crate) fn refresh(
    snapshot: &mut Snapshot,
    facts: &Facts,
    policy: &InstallationPolicy,
    events: &mut Vec<NewEvent>,
) {
    if let Some(rule) = table::find(TABLE, &On::Refresh, &snapshot.cluster.status, facts) {
        // Refresh rules never refuse; the table's test proves it.
        let _ = apply_rule(snapshot, rule, facts, policy, events);
    }
}

pub(super) fn apply_rule(
    snapshot: &mut Snapshot,
    rule: &ClusterRule,
    facts: &Facts,
    policy: &InstallationPolicy,
    events: &mut Vec<NewEvent>,
) -> Result<(), Error> {
    let from = snapshot.cluster.status;
    let to = match &rule.to {
        To::Stay => from,
        To::Go(status) => *status,
        To::Refuse(error) => return Err(error(facts)),
    };
    if let Some(info) = rule.info {
        snapshot.cluster.status_info = info(facts);
    }
    if to != from {
        snapshot.cluster.status = to;
        snapshot.cluster.status_updated_at = facts.now.into();
        if matches!(
            to,
            ClusterStatus::Installed | ClusterStatus::Error | ClusterStatus::Cancelled
        ) {
            snapshot.cluster.install_completed_at = facts.now.into();
        }
        events.push(status_event(snapshot));
    }
    for effect in rule.then {
        effects::run(*effect, snapshot, facts, policy, events);
    }
    Ok(())
}

fn status_event(snapshot: &Snapshot) -> NewEvent {
    let cluster = &snapshot.cluster;
    let said = format!(
        "updated status to {} ({})",
        cluster.status, cluster.status_info
    );
    about_cluster(
        snapshot,
        "cluster_status_updated",
        EventSeverity::Info,
        &said,
    )
    .prop("cluster_status", cluster.status)
    .prop("status_info", &cluster.status_info)
}
