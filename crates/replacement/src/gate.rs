//! Gates: conditions that are read live, and again right before each change.

use etcd::AlarmKind;
use etcd::quorum::{MembershipChange, QuorumRefusal, decide_change};
use model::node_replacement::ReplacementKind;
use serde::Serialize;

use super::case::ReplacementCase;
use super::progress::ReplacementProgress;
use super::step_id::StepId;
use super::view::{KubernetesView, PowerState, ReplacementView};

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateId {
    /// The healthy voters are a majority.
    Quorum,
    /// The Kubernetes API answers.
    Kubernetes,
    /// The change of the membership is safe.
    Membership,
    /// Pacemaker does not own the membership.
    Topology,
    /// No upgrade is under way.
    NoUpgrade,
    /// No other Machine of the control plane is being deleted.
    NoOtherDeletion,
    /// No earlier replacement is unfinished.
    NoOtherReplacement,
    /// etcd accepts writes, and no member is corrupt.
    NoAlarm,
    /// The static pods of the nodes that stay have one revision.
    OneRevision,
    /// etcd's operator knows the present voters.
    EndpointsMatch,
    /// A snapshot was taken and is readable.
    Snapshot,
    /// The old node is off.
    Fenced,
    /// A linearizable write succeeds.
    Write,
}

/// The reason of a closed gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{gate:?}: {reason}")]
pub struct GateRefusal {
    /// The gate.
    pub gate: GateId,
    /// Whether it may open by itself; otherwise a person must act.
    pub may_open: bool,
    /// The reason, with its remedy.
    pub reason: String,
}

/// Facts of the gates.
pub(super) struct GateContext<'a> {
    pub(super) case: &'a ReplacementCase,
    pub(super) view: &'a ReplacementView,
    pub(super) progress: &'a ReplacementProgress,
    pub(super) step: StepId,
    /// Ids of other replacements that are unfinished.
    pub(super) others: &'a [String],
}

/// Verdict of a gate: closed with a reason, which passes by itself or not.
type Verdict = Result<(), (bool, String)>;

fn waits(reason: impl Into<String>) -> Verdict {
    Err((true, reason.into()))
}

fn stops(reason: impl Into<String>) -> Verdict {
    Err((false, reason.into()))
}

struct GateRule {
    gate: GateId,
    check: fn(&GateContext<'_>) -> Verdict,
}

/// `Write` is checked by a call, after all others.
static GATES: &[GateRule] = &[
    GateRule {
        gate: GateId::Quorum,
        check: |it| {
            let count = it.view.etcd.voter_count();
            if count.has_quorum() {
                return Ok(());
            }
            waits(format!("quorum is lost ({count}): bring a member back"))
        },
    },
    GateRule {
        gate: GateId::Kubernetes,
        check: |it| kubernetes(it).map(drop),
    },
    GateRule {
        gate: GateId::Membership,
        check: membership,
    },
    GateRule {
        gate: GateId::Topology,
        check: |it| {
            let kubernetes = kubernetes(it)?;
            if kubernetes.is_dual_replica() {
                return stops("Pacemaker owns the membership of etcd");
            }
            Ok(())
        },
    },
    GateRule {
        gate: GateId::NoUpgrade,
        check: |it| match &kubernetes(it)?.upgrade {
            Some(version) => stops(format!(
                "the cluster is upgraded to {version}: wait for its end"
            )),
            None => Ok(()),
        },
    },
    GateRule {
        gate: GateId::NoOtherDeletion,
        check: |it| {
            let mut machines = kubernetes(it)?.machines.iter();
            let other = machines.find(|(name, machine)| {
                machine.is_deleting && Some(*name) != it.case.machine.as_ref()
            });
            match other {
                Some((name, _)) => stops(format!("the Machine {name} is being deleted")),
                None => Ok(()),
            }
        },
    },
    GateRule {
        gate: GateId::NoOtherReplacement,
        check: |it| match it.others {
            [] => Ok(()),
            [other, ..] => stops(format!(
                "the replacement {other} is unfinished: resume or abort it"
            )),
        },
    },
    GateRule {
        gate: GateId::NoAlarm,
        check: |it| {
            let leaves = |member| it.case.targets.contains(member);
            let mut alarms = it.view.etcd.alarms.iter();
            // A corrupt member that leaves is the reason for its replacement.
            let alarm = alarms.find(|it| it.kind != AlarmKind::Corrupt || !leaves(&it.member));
            match alarm {
                Some(alarm) => stops(format!(
                    "etcd has the alarm {:?} of {}",
                    alarm.kind, alarm.member
                )),
                None => Ok(()),
            }
        },
    },
    GateRule {
        gate: GateId::OneRevision,
        check: one_revision,
    },
    GateRule {
        gate: GateId::EndpointsMatch,
        check: |it| {
            let known = &kubernetes(it)?.etcd_endpoints;
            // An unmanaged operator updates nothing.
            if !it.case.is_operator_managed {
                return Ok(());
            }
            let voters = it.view.voter_addresses();
            if *known == voters {
                return Ok(());
            }
            waits(format!(
                "etcd's operator knows the voters {known:?}, and there are {voters:?}"
            ))
        },
    },
    GateRule {
        gate: GateId::Snapshot,
        check: |it| {
            if it.progress.has_snapshot() {
                return Ok(());
            }
            stops("no snapshot was taken")
        },
    },
    GateRule {
        gate: GateId::Fenced,
        check: fenced,
    },
];

/// The closed gates among `gates`, in their order.
pub(super) fn closed(gates: &[GateId], context: &GateContext<'_>) -> Vec<GateRefusal> {
    let rules = GATES.iter().filter(|rule| gates.contains(&rule.gate));
    let refusals = rules.filter_map(|rule| {
        let (may_open, reason) = (rule.check)(context).err()?;
        Some(GateRefusal {
            gate: rule.gate,
            may_open,
            reason,
        })
    });
    refusals.collect()
}

/// The change of the membership that a step makes, if it makes one itself.
pub(super) fn membership_change(
    step: StepId,
    case: &ReplacementCase,
    view: &ReplacementView,
) -> Option<MembershipChange> {
    match step {
        StepId::RemoveMember => {
            let mut targets = case.targets.iter();
            let next = targets.find(|id| view.etcd.member(**id).is_some());
            next.map(|id| MembershipChange::Remove(*id))
        }
        StepId::AddMember if !case.is_operator_managed => Some(MembershipChange::AddLearner),
        StepId::PromoteMember if !case.is_operator_managed => {
            let learner = case.new_member(view)?;
            Some(MembershipChange::Promote(learner.member.id))
        }
        _ => None,
    }
}

fn kubernetes<'a>(context: &GateContext<'a>) -> Result<&'a KubernetesView, (bool, String)> {
    let view = context.view;
    view.kubernetes.as_ref().ok_or_else(|| {
        let failure = view
            .kubernetes_failure
            .as_deref()
            .unwrap_or("unknown reason");
        (
            true,
            format!("the Kubernetes API does not answer: {failure}"),
        )
    })
}

