//! The steps, as a table.

use std::collections::BTreeSet;

use etcd::quorum::MemberRole;
use model::node_replacement::ReplacementKind;
use serde::Serialize;

use super::case::ReplacementCase;
use super::csr;
use super::gate::GateId;
use super::progress::ReplacementProgress;
use super::step_id::StepId;
use super::view::{KubernetesView, PowerState, ReplacementView};

/// Effect of an abort after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepUndo {
    /// Nothing to undo: it is safe to stop here.
    Nothing,
    /// An abort undoes it by this step.
    By(StepId),
    /// It stays: the replacement is completed later.
    Stays,
}

/// Facts of a step's completion.
pub(super) struct CompletionContext<'a> {
    pub(super) case: &'a ReplacementCase,
    pub(super) view: &'a ReplacementView,
    pub(super) progress: &'a ReplacementProgress,
}

impl CompletionContext<'_> {
    /// Whether the Kubernetes side answers, and `is` holds for it.
    fn kubernetes(&self, is: impl FnOnce(&KubernetesView) -> bool) -> bool {
        self.view.kubernetes.as_ref().is_some_and(is)
    }
}

/// A row of the table.
pub(super) struct StepRule {
    pub(super) id: StepId,
    /// Read right before its effect.
    pub(super) gates: &'static [GateId],
    /// Whether the world shows that it is done; none where only the journal does.
    pub(super) is_done: Option<fn(&CompletionContext<'_>) -> bool>,
    pub(super) undo: StepUndo,
}

/// Before any change: the cluster is in no other change.
const START: &[GateId] = &[
    GateId::Quorum,
    GateId::Topology,
    GateId::NoUpgrade,
    GateId::NoOtherDeletion,
    GateId::NoOtherReplacement,
    GateId::NoAlarm,
];
/// Before each change of the membership.
const MEMBERSHIP: &[GateId] = &[
    GateId::Topology,
    GateId::NoUpgrade,
    GateId::NoOtherDeletion,
    GateId::NoOtherReplacement,
    GateId::NoAlarm,
    GateId::OneRevision,
    GateId::EndpointsMatch,
    GateId::Snapshot,
    GateId::Fenced,
    GateId::Membership,
    GateId::Write,
];
/// Before the old node's place is used again.
const PLACE: &[GateId] = &[GateId::Quorum, GateId::Kubernetes, GateId::Fenced];
/// Before changes of records.
const RECORDS: &[GateId] = &[GateId::Quorum, GateId::Kubernetes];
const KUBERNETES: &[GateId] = &[GateId::Kubernetes];
const ALIVE: &[GateId] = &[GateId::Quorum];

/// Each step once, in the order of a failed node. `run` has their effects.
pub(super) static STEPS: &[StepRule] = &[
    StepRule {
        id: StepId::TakeSnapshot,
        gates: START,
        is_done: None,
        undo: StepUndo::Nothing,
    },
    StepRule {
        id: StepId::SaveRecords,
        gates: RECORDS,
        is_done: None,
        undo: StepUndo::Nothing,
    },
    StepRule {
        id: StepId::FenceNode,
        gates: ALIVE,
        is_done: Some(|it| match it.view.old_power {
            Some(power) => power == PowerState::Off,
            None => it.progress.is_confirmed_off(),
        }),
        undo: StepUndo::Nothing,
    },
    StepRule {
        id: StepId::PausePool,
        gates: RECORDS,
        is_done: Some(|it| it.kubernetes(|it| it.is_pool_paused)),
        undo: StepUndo::By(StepId::ResumePool),
    },
    StepRule {
        id: StepId::AllowRollout,
        gates: RECORDS,
        is_done: Some(|it| it.kubernetes(|it| it.rollout_override == true)),
        undo: StepUndo::By(StepId::RestoreRollout),
    },
    StepRule {
        id: StepId::MoveLeader,
        gates: ALIVE,
        is_done: Some(|it| {
            let leader = it.view.etcd.leader();
            leader.is_some_and(|leader| !it.case.targets.contains(&leader.member.id))
        }),
        undo: StepUndo::Nothing,
    },
    StepRule {
        id: StepId::RemoveMember,
        gates: MEMBERSHIP,
        is_done: Some(|it| {
            let mut targets = it.case.targets.iter();
            targets.all(|id| it.view.etcd.member(*id).is_none())
        }),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::DeleteSecrets,
        gates: RECORDS,
        is_done: Some(|it| {
            let secrets = member_secrets(&it.case.old.name);
            it.kubernetes(|it| it.etcd_secrets.is_disjoint(&secrets))
        }),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::DeleteHost,
        gates: PLACE,
        is_done: Some(|it| {
            let host = it.case.host.as_ref();
            it.kubernetes(|it| host.is_none_or(|host| !it.hosts.contains_key(host)))
        }),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::RetireMachine,
        gates: RECORDS,
        is_done: Some(|it| {
            let machine = it.case.machine.as_ref();
            it.kubernetes(|it| {
                let found = machine.and_then(|name| it.machines.get(name));
                found.is_none_or(|it| it.is_deleting)
            })
        }),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::DeleteMachine,
        gates: PLACE,
        is_done: Some(|it| {
            let machine = it.case.machine.as_ref();
            it.kubernetes(|it| machine.is_none_or(|name| !it.machines.contains_key(name)))
        }),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::DeleteNode,
        gates: RECORDS,
        is_done: Some(|it| {
            it.kubernetes(|kubernetes| !kubernetes.nodes.contains_key(&it.case.old.name))
        }),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::CreateRecords,
        gates: PLACE,
        is_done: None,
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::BootNode,
        gates: PLACE,
        is_done: Some(|it| {
            let has_node =
                it.kubernetes(|kubernetes| kubernetes.nodes.contains_key(&it.case.new.name));
            // It installs for minutes: another boot would begin again. A machine that was on before may be as it was.
            let begun = it.progress.started.get(&StepId::BootNode);
            let is_booting = begun
                .is_some_and(|intent| !intent.was_on && it.view.new_power != Some(PowerState::Off));
            has_node || is_booting
        }),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::JoinNode,
        gates: ALIVE,
        is_done: Some(|it| {
            it.kubernetes(|kubernetes| {
                let node = kubernetes.nodes.get(&it.case.new.name);
                let is_ready = node
                    .is_some_and(|node| node.is_ready && node.address == Some(it.case.new.address));
                let expected = it.progress.expected_node(it.case);
                let decided = csr::decide_csrs(&kubernetes.pending_csrs, &expected);
                is_ready && !decided.values().any(Result::is_ok)
            })
        }),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::EjectImage,
        gates: &[],
        is_done: None,
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::AddMember,
        gates: MEMBERSHIP,
        is_done: Some(|it| it.case.new_member(it.view).is_some()),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::PromoteMember,
        gates: MEMBERSHIP,
        is_done: Some(|it| {
            let member = it.case.new_member(it.view);
            member.is_some_and(|it| it.is_healthy() && it.member.role == MemberRole::Voter)
        }),
        undo: StepUndo::Stays,
    },
    StepRule {
        id: StepId::RestoreRollout,
        gates: KUBERNETES,
        is_done: Some(|it| {
            let previous = it.progress.previous_override();
            it.kubernetes(|it| previous.is_none_or(|previous| it.rollout_override == *previous))
        }),
        undo: StepUndo::Nothing,
    },
    StepRule {
        id: StepId::ResumePool,
        gates: KUBERNETES,
        is_done: Some(|it| {
            let was_paused = it.progress.was_pool_paused();
            it.kubernetes(|it| was_paused.is_none_or(|paused| it.is_pool_paused == paused))
        }),
        undo: StepUndo::Nothing,
    },
    StepRule {
        id: StepId::SettleOperators,
        gates: &[],
        is_done: Some(|it| {
            let count = it.view.etcd.voter_count();
            // Nodes that are lost as well are replaced later.
            let missing = it.case.lost.len() - 1;
            let is_complete =
                count.healthy == count.voters && count.voters + missing >= it.case.desired_voters;
            is_complete && it.kubernetes(|kubernetes| is_settled(it, kubernetes))
        }),
        undo: StepUndo::Nothing,
    },
];

/// Steps in the order of a case; those that do not apply are left out.
static FAILED: &[StepId] = &[
    StepId::TakeSnapshot,
    StepId::SaveRecords,
    StepId::FenceNode,
    StepId::PausePool,
    StepId::AllowRollout,
    StepId::MoveLeader,
    StepId::RemoveMember,
    StepId::DeleteSecrets,
    StepId::DeleteHost,
    StepId::DeleteMachine,
    StepId::DeleteNode,
    StepId::CreateRecords,
    StepId::BootNode,
    StepId::JoinNode,
    StepId::EjectImage,
    StepId::AddMember,
    StepId::PromoteMember,
    StepId::RestoreRollout,
    StepId::ResumePool,
    StepId::SettleOperators,
];
/// etcd's operator takes a removed member in again as long as its node has a Machine that stays, or, without the
/// Machine API, as long as the Node exists: that leaves first.
static UNWANTED: &[StepId] = &[
    StepId::TakeSnapshot,
    StepId::SaveRecords,
    StepId::CreateRecords,
    StepId::BootNode,
    StepId::JoinNode,
    StepId::EjectImage,
    StepId::AddMember,
    StepId::PromoteMember,
    StepId::MoveLeader,
    StepId::RetireMachine,
    StepId::DeleteNode,
    StepId::RemoveMember,
    StepId::FenceNode,
    StepId::DeleteSecrets,
    StepId::DeleteMachine,
    StepId::DeleteHost,
    StepId::SettleOperators,
];

/// The steps of a case, in their order.
pub(super) fn sequence(case: &ReplacementCase) -> Vec<StepId> {
    let steps = match case.kind {
        ReplacementKind::Failed => FAILED,
        ReplacementKind::Unwanted => UNWANTED,
    };
    let applies = |step: &StepId| match step {
        StepId::AllowRollout | StepId::RestoreRollout => case.is_operator_managed,
        StepId::DeleteHost => case.host.is_some(),
        StepId::RetireMachine | StepId::DeleteMachine => case.machine.is_some(),
        _ => true,
    };
    steps.iter().copied().filter(applies).collect()
}

/// The row of a step.
pub(super) fn rule(step: StepId) -> &'static StepRule {
    let found = STEPS.iter().find(|it| it.id == step);
    found.expect("a test finds a row for every step")
}

