//! The condition of a host after an observation: its state, its status, and the time of the next look. Pure.

use std::time::Duration;

use serde_json::json;

use super::access::NoAccess;
use super::action::BmcAction;
use super::bmc_job::SeenHost;
use super::hardware_details::hardware_details;
use super::intake::HostIntake;
use super::status_document::{DEPLOYMENT, GOOD_CREDENTIALS, TRIED_CREDENTIALS};
use super::timing::{ControllerTiming, spread};
use host_records::HostStatusRecord;
use host_records::host_state::ProvisioningState::{
    Deleting, Deprovisioning, Inspecting, PoweringOffBeforeDelete, Preparing, Unmanaged,
};
use host_records::host_state::{
    BmcReach, CredentialsReach, HostDecision, HostEffect, HostErrorType, HostFacts,
    HostStepOutcome, OperationalStatus, next,
};
use redfish::PowerState;

/// The answer of a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BmcOutcome {
    /// It was not asked.
    NotAsked,
    /// Record or secret give no access.
    NoAccess(NoAccess),
    /// It refuses the credentials; those that it refused before were not sent again.
    Refused { reason: String, is_new: bool },
    /// It is silent, or fails.
    Failed { reason: String },
    /// It accepts the credentials.
    Answered(SeenHost),
}

impl BmcOutcome {
    fn is_answered(&self) -> bool {
        matches!(self, Self::Answered(_))
    }

    /// Whether the BMC accepts the credentials, and the action has failed.
    fn is_failed_action(&self) -> bool {
        matches!(self, Self::Answered(seen) if seen.failure.is_some())
    }

    /// Whether credentials were sent.
    fn is_tried(&self) -> bool {
        !matches!(
            self,
            Self::NotAsked | Self::NoAccess(_) | Self::Refused { is_new: false, .. }
        )
    }

    /// The reason of a failure.
    fn reason(&self) -> Option<&str> {
        match self {
            Self::NotAsked => None,
            Self::NoAccess(refused) => Some(&refused.reason),
            Self::Refused { reason, .. } | Self::Failed { reason } => Some(reason),
            Self::Answered(seen) => seen.failure.as_deref(),
        }
    }
}

/// An observation of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostObservation {
    pub(super) action: BmcAction,
    pub(super) outcome: BmcOutcome,
    /// Version of the secret, where it was read.
    pub(super) secret_version: Option<String>,
}

/// The next look at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostNext {
    /// At once: its state has changed.
    Again,
    /// None: the record is to be released.
    Release,
    After(Duration),
    /// When the record changes.
    OnChange,
    /// None: the record does not exist any more.
    Forget,
}

/// The condition that a host should have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HostVerdict {
    pub(super) decision: HostDecision,
    pub(super) status: HostStatusRecord,
    /// Whether the status differs from that of the record.
    pub(super) is_changed: bool,
    /// Annotations to remove.
    pub(super) fulfilled: Vec<&'static str>,
    pub(super) next: HostNext,
}

/// The verdict about a host. `chance`, from 0 to 1, spreads the next looks.
pub(super) fn verdict(
    intake: &HostIntake,
    observation: &HostObservation,
    timing: &ControllerTiming,
    chance: f64,
) -> HostVerdict {
    let facts = facts(intake, observation);
    let decision = limited(intake, observation, next(intake.state, &facts));
    let before = intake.host.status.clone().unwrap_or_default();
    let mut status = before.clone();
    decision.write(&mut status);
    record_observation(intake, observation, &mut status);
    if decision.effects.contains(&HostEffect::ForgetDeployment) {
        for name in DEPLOYMENT {
            status.provisioning.other.remove(name);
        }
    }
    let is_failing = decision.error.is_some();
    status.error_message = if is_failing {
        let limit = intake.limit.map(|limit| limit.message);
        let reason = observation.outcome.reason().or(limit);
        reason.unwrap_or_default().to_owned()
    } else {
        String::new()
    };
    status.error_count = error_count(intake, &observation.outcome, &before, &status);
    let fulfilled = match &observation.outcome {
        BmcOutcome::Answered(seen) => {
            intake.fulfilled(seen.power == PowerState::Off, seen.inventory.is_some())
        }
        _ => Vec::new(),
    };
    let next = look(
        intake,
        observation,
        &decision,
        status.error_count,
        (timing, chance),
    );
    HostVerdict {
        is_changed: status != before,
        decision,
        status,
        fulfilled,
        next,
    }
}

