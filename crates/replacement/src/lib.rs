//! Replacement of a control node: a plan, a journal, and steps that can be stopped after each entry.
//!
//! The steps, their gates and their undoing are tables. Before each change of etcd's membership the world is observed
//! again, and [`etcd::quorum::decide_change`] decides.

mod case;
mod cluster_records;
mod cluster_view;
mod csr;
mod effects;
mod error;
mod gate;
mod journal;
mod node_bmcs;
mod observer;
mod plan;
mod progress;
mod report;
mod run;
mod step;
mod step_id;
mod store;
mod strict_der;
mod template;
#[cfg(test)]
mod tests;
mod view;
mod wait;
mod world;

pub use case::{CaseRefusal, ReplacementCase, ReplacementRequest, open_case};
pub use csr::{
    CsrApproval, CsrKind, CsrRefusal, ExpectedNode, MAX_CSR_BYTES, MAX_CSRS, decide_csrs,
};
pub use error::ReplacementError;
pub use gate::{GateId, GateRefusal};
pub use journal::{JournalError, MAX_JOURNAL_BYTES};
pub use node_bmcs::NodeBmcs;
pub use observer::{
    ProgressPublisher, ReplacementObserver, RunEvent, publish_changes, publish_last,
};
pub use plan::{PlannedStep, ReplacementPlan, plan};
pub use progress::{
    ReplaceStepOutcome, ReplacementEntry, ReplacementEvent, ReplacementProgress, StepIntent,
};
pub use report::MAX_REASON;
pub use run::{abort, drop_learner, observe, observe_with, run};
pub use step::StepUndo;
pub use step_id::StepId;
pub use store::{OpenReplacement, ReplacementStore};
pub use template::record_template;
pub use view::{
    HostView, KubernetesView, MachineView, NodePlace, NodeView, PowerState, ReplacementView,
    RolloutView,
};
pub use wait::StepPatience;
pub use world::{
    KubernetesSide, MachineSide, NodeHardware, RecordKind, ReplacementWorld, WorldError,
};
