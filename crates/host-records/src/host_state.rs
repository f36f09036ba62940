//! The state machine of a host, as a table; the pure function [`next`] reads it.
//!
//! It writes states and nothing else: the spec of a host, its consumer and its wanted power state are those of its
//! owner. An externally provisioned host stays so while its flag is set; its power state is managed, and no more.

mod facts;
mod names;
mod status;
mod table;

pub use facts::{BmcReach, CredentialsReach, DeploymentDelta, HostFacts, HostStepOutcome};
pub use names::{HostErrorType, OperationalStatus, ProvisioningState, UnknownState};
pub use status::{STATUSES, StatusRule};
pub use table::{HostEffect, HostTransition, Reconcile, TRANSITIONS};

use rules::table::{To, find};

use crate::HostStatusRecord;

/// The condition that a host should have now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostDecision {
    /// State.
    pub state: ProvisioningState,
    /// Operational status.
    pub operational: OperationalStatus,
    /// Kind of the error, with the operational status `error`.
    pub error: Option<HostErrorType>,
    /// Power state to establish; none where power is not managed, or is the matter of a step.
    pub power: Option<bool>,
    /// Changes besides the state.
    pub effects: &'static [HostEffect],
    /// Name of the rule; none if the state stays.
    pub rule: Option<&'static str>,
}

/// The decision about a host in `state`.
pub fn next(state: ProvisioningState, facts: &HostFacts) -> HostDecision {
    let table = [TRANSITIONS];
    let rule = find(&table, &Reconcile, &state, facts);
    let reached = match rule.map(|rule| &rule.to) {
        Some(To::Go(to)) => *to,
        _ => state,
    };
    // The outcome is that of the previous state's step.
    let facts = HostFacts {
        step: if reached == state {
            facts.step
        } else {
            HostStepOutcome::Running
        },
        ..facts.clone()
    };
    let (operational, error) = status::of(reached, &facts);
    HostDecision {
        state: reached,
        operational,
        error,
        power: power(reached, &facts),
        effects: rule.map(|rule| rule.then).unwrap_or_default(),
        rule: rule.map(|rule| rule.name),
    }
}

/// The power state to establish.
fn power(state: ProvisioningState, facts: &HostFacts) -> Option<bool> {
    use ProvisioningState::{
        Available, ExternallyProvisioned, PoweringOffBeforeDelete, Provisioned, Ready,
    };
    if facts.is_detached || !facts.is_registered() {
        return None;
    }
    match state {
        PoweringOffBeforeDelete => Some(false),
        Available | ExternallyProvisioned | Provisioned | Ready => {
            let is_forbidden = facts.is_power_off_disabled && !facts.is_online;
            (!is_forbidden).then_some(facts.is_online)
        }
        _ => None,
    }
}

impl HostDecision {
    /// Writes the decision into the status of a host; other members stay.
    pub fn write(&self, status: &mut HostStatusRecord) {
        self.state.name().clone_into(&mut status.provisioning.state);
        self.operational
            .name()
            .clone_into(&mut status.operational_status);
        let error = self.error.map(HostErrorType::name).unwrap_or_default();
        error.clone_into(&mut status.error_type);
        if self.error.is_none() {
            status.error_message.clear();
        }
        if self.effects.contains(&HostEffect::ClearErrors) {
            status.error_count = 0;
        }
    }
}

#[cfg(test)]
mod tests;
