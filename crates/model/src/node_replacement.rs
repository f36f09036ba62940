//! Replacement of a control node: its plan, and its progress as its command publishes it in the cluster. No other
//! installer has them.

use serde::{Deserialize, Serialize};

use crate::time::{DateTime, Timestamp};
use crate::wire::wire_enum;

wire_enum! {
    /// Order of the changes.
    pub enum ReplacementKind {
        // Its member is unhealthy: it leaves first, then the new one joins.
        Failed = "failed",
        // Its member is healthy: the new one joins, then it leaves.
        Unwanted = "unwanted",
    }
}

wire_enum! {
    /// State of a replacement.
    pub enum ReplacementState {
        Unfinished = "unfinished",
        Aborted = "aborted",
        Completed = "completed",
    }
}

wire_enum! {
    /// State of a step.
    pub enum ReplacementStepState {
        // It follows.
        Planned = "planned",
        // Begun, and perhaps stopped.
        Started = "started",
        // By the world: its effect is left out.
        Done = "done",
        // By the journal.
        Finished = "finished",
    }
}

wire_enum! {
    /// Effect of an abort after a step.
    pub enum ReplacementUndo {
        // Nothing to undo: it is safe to stop here.
        Nothing = "nothing",
        // An abort undoes it.
        Reversible = "reversible",
        // It stays: the replacement is completed later.
        Stays = "stays",
    }
}

/// Body that requests a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplacementPlanParams {
    /// Name of the node that leaves.
    pub node: String,
    /// Name of the new node; that of the old one by default.
    #[serde(default)]
    pub new_name: Option<String>,
    /// Internal address of the new node; with its name.
    #[serde(default)]
    pub new_address: Option<String>,
    /// The node leaves although its member is healthy.
    #[serde(default)]
    pub unwanted: bool,
    /// Other nodes that are lost.
    #[serde(default)]
    pub also_lost: Vec<String>,
}

/// Name and internal address of a control node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedNode {
    pub name: String,
    pub address: String,
}

/// A plan: nothing is changed by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReplacementPlan {
    pub kind: ReplacementKind,
    pub old: ReplacedNode,
    pub new: ReplacedNode,
    /// Ids of the members of etcd that leave, in hexadecimal.
    pub members: Vec<String>,
    /// The old node's Machine.
    pub machine: Option<String>,
    /// The old node's BareMetalHost.
    pub host: Option<String>,
    /// Whether the Machine API works: etcd's operator takes nodes with a Machine only.
    pub has_machine_api: bool,
    /// Whether etcd's operator changes the membership; otherwise the replacement does.
    pub is_operator_managed: bool,
    /// Voters of etcd now.
    pub voters: ReplacementVoters,
    /// The fewest voters during the replacement; with two, quorum survives no failure.
    pub fewest_voters: usize,
    /// In their order.
    pub steps: Vec<ReplacementStep>,
    /// Reasons that keep the next step from its begin.
    pub closed: Vec<ClosedGate>,
}

/// Voters of etcd.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacementVoters {
    pub voters: usize,
    pub healthy: usize,
}

/// A step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacementStep {
    /// As `remove-member`.
    pub step: String,
    /// For people.
    pub title: String,
    pub state: ReplacementStepState,
    /// Whether it changes nothing, and waits for other programs.
    pub only_waits: bool,
    pub undo: ReplacementUndo,
}

/// A closed gate: a condition that is read live, and again right before each change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedGate {
    /// As `no-upgrade`.
    pub gate: String,
    /// With its remedy.
    pub reason: String,
    /// Whether it may open by itself; otherwise a person must act.
    pub may_open: bool,
}

/// The replacements of a cluster, as its records show them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeReplacement {
    /// The repair under way; null where none is.
    pub run: Option<RepairRun>,
    /// The last replacement that published its progress, ended or not.
    pub last: Option<ReplacementReport>,
}

/// A repair under way: the holder of the cluster's lease of repairs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairRun {
    /// As `alice@bastion, process 4711`.
    pub holder: String,
    /// By the clock of its machine.
    pub since: String,
    /// Its last sign of life, by the clock of its machine.
    pub seen_at: String,
}

/// Progress of a replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacementReport {
    pub id: String,
    pub updated_at: DateTime,
    pub kind: ReplacementKind,
    pub old: ReplacedNode,
    pub new: ReplacedNode,
    pub state: ReplacementState,
    /// In their order.
    pub steps: Vec<ReplacementStep>,
    /// Null while no step waits.
    pub waiting: Option<ReplacementWait>,
    /// The end of the last run, where it ended in a step.
    pub stopped: Option<ReplacementStop>,
    /// Null where quorum survives a failure at all times.
    pub window: Option<TwoVoterWindow>,
}

/// The wait of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacementWait {
    pub step: String,
    pub title: String,
    pub reason: String,
    /// Since when for this reason.
    pub since: DateTime,
}

/// The end of a run in a step: the next run continues there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacementStop {
    pub step: String,
    pub title: String,
    pub reason: String,
}

/// Period in which quorum survives no failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwoVoterWindow {
    /// Removal of the old member.
    pub since: Timestamp,
    /// Promotion of the new one.
    pub until: Option<Timestamp>,
}
