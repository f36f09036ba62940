//! Collection of causes: their order, their bound, and the outcome that follows from them.

use std::collections::{BTreeSet, HashMap};

use model::explain::{
    Cause, CauseKind, CauseStatus, ExplainedSubject, Explanation, ExplanationOutcome, SubjectKind,
};
use model::host::Host;
use model::ids::HostId;
use model::time::{DateTime, Timestamp};
use model::validations::{ClusterValidationId, HostValidationId};
use uuid::Uuid;

use super::states::StateRow;
use crate::explain::validations::{
    ClusterBlock, ClusterValidation, HostBlock, HostValidation, INVENTORY, Verdict,
};
use crate::snapshot::host_state::ObservedTime;

/// Longest list of causes of one explanation.
pub const MAX_CAUSES: usize = 1000;

/// Times at which validations began to fail, as events record them: by host, none for the cluster's own, and by id.
pub type FailureTimes = HashMap<(Option<HostId>, String), Timestamp>;

/// Order of causes: each is to be removed before the later ones, many of which disappear with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A status or stage that its subject does not leave by itself.
    Stuck,
    /// A host without heartbeats or inventory, whose other inputs are unknown or out of date.
    Connection,
    /// An input of the user.
    Input,
    /// A failed validation of a host.
    Host,
    /// A failed validation of the cluster.
    Cluster,
    /// An input that is not known yet.
    Pending,
    /// A consequence of hosts' causes.
    Consequence,
    /// Work in progress, within its time.
    Waiting,
}

/// Row and verdict of a validation that does not pass.
struct Failed {
    id: &'static str,
    rank: Rank,
    required: &'static str,
    fix: &'static str,
    verdict: Verdict,
}

/// Inputs that validations wait for, by the validation of the cluster that fails without them.
const INPUTS: [(ClusterValidationId, &str); 5] = [
    (
        ClusterValidationId::MachineCidrDefined,
        "the machine network",
    ),
    (ClusterValidationId::ApiVipsDefined, "api_vips to be set"),
    (
        ClusterValidationId::IngressVipsDefined,
        "ingress_vips to be set",
    ),
    (
        ClusterValidationId::ClusterCidrDefined,
        "cluster_networks to be set",
    ),
    (ClusterValidationId::DnsDomainDefined, "the base domain"),
];

/// Causes of one explanation.
pub(super) struct Causes<'a> {
    failures: &'a FailureTimes,
    now: Timestamp,
    outcome: ExplanationOutcome,
    found: Vec<(Rank, Cause)>,
    /// Inputs that subjects wait for.
    inputs: BTreeSet<(Uuid, String)>,
}

impl<'a> Causes<'a> {
    pub(super) fn new(failures: &'a FailureTimes, now: Timestamp) -> Self {
        Self {
            failures,
            now,
            outcome: ExplanationOutcome::Settled,
            found: Vec::new(),
            inputs: BTreeSet::new(),
        }
    }

    pub(super) fn add_cluster_validation(
        &mut self,
        about: &ExplainedSubject,
        since: DateTime,
        row: &ClusterValidation,
        verdict: Verdict,
    ) {
        let rank = match row.blocks {
            ClusterBlock::Nothing => return,
            _ if row.id == ClusterValidationId::AllHostsAreReadyToInstall => Rank::Consequence,
            ClusterBlock::Input | ClusterBlock::VipInput => Rank::Input,
            ClusterBlock::Install => Rank::Cluster,
        };
        let failed = Failed {
            id: row.id.as_str(),
            rank,
            required: row.required,
            fix: row.fix,
            verdict,
        };
        self.add_validation(about, None, since, failed);
    }

    pub(super) fn add_host_validation(
        &mut self,
        about: &ExplainedSubject,
        record: &Host,
        row: &HostValidation,
        verdict: Verdict,
    ) {
        let is_inventory = row.id == HostValidationId::HasInventory;
        if is_inventory && matches!(verdict, Verdict::Failure(_)) {
            // This cause explains the validations that wait for it.
            self.inputs.insert((about.id, INVENTORY.to_owned()));
        }
        let is_connection = is_inventory || row.blocks == HostBlock::Connection;
        let failed = Failed {
            id: row.id.as_str(),
            rank: if is_connection {
                Rank::Connection
            } else {
                Rank::Host
            },
            required: row.required,
            fix: row.fix,
            verdict,
        };
        self.add_validation(about, Some(record.id), record.status_updated_at, failed);
    }

