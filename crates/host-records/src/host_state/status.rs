//! Operational status and error type, as a table.

use super::facts::{HostFacts, HostStepOutcome};
use super::names::ProvisioningState::{
    self, Available, Created, Deleting, Deprovisioning, ExternallyProvisioned, Inspecting,
    MatchProfile, PoweringOffBeforeDelete, Preparing, Provisioned, Provisioning, Ready,
    Registering, Unmanaged,
};
use super::names::{HostErrorType, OperationalStatus};

/// A row.
pub struct StatusRule {
    /// States that it is about.
    pub states: &'static [ProvisioningState],
    /// The condition.
    pub when: fn(&HostFacts) -> bool,
    /// The operational status.
    pub status: OperationalStatus,
    /// The kind of error.
    pub error: Option<HostErrorType>,
    /// The reason, for readers.
    pub doc: &'static str,
}

const fn error(
    states: &'static [ProvisioningState],
    when: fn(&HostFacts) -> bool,
    error: HostErrorType,
    doc: &'static str,
) -> StatusRule {
    StatusRule {
        states,
        when,
        status: OperationalStatus::Error,
        error: Some(error),
        doc,
    }
}

const fn status(
    states: &'static [ProvisioningState],
    when: fn(&HostFacts) -> bool,
    status: OperationalStatus,
    doc: &'static str,
) -> StatusRule {
    StatusRule {
        states,
        when,
        status,
        error: None,
        doc,
    }
}

const fn has_failed(facts: &HostFacts) -> bool {
    matches!(facts.step, HostStepOutcome::Failed)
}

/// States in which the BMC is needed.
const MANAGED: &[ProvisioningState] = &[
    Registering,
    MatchProfile,
    Inspecting,
    Preparing,
    Ready,
    Available,
    Provisioning,
    Provisioned,
    ExternallyProvisioned,
    Deprovisioning,
    PoweringOffBeforeDelete,
];

/// The rows; the first that fits is taken.
pub static STATUSES: &[StatusRule] = &[
    status(
        &[Created],
        |_| true,
        OperationalStatus::Unknown,
        "Nothing was looked at.",
    ),
    status(
        &[Unmanaged],
        |_| true,
        OperationalStatus::Discovered,
        "The host has no BMC.",
    ),
    status(
        &[Ready, Available, Provisioned, ExternallyProvisioned],
        |it| it.is_detached,
        OperationalStatus::Detached,
        "The annotation detaches hosts that no step is working on.",
    ),
    error(
        MANAGED,
        HostFacts::is_unreachable,
        HostErrorType::Registration,
        "Credentials are missing or invalid, or the BMC refuses them or is silent.",
    ),
    error(
        &[Provisioned, ExternallyProvisioned],
        has_failed,
        HostErrorType::ProvisionedRegistration,
        "The installed host could not be taken over.",
    ),
    error(
        &[Inspecting],
        has_failed,
        HostErrorType::Inspection,
        "The inspection failed.",
    ),
    error(
        &[MatchProfile, Preparing],
        has_failed,
        HostErrorType::Preparation,
        "RAID or firmware could not be set.",
    ),
    error(
        &[Provisioning, Deprovisioning],
        has_failed,
        HostErrorType::Provisioning,
        "The installation or its removal failed.",
    ),
    error(
        &[PoweringOffBeforeDelete],
        has_failed,
        HostErrorType::PowerManagement,
        "The host could not be switched off.",
    ),
    error(
        &[Ready, Available, Provisioned, ExternallyProvisioned],
        |it| it.is_power_failing,
        HostErrorType::PowerManagement,
        "The power state could not be established.",
    ),
    status(
        &[Inspecting, Provisioning, Deprovisioning],
        |it| matches!(it.step, HostStepOutcome::Delayed),
        OperationalStatus::Delayed,
        "As many hosts as are allowed are being worked on.",
    ),
    status(
        &[Registering],
        |it| !it.is_registered(),
        OperationalStatus::Discovered,
        "The BMC was not yet tried.",
    ),
    status(
        MANAGED,
        |_| true,
        OperationalStatus::Ok,
        "Everything is as it should be.",
    ),
    status(
        &[Deleting],
        |_| true,
        OperationalStatus::Ok,
        "The record is about to be removed.",
    ),
];

/// Operational status and error type of a host in `state`.
pub(super) fn of(
    state: ProvisioningState,
    facts: &HostFacts,
) -> (OperationalStatus, Option<HostErrorType>) {
    let rule = STATUSES
        .iter()
        .find(|rule| rule.states.contains(&state) && (rule.when)(facts));
    // Each state has a row without condition, which a test proves.
    rule.map_or((OperationalStatus::Unknown, None), |rule| {
        (rule.status, rule.error)
    })
}