fn membership(context: &GateContext<'_>) -> Verdict {
    let Some(change) = membership_change(context.step, context.case, context.view) else {
        return Ok(());
    };
    let members = context.view.etcd.quorum_members();
    match decide_change(&members, change, &context.case.goal()) {
        Ok(_) => Ok(()),
        // These pass: elections, logs that catch up, members that come back.
        Err(
            refusal @ (QuorumRefusal::NoLeader
            | QuorumRefusal::SeveralLeaders { .. }
            | QuorumRefusal::LearnerLeads { .. }
            | QuorumRefusal::NotInSync { .. }
            | QuorumRefusal::UnhealthyMember { .. }
            | QuorumRefusal::NoQuorum { .. }),
        ) => waits(refusal.to_string()),
        Err(refusal) => stops(refusal.to_string()),
    }
}

fn one_revision(context: &GateContext<'_>) -> Verdict {
    for rollout in &kubernetes(context)?.rollouts {
        // A lost node keeps its revision for ever.
        let staying = rollout
            .revisions
            .iter()
            .filter(|(node, _)| !context.case.lost.contains(*node));
        let revisions: Vec<_> = staying.collect();
        let is_same = revisions.windows(2).all(|pair| pair[0].1 == pair[1].1);
        if !is_same {
            let operator = &rollout.operator;
            return waits(format!("{operator} rolls out: revisions {revisions:?}"));
        }
    }
    Ok(())
}

fn fenced(context: &GateContext<'_>) -> Verdict {
    let case = context.case;
    // A healthy node leaves while it runs: it is off before its own records are deleted, and its place is not used.
    let is_needed = match case.kind {
        ReplacementKind::Failed => true,
        ReplacementKind::Unwanted => {
            matches!(context.step, StepId::DeleteHost | StepId::DeleteMachine)
        }
    };
    if !is_needed
        || context.progress.has_started(StepId::BootNode) && case.kind == ReplacementKind::Failed
    {
        return Ok(());
    }
    match context.view.old_power {
        Some(PowerState::Off) => Ok(()),
        Some(PowerState::On) => stops(format!("{} is on: it must be off before", case.old.name)),
        None if context.progress.is_confirmed_off() => Ok(()),
        None => stops(format!(
            "the power of {} cannot be read: confirm that it is off",
            case.old.name
        )),
    }
}