/// Secrets of a node's member. Source: cluster-etcd-operator, pkg/tlshelpers.
pub(super) fn member_secrets(node: &str) -> BTreeSet<String> {
    let kinds = ["peer", "serving", "serving-metrics"];
    kinds.map(|kind| format!("etcd-{kind}-{node}")).into()
}

/// Whether the static pods of all living nodes have the newest revision, and the operator knows all voters.
fn is_settled(context: &CompletionContext<'_>, kubernetes: &KubernetesView) -> bool {
    let case = context.case;
    let lives = |node: &String| *node == case.new.name || !case.lost.contains(node);
    let is_newest = kubernetes.rollouts.iter().all(|rollout| {
        let mut revisions = rollout.revisions.iter();
        revisions.all(|(node, revision)| !lives(node) || *revision == rollout.latest)
    });
    let is_known = kubernetes.etcd_endpoints == context.view.voter_addresses();
    is_newest && (is_known || !case.is_operator_managed)
}

/// Whether a step changes nothing: it waits for other programs.
pub(super) fn only_waits(step: StepId, case: &ReplacementCase) -> bool {
    match step {
        StepId::JoinNode | StepId::SettleOperators => true,
        StepId::AddMember | StepId::PromoteMember => case.is_operator_managed,
        _ => false,
    }
}

