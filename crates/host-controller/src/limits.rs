//! Wishes of records that the controller cannot fulfil, since it writes and erases no disks. Pure.

use serde_json::Value;

use host_records::BareMetalHost;
use host_records::host_state::ProvisioningState::{
    self, Available, Deprovisioning, Preparing, Provisioned, Provisioning, Ready,
};
use host_records::host_state::{DeploymentDelta, HostErrorType, HostFacts};

/// A row: the state stays, and the record has the error.
#[derive(Debug)]
pub(super) struct HostLimit {
    /// States that it is about.
    states: &'static [ProvisioningState],
    /// The condition.
    when: fn(&BareMetalHost, &HostFacts) -> bool,
    /// The deployment with which the table of states stays where it is.
    pub(super) deployment: DeploymentDelta,
    /// Kind of the error.
    pub(super) error: HostErrorType,
    /// The reason, and the remedy.
    pub(super) message: &'static str,
}

/// The rows; the first that fits is taken.
static LIMITS: &[HostLimit] = &[
    HostLimit {
        states: &[Ready, Available],
        when: |_, it| it.deployment == DeploymentDelta::Wanted && it.is_online,
        deployment: DeploymentDelta::None,
        error: HostErrorType::Provisioning,
        message: "this controller writes no images: boot the host from the discovery image of its cluster and set \
                  spec.externallyProvisioned, or remove spec.image and spec.customDeploy",
    },
    HostLimit {
        states: &[Provisioning],
        when: |_, it| it.deployment == DeploymentDelta::Wanted && !it.is_deleting,
        deployment: DeploymentDelta::Wanted,
        error: HostErrorType::Provisioning,
        message: "another controller began this installation, and this one writes no images: remove spec.image and \
                  spec.customDeploy, or delete the record and create it with spec.externallyProvisioned",
    },
    HostLimit {
        states: &[Provisioned],
        when: |_, it| it.deployment == DeploymentDelta::Changed && !it.is_deleting,
        deployment: DeploymentDelta::Same,
        error: HostErrorType::Provisioning,
        message: "this controller writes no images: restore spec.image and spec.customDeploy as they were",
    },
    HostLimit {
        states: &[Provisioned],
        when: |host, it| is_removed(it.deployment) && !it.is_deleting && !is_kept(host),
        deployment: DeploymentDelta::Same,
        error: HostErrorType::Provisioning,
        message: "this controller erases no disks: set spec.automatedCleaningMode to disabled, then the host is switched \
                  off and available, or restore spec.image and spec.customDeploy",
    },
    HostLimit {
        states: &[Deprovisioning],
        when: |host, _| !is_kept(host),
        deployment: DeploymentDelta::Removed,
        error: HostErrorType::Provisioning,
        message: "this controller erases no disks: erase them by hand if they have to be, and set \
                  spec.automatedCleaningMode to disabled",
    },
    HostLimit {
        states: &[Preparing],
        when: |host, it| has_firmware_wishes(host) && !it.is_deleting,
        deployment: DeploymentDelta::None,
        error: HostErrorType::Preparation,
        message: "this controller sets neither RAID nor firmware: set them by hand, and remove spec.raid and spec.firmware",
    },
];

/// The limit that a host has reached.
pub(super) fn of(
    state: ProvisioningState,
    host: &BareMetalHost,
    facts: &HostFacts,
) -> Option<&'static HostLimit> {
    LIMITS
        .iter()
        .find(|limit| limit.states.contains(&state) && (limit.when)(host, facts))
}

/// Whether its disks stay as they are when it is given back.
pub(super) fn is_kept(host: &BareMetalHost) -> bool {
    host.spec.automated_cleaning_mode.as_deref() == Some("disabled")
}

fn is_removed(deployment: DeploymentDelta) -> bool {
    matches!(deployment, DeploymentDelta::Removed | DeploymentDelta::None)
}

fn has_firmware_wishes(host: &BareMetalHost) -> bool {
    let has_members = |value: &Value| value.as_object().is_some_and(|it| !it.is_empty());
    ["raid", "firmware"]
        .iter()
        .any(|name| host.spec.other.get(*name).is_some_and(has_members))
}