/// The facts of the record, with those of the observation.
fn facts(intake: &HostIntake, observation: &HostObservation) -> HostFacts {
    use HostStepOutcome::{Done, Failed, Running};
    let is_limited = intake.limit.is_some();
    let (credentials, bmc) = match &observation.outcome {
        BmcOutcome::NotAsked => (CredentialsReach::Present, BmcReach::Unknown),
        BmcOutcome::NoAccess(refused) => (refused.credentials, BmcReach::Fails),
        BmcOutcome::Refused { .. } | BmcOutcome::Failed { .. } => {
            (CredentialsReach::Present, BmcReach::Fails)
        }
        BmcOutcome::Answered(_) => (CredentialsReach::Present, BmcReach::Answers),
    };
    let has_failed = observation.outcome.is_failed_action();
    let has_answered = observation.outcome.is_answered();
    let step = match (intake.state, &observation.outcome) {
        // A limit lets a deletion wait for a few attempts, as an erasure that fails does.
        (Deprovisioning, _) if is_limited => Failed,
        // Power that stays on by the record's wish is no step.
        (Deleting, _) | (Deprovisioning | PoweringOffBeforeDelete, BmcOutcome::NotAsked) => Done,
        (Inspecting | Deprovisioning | PoweringOffBeforeDelete, _) if has_failed => Failed,
        (Inspecting | Deprovisioning | PoweringOffBeforeDelete, _) if has_answered => Done,
        (Preparing, _) if has_answered && !is_limited => Done,
        _ => Running,
    };
    HostFacts {
        credentials,
        bmc,
        step,
        is_power_failing: has_failed && observation.action != BmcAction::Inspect,
        ..intake.facts.clone()
    }
}

/// The decision, with the error of a limit, or of an inspection that is no step.
fn limited(
    intake: &HostIntake,
    observation: &HostObservation,
    decision: HostDecision,
) -> HostDecision {
    if decision.state != intake.state || decision.error.is_some() {
        return decision;
    }
    let is_inspection = observation.action == BmcAction::Inspect;
    let is_inspection = is_inspection && observation.outcome.is_failed_action();
    let inspection = is_inspection.then_some(HostErrorType::Inspection);
    let is_detached = decision.operational == OperationalStatus::Detached;
    let limit = intake.limit.filter(|_| !is_detached);
    match inspection.or(limit.map(|limit| limit.error)) {
        Some(error) => HostDecision {
            operational: OperationalStatus::Error,
            error: Some(error),
            ..decision
        },
        None => decision,
    }
}

/// Power, hardware and credentials.
fn record_observation(
    intake: &HostIntake,
    observation: &HostObservation,
    status: &mut HostStatusRecord,
) {
    if let BmcOutcome::Answered(seen) = &observation.outcome {
        match seen.power {
            PowerState::On | PowerState::PoweringOn => status.powered_on = true,
            PowerState::Off => status.powered_on = false,
            PowerState::PoweringOff | PowerState::Unknown => {}
        }
        if let Some(inventory) = &seen.inventory {
            let boot_mac = intake.host.spec.boot_mac_address.as_deref();
            let hardware = hardware_details(inventory, boot_mac);
            status.other.insert("hardware".to_owned(), hardware);
        }
    }
    let version = observation.secret_version.as_ref();
    let Some(version) = version.filter(|_| observation.outcome.is_tried()) else {
        return;
    };
    let credentials = json!({
        "credentials": {
            "name": intake.host.spec.bmc.credentials_name,
            "namespace": intake.host.metadata.namespace,
        },
        "credentialsVersion": version,
    });
    if observation.outcome.is_answered() {
        let good = credentials.clone();
        status.other.insert(GOOD_CREDENTIALS.to_owned(), good);
    }
    status
        .other
        .insert(TRIED_CREDENTIALS.to_owned(), credentials);
}

/// Failures in a row. Looks that try nothing new do not count, unless a deletion waits for their number.
fn error_count(
    intake: &HostIntake,
    outcome: &BmcOutcome,
    before: &HostStatusRecord,
    now: &HostStatusRecord,
) -> u64 {
    if now.error_type.is_empty() {
        return 0;
    }
    // Errors of another state are not those of this one.
    let is_same_state = before.provisioning.state == now.provisioning.state;
    let present = if is_same_state { before.error_count } else { 0 };
    let has_failed_anew = outcome.is_tried() && outcome.reason().is_some();
    let error = |it: &HostStatusRecord| (it.error_type.clone(), it.error_message.clone());
    let is_counted = has_failed_anew || error(before) != error(now) || intake.facts.is_deleting;
    present.saturating_add(u64::from(is_counted || present == 0))
}

fn look(
    intake: &HostIntake,
    observation: &HostObservation,
    decision: &HostDecision,
    failures: u64,
    (timing, chance): (&ControllerTiming, f64),
) -> HostNext {
    let outcome = &observation.outcome;
    let has_no_login = matches!(
        outcome,
        BmcOutcome::NoAccess(_) | BmcOutcome::Refused { .. }
    );
    let is_waiting_for_secret = has_no_login && !intake.facts.is_deleting;
    // Nothing is tried again because of a limit.
    let is_limited = outcome.is_answered() && !outcome.is_failed_action();
    if decision.effects.contains(&HostEffect::ReleaseRecord) {
        HostNext::Release
    } else if decision.state != intake.state {
        HostNext::Again
    } else if is_waiting_for_secret {
        HostNext::After(spread(timing.secret_poll, chance))
    } else if decision.error.is_some() && !is_limited {
        HostNext::After(timing.backoff(failures, chance))
    } else if decision.state == Unmanaged || decision.operational == OperationalStatus::Detached {
        HostNext::OnChange
    } else {
        HostNext::After(spread(timing.power_poll, chance))
    }
}
