//! Transitions of a host: a trigger is applied by the rule that fits.

use model::Error;
use model::cluster::Cluster;
use model::events::EventSeverity;
use model::host::{HostKind, HostStage, HostStatus};
use model::time::Timestamp;

use super::effects;
use super::facts::{ClusterInputs, Facts, ProgressReport, StageMove};
use super::rule::HostRule;
use super::table::TABLE;
use super::trigger::{On, Trigger};
use crate::event::{NewEvent, about_host};
use crate::host::progress;
use crate::policy::InstallationPolicy;
use crate::snapshot::host_state::HostState;
use crate::table::{self, To};

/// Longest status text that the database takes. Units: characters.
const STATUS_INFO_LIMIT: usize = 2040;

/// Applies a trigger to a host.
///
/// Errors: Conflict – the host's status forbids it; Invalid – it forbids a registration, or a host without cluster
/// reports progress;
/// Forbidden – a host that waits for its user registers again.
pub fn apply(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    trigger: Trigger,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Error> {
    let on = trigger.on();
    let cluster_inputs = ClusterInputs {
        cluster_status: cluster.map(|cluster| cluster.status),
        ..ClusterInputs::default()
    };
    let mut facts = Facts::of(host, cluster, cluster_inputs, policy, now);
    match trigger {
        Trigger::Register { agent_version } => facts.agent_version = agent_version,
        Trigger::InstallationFailed { reason } => facts.reason = reason,
        Trigger::Progress { stage, info } => {
            facts.report = Some(report(host, cluster, stage, info)?);
        }
        Trigger::MediaDisconnected
        | Trigger::Cancel
        | Trigger::Reset
        | Trigger::Retry
        | Trigger::Install
        | Trigger::Bind
        | Trigger::Unbind
        | Trigger::RebootForReclaim
        | Trigger::ReclaimFailed => {}
    }
    let Some(rule) = table::find(TABLE, &on, &host.record.status, &facts) else {
        return Err(refusal(host, on));
    };
    let mut events = Vec::new();
    apply_rule(host, cluster, rule, &facts, &mut events)?;
    Ok(events)
}

/// Applies the first refresh rule that fits. A status without one stays.
pub(crate) fn refresh(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    facts: &Facts,
    events: &mut Vec<NewEvent>,
) {
    if let Some(rule) = table::find(TABLE, &On::Refresh, &host.record.status, facts) {
        // Refresh rules never refuse; the table's test proves it.
        let _ = apply_rule(host, cluster, rule, facts, events);
    }
}

/// Applies a rule.
fn apply_rule(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    rule: &HostRule,
    facts: &Facts,
    events: &mut Vec<NewEvent>,
) -> Result<(), Error> {
    let from = host.record.status;
    let to = match &rule.to {
        To::Stay => from,
        To::Go(status) => *status,
        To::Refuse(error) => return Err(error(facts)),
    };
    let info = rule.info.map(|info| cut(info(facts)));
    for effect in rule.then {
        effects::run(*effect, host, cluster, facts, events);
    }
    if let Some(info) = info {
        host.record.status_info = info;
    }
    if to != from {
        host.record.status = to;
        host.record.status_updated_at = facts.now.into();
        events.push(status_event(host, from));
    }
    Ok(())
}

fn status_event(host: &HostState, from: HostStatus) -> NewEvent {
    let to = host.record.status;
    let severity = match to {
        HostStatus::Disconnected
        | HostStatus::InstallingPendingUserAction
        | HostStatus::Insufficient => EventSeverity::Warning,
        HostStatus::Error => EventSeverity::Error,
        _ => EventSeverity::Info,
    };
    let info = &host.record.status_info;
    about_host(
        host,
        "host_status_updated",
        severity,
        &format!("updated status from {from} to {to} ({info})"),
    )
    .prop("severity", severity)
    .prop("src_status", from)
    .prop("new_status", to)
    .prop("info", info)
}

fn report(
    host: &HostState,
    cluster: Option<&Cluster>,
    stage: HostStage,
    info: String,
) -> Result<ProgressReport, Error> {
    let Some(cluster) = cluster else {
        return Err(Error::invalid(
            "host_id",
            format!(
                "host {} belongs to no cluster, so it has no installation progress",
                host.record.id
            ),
        ));
    };
    let stages = progress::stages(&host.record, cluster);
    let place = |wanted| stages.iter().position(|one| *one == wanted);
    let current = host
        .record
        .progress
        .as_ref()
        .and_then(|one| one.current_stage);
    let joined = host.record.kind == HostKind::AddToExistingClusterHost && stage == HostStage::Done;
    let step = match (current, place(stage)) {
        _ if stage == HostStage::Failed || joined => StageMove::Forward,
        (Some(current), Some(_)) if current == stage => StageMove::Same,
        (Some(current), Some(new)) if place(current).is_some_and(|old| new < old) => {
            StageMove::Back
        }
        (_, Some(_)) => StageMove::Forward,
        (_, None) => StageMove::Foreign,
    };
    Ok(ProgressReport { stage, info, step })
}

fn refusal(host: &HostState, on: On) -> Error {
    let doing = match on {
        On::Refresh => "be refreshed",
        On::Register => "register",
        On::Progress => "report installation progress",
        On::InstallationFailed => "report a failed installation",
        On::MediaDisconnected => "lose its boot medium",
        On::Cancel => "be cancelled",
        On::Reset => "be reset",
        On::Retry => "be retried alone",
        On::Install => "be installed on its own",
        On::Bind => "be bound to a cluster",
        On::Unbind => "be unbound from its cluster",
        On::RebootForReclaim => "restart into the discovery image",
        On::ReclaimFailed => "fail to be reclaimed",
    };
    let allowed = table::sources(TABLE, &on, HostStatus::ALL);
    let reason = format!(
        "host {} ({}) is {} and cannot {doing} now; it can while {}",
        host.name(),
        host.record.id,
        host.record.status,
        allowed
    );
    match on {
        // An agent waits for ever after a conflict. After 400 it retries, and registers once the cluster is reset.
        // Source: assisted-installer-agent, src/commands/register_node.go.
        On::Register => Error::invalid("host_id", reason),
        _ => Error::conflict(reason),
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(STATUS_INFO_LIMIT) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}