    fn add_validation(
        &mut self,
        about: &ExplainedSubject,
        host: Option<HostId>,
        since: DateTime,
        failed: Failed,
    ) {
        let (status, rank, finding) = match failed.verdict {
            Verdict::Success(_) | Verdict::Hidden => return,
            Verdict::Failure(finding) => (CauseStatus::Failure, failed.rank, finding),
            Verdict::Error(finding) => (CauseStatus::Error, failed.rank, finding),
            Verdict::Pending(ref input) => {
                // Of the validations that wait for one input, only the first is listed.
                if self.inputs.insert((about.id, input.clone())) {
                    self.add_pending(about, since, &failed, input);
                }
                return;
            }
        };
        let recorded = self.failures.get(&(host, failed.id.to_owned()));
        let since = recorded.map_or(since, |time| DateTime::from(*time));
        let or = |text: String, default: &str| {
            if text.is_empty() {
                default.to_owned()
            } else {
                text
            }
        };
        let cause = Cause {
            observed: or(finding.observed, &finding.message),
            required: or(finding.required, failed.required),
            fix: or(finding.fix, failed.fix),
            ..cause(status, failed.id, about, since)
        };
        self.add(rank, ExplanationOutcome::NotReady, cause);
    }

    fn add_pending(
        &mut self,
        about: &ExplainedSubject,
        since: DateTime,
        failed: &Failed,
        input: &str,
    ) {
        let fix = format!(
            "Wait for {input}; if it does not come, remove the causes that are listed before this one."
        );
        let cause = Cause {
            observed: waiting_for(input),
            required: failed.required.to_owned(),
            fix,
            ..cause(CauseStatus::Pending, failed.id, about, since)
        };
        self.add(Rank::Pending, ExplanationOutcome::NotReady, cause);
    }

    /// Adds a status or stage.
    pub(super) fn add_state<I>(
        &mut self,
        about: &ExplainedSubject,
        status_since: DateTime,
        row: &StateRow<I>,
        input: &I,
        observed: ObservedTime,
    ) {
        let timeout = row.timeout;
        let is_overdue = timeout.is_some_and(|timeout| timeout.is_expired(self.now, observed));
        let status = if is_overdue {
            CauseStatus::Overdue
        } else if row.is_stuck {
            CauseStatus::Failure
        } else {
            CauseStatus::Waiting
        };
        let (rank, outcome) = match status {
            CauseStatus::Waiting => (Rank::Waiting, ExplanationOutcome::InProgress),
            _ => (Rank::Stuck, ExplanationOutcome::Stuck),
        };
        let since = timeout.map_or(status_since, |timeout| timeout.since);
        let cause = Cause {
            kind: row.kind,
            allowed_seconds: timeout.map(|timeout| timeout.limit.num_seconds()),
            observed: (row.observed)(input),
            required: row.required.to_owned(),
            fix: row.fix.to_owned(),
            ..cause(status, row.id, about, since)
        };
        self.add(rank, outcome, cause);
    }

    fn add(&mut self, rank: Rank, outcome: ExplanationOutcome, cause: Cause) {
        self.outcome = self.outcome.max(outcome);
        self.found.push((rank, cause));
    }

    /// Removes causes that a missing setting of the cluster explains: validations that wait for it, and those of hosts that
    /// lack it, too.
    fn remove_consequences(&mut self) {
        let missing: Vec<(&str, String)> = INPUTS
            .iter()
            .map(|(id, input)| (id.as_str(), waiting_for(input)))
            .filter(|(id, _)| self.found.iter().any(|(_, cause)| is_missing(cause, id)))
            .collect();
        let machine_network = ClusterValidationId::MachineCidrDefined.as_str();
        let lacks_network = missing.iter().any(|(id, _)| *id == machine_network);
        self.found.retain(|(_, cause)| {
            let is_host = cause.subject.kind == SubjectKind::Host;
            let waits = cause.status == CauseStatus::Pending
                && missing.iter().any(|(_, text)| *text == cause.observed);
            let repeats = is_host && lacks_network && cause.id == machine_network;
            !waits && !repeats
        });
    }

    pub(super) fn into_explanation(
        mut self,
        subject: ExplainedSubject,
        status: String,
    ) -> Explanation {
        self.remove_consequences();
        // Stable: within a rank, the order of the tables.
        self.found.sort_by_key(|(rank, _)| *rank);
        let omitted = self.found.len().saturating_sub(MAX_CAUSES);
        self.found.truncate(MAX_CAUSES);
        Explanation {
            subject,
            status,
            outcome: self.outcome,
            causes: self.found.into_iter().map(|(_, cause)| cause).collect(),
            omitted_causes: i64::try_from(omitted).unwrap_or(i64::MAX),
        }
    }
}

fn waiting_for(input: &str) -> String {
    format!("waiting for {input}")
}

/// Whether the cause is that validation of the cluster, failed.
fn is_missing(cause: &Cause, id: &str) -> bool {
    cause.subject.kind == SubjectKind::Cluster
        && cause.id == id
        && cause.status == CauseStatus::Failure
}

fn cause(status: CauseStatus, id: &str, about: &ExplainedSubject, since: DateTime) -> Cause {
    Cause {
        kind: CauseKind::Validation,
        id: id.to_owned(),
        status,
        subject: about.clone(),
        since,
        ..Cause::default()
    }
}