/// Whether a step is done as soon as its effect returns: a boot does once the machine runs from its image.
pub(super) fn ends_with_effect(rule: &StepRule) -> bool {
    rule.is_done.is_none() || rule.id == StepId::BootNode
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_one_row_and_the_undo_steps_exist() {
        let listed: BTreeSet<_> = FAILED.iter().chain(UNWANTED).copied().collect();
        let rows: Vec<_> = STEPS.iter().map(|it| it.id).collect();
        assert_eq!(rows.iter().copied().collect::<BTreeSet<_>>(), listed);
        assert_eq!(rows.len(), listed.len());
        for row in STEPS {
            if let StepUndo::By(undo) = row.undo {
                let position = |step| FAILED.iter().position(|it| *it == step).unwrap();
                assert!(position(undo) > position(row.id), "{:?}", row.id);
                assert_eq!(rule(undo).undo, StepUndo::Nothing);
            }
        }
    }

    #[test]
    fn a_failed_member_leaves_first_and_a_healthy_one_last() {
        let position = |steps: &[StepId], step| steps.iter().position(|it| *it == step).unwrap();
        for (first, second) in [
            (StepId::TakeSnapshot, StepId::RemoveMember),
            (StepId::FenceNode, StepId::RemoveMember),
            (StepId::MoveLeader, StepId::RemoveMember),
            (StepId::RemoveMember, StepId::AddMember),
            (StepId::AddMember, StepId::PromoteMember),
            (StepId::SaveRecords, StepId::DeleteHost),
            (StepId::CreateRecords, StepId::AddMember),
            (StepId::PromoteMember, StepId::RestoreRollout),
        ] {
            assert!(
                position(FAILED, first) < position(FAILED, second),
                "{first:?}"
            );
        }
        for (first, second) in [
            (StepId::PromoteMember, StepId::RemoveMember),
            (StepId::MoveLeader, StepId::RemoveMember),
            (StepId::RetireMachine, StepId::RemoveMember),
            (StepId::RemoveMember, StepId::FenceNode),
            (StepId::FenceNode, StepId::DeleteHost),
        ] {
            assert!(
                position(UNWANTED, first) < position(UNWANTED, second),
                "{first:?}"
            );
        }
    }

    #[test]
    fn every_change_of_the_membership_has_its_gates() {
        for step in [
            StepId::RemoveMember,
            StepId::AddMember,
            StepId::PromoteMember,
        ] {
            let gates = rule(step).gates;
            assert!(
                gates.contains(&GateId::Membership) && gates.contains(&GateId::Write),
                "{step:?}"
            );
        }
    }
}
