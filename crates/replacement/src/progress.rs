//! Progress of a replacement: its journal, replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use etcd::SnapshotFile;
use etcd::quorum::MemberId;
use model::node_replacement::{ReplacementKind, ReplacementState, TwoVoterWindow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::case::{ReplacementCase, ReplacementRequest};
use super::csr::{CsrKind, ExpectedNode};
use super::step_id::StepId;

/// Format of the journal.
pub(super) const FORMAT: u32 = 1;

/// State before a step's effect, which its undo or a resumed run needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepIntent {
    /// The operator's override before; null where there was none.
    #[serde(skip_serializing_if = "Value::is_null", default)]
    pub previous_override: Value,
    /// Whether the pool was paused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub was_pool_paused: Option<bool>,
    /// Pending certificate requests before the node booted.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub earlier_csrs: BTreeSet<String>,
    /// Whether the machine that boots was on, with another system.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub was_on: bool,
}

/// Result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaceStepOutcome {
    /// The snapshot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub snapshot: Option<SnapshotFile>,
    /// Saved records.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub records: Vec<PathBuf>,
}

/// An event of a replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum ReplacementEvent {
    /// Its first entry.
    Opened {
        format: u32,
        request: Box<ReplacementRequest>,
        case: Box<ReplacementCase>,
    },
    /// A step's effect follows.
    Started { step: StepId, intent: StepIntent },
    /// A step is complete.
    Finished {
        step: StepId,
        /// Whether it was found done, without an effect of this replacement.
        was_done: bool,
        outcome: ReplaceStepOutcome,
    },
    /// A person confirmed that the old node is off.
    ConfirmedOff { by: String },
    /// A run ended in a step, which can be resumed.
    Stopped { step: StepId, reason: String },
    /// A certificate request is approved next.
    CsrApproved {
        name: String,
        kind: CsrKind,
        key_sha256: String,
    },
    /// A certificate request was not approved.
    CsrRefused { name: String, reason: String },
    /// A learner that does not catch up is removed next.
    LearnerDropped { member: MemberId },
    /// It ended before its last step.
    Aborted,
    /// It ended.
    Completed,
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacementEntry {
    /// Time of the entry.
    pub at: DateTime<Utc>,
    /// The event.
    #[serde(flatten)]
    pub event: ReplacementEvent,
}

/// A journal, replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplacementProgress {
    /// The wish.
    pub request: ReplacementRequest,
    /// The case.
    pub case: ReplacementCase,
    /// State.
    pub state: ReplacementState,
    /// Begun steps, with the first intent of each: later runs see a changed world.
    pub started: BTreeMap<StepId, StepIntent>,
    /// Complete steps.
    pub finished: BTreeMap<StepId, ReplaceStepOutcome>,
    /// Decided certificate requests: whether approved.
    pub csrs: BTreeMap<String, bool>,
    /// SHA-256 of the key of the node's first certificate.
    pub approved_key: Option<String>,
    /// The last reason of a stop, while it holds.
    pub stopped: Option<(StepId, String)>,
    /// The two-voter window.
    pub window: Option<TwoVoterWindow>,
}

impl ReplacementProgress {
    /// The progress of a replacement without a step.
    pub fn new(request: ReplacementRequest, case: ReplacementCase) -> Self {
        Self {
            request,
            case,
            state: ReplacementState::Unfinished,
            started: BTreeMap::new(),
            finished: BTreeMap::new(),
            csrs: BTreeMap::new(),
            approved_key: None,
            stopped: None,
            window: None,
        }
    }

    /// The progress after its first entry; none if it is another one, or of a later format.
    pub(super) fn open(entry: &ReplacementEntry) -> Option<Self> {
        match &entry.event {
            ReplacementEvent::Opened {
                format: FORMAT,
                request,
                case,
            } => Some(Self::new((**request).clone(), (**case).clone())),
            _ => None,
        }
    }

    /// Applies a later entry.
    pub(super) fn apply(&mut self, entry: &ReplacementEntry) {
        match &entry.event {
            ReplacementEvent::Opened { .. } | ReplacementEvent::LearnerDropped { .. } => {}
            ReplacementEvent::Started { step, intent } => {
                self.stopped = None;
                self.started.entry(*step).or_insert_with(|| intent.clone());
            }
            ReplacementEvent::Finished { step, outcome, .. } => {
                self.stopped = None;
                self.finished.insert(*step, outcome.clone());
                self.note_window(*step, entry.at);
            }
            ReplacementEvent::Stopped { step, reason } => {
                self.stopped = Some((*step, reason.clone()));
            }
            ReplacementEvent::CsrApproved {
                name,
                kind,
                key_sha256,
            } => {
                self.csrs.insert(name.clone(), true);
                if *kind == CsrKind::Client {
                    self.approved_key = Some(key_sha256.clone());
                }
            }
            ReplacementEvent::ConfirmedOff { by } => {
                self.request.confirmed_off_by = Some(by.clone());
            }
            ReplacementEvent::CsrRefused { name, .. } => {
                self.csrs.insert(name.clone(), false);
            }
            ReplacementEvent::Aborted => self.state = ReplacementState::Aborted,
            ReplacementEvent::Completed => self.state = ReplacementState::Completed,
        }
    }

    fn note_window(&mut self, step: StepId, at: DateTime<Utc>) {
        let is_short = self.case.kind == ReplacementKind::Failed && self.case.desired_voters == 3;
        match step {
            StepId::RemoveMember if is_short => {
                self.window = Some(TwoVoterWindow {
                    since: at,
                    until: None,
                });
            }
            StepId::PromoteMember => {
                if let Some(window) = &mut self.window {
                    window.until = Some(at);
                }
            }
            _ => {}
        }
    }

    pub(super) fn has_started(&self, step: StepId) -> bool {
        self.started.contains_key(&step)
    }

    pub(super) fn has_finished(&self, step: StepId) -> bool {
        self.finished.contains_key(&step)
    }

    pub(super) fn is_confirmed_off(&self) -> bool {
        self.request.confirmed_off_by.is_some()
    }

    pub(super) fn has_snapshot(&self) -> bool {
        self.request.skips_snapshot || self.has_finished(StepId::TakeSnapshot)
    }

    /// The operator's override before this replacement, null for an absent one; none where this replacement has not
    /// touched it.
    pub(super) fn previous_override(&self) -> Option<&Value> {
        let intent = self.started.get(&StepId::AllowRollout)?;
        Some(&intent.previous_override)
    }

    /// Whether the pool was paused before this replacement; none where this replacement has not touched it.
    pub(super) fn was_pool_paused(&self) -> Option<bool> {
        self.started.get(&StepId::PausePool)?.was_pool_paused
    }

    /// The joining node, for decisions about its certificate requests.
    pub(super) fn expected_node(&self, case: &ReplacementCase) -> ExpectedNode {
        let boot = self.started.get(&StepId::BootNode);
        ExpectedNode {
            name: case.new.name.clone(),
            addresses: BTreeSet::from([case.new.address]),
            earlier: boot.map(|it| it.earlier_csrs.clone()).unwrap_or_default(),
            approved_key: self.approved_key.clone(),
        }
    }
}
