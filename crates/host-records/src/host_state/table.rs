//! The transitions. Source: metal3-io/baremetal-operator, docs/BaremetalHost_ProvisioningState.dot.

use rules::table::{To, TransitionRule};

use super::facts::{DeploymentDelta, HostFacts, HostStepOutcome};
use super::names::ProvisioningState::{
    self, Available, Created, Deleting, Deprovisioning, ExternallyProvisioned, Inspecting,
    MatchProfile, PoweringOffBeforeDelete, Preparing, Provisioned, Provisioning, Ready,
    Registering, Unmanaged,
};

/// The trigger: the host is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconcile;

/// A change besides the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostEffect {
    /// Set the count of errors to zero.
    ClearErrors,
    /// Record image and custom deployment of the spec in the status.
    RecordDeployment,
    /// Remove image and custom deployment from the status.
    ForgetDeployment,
    /// Remove the finalizer: the record disappears.
    ReleaseRecord,
}

/// A row.
pub type HostTransition = TransitionRule<ProvisioningState, Reconcile, HostFacts, HostEffect>;

const fn row(
    name: &'static str,
    from: &'static [ProvisioningState],
    to: ProvisioningState,
    when: fn(&HostFacts) -> bool,
    doc: &'static str,
) -> HostTransition {
    TransitionRule {
        name,
        on: Reconcile,
        from,
        when,
        to: To::Go(to),
        info: None,
        then: &[HostEffect::ClearErrors],
        doc,
    }
}

const fn then(row: HostTransition, then: &'static [HostEffect]) -> HostTransition {
    TransitionRule { then, ..row }
}

const DEPLOYED: &[HostEffect] = &[HostEffect::ClearErrors, HostEffect::RecordDeployment];
const REMOVED: &[HostEffect] = &[HostEffect::ClearErrors, HostEffect::ForgetDeployment];

/// The rows; the first that fits is taken, and without one the state stays.
pub static TRANSITIONS: &[HostTransition] = &[
    TransitionRule {
        to: To::Stay,
        then: &[HostEffect::ReleaseRecord],
        ..row(
            "removes the record",
            &[Deleting],
            Deleting,
            |it| it.step == HostStepOutcome::Done || it.is_patience_over(),
            "Nothing of the host is kept any more.",
        )
    },
    row(
        "deletes a host that was not managed",
        &[Created, Unmanaged, Registering],
        Deleting,
        |it| it.is_deleting,
        "Its power state was never changed.",
    ),
    row(
        "deletes a detached host",
        &[
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
        ],
        Deleting,
        |it| it.is_deleting && it.is_detached,
        "Its BMC is not to be touched.",
    ),
    row(
        "removes the installation of a deleted host",
        &[Provisioning, Provisioned],
        Deprovisioning,
        |it| it.is_deleting,
        "The image is removed before the host is switched off.",
    ),
    row(
        "switches a deleted host off",
        &[
            MatchProfile,
            Inspecting,
            Preparing,
            Ready,
            Available,
            ExternallyProvisioned,
        ],
        PoweringOffBeforeDelete,
        |it| it.is_deleting,
        "A host without record must not keep running.",
    ),
    row(
        "deletes a host that cannot be switched off",
        &[PoweringOffBeforeDelete],
        Deleting,
        |it| it.step == HostStepOutcome::Done || it.is_patience_over(),
        "It is off, or a few attempts have failed.",
    ),
    then(
        row(
            "switches a host without installation off",
            &[Deprovisioning],
            PoweringOffBeforeDelete,
            |it| it.is_deleting && (it.step == HostStepOutcome::Done || it.is_patience_over()),
            "The installation is removed, or a few attempts have failed.",
        ),
        REMOVED,
    ),
    row(
        "waits for a BMC",
        &[Created],
        Unmanaged,
        |it| !it.has_bmc,
        "The record has neither address nor credentials.",
    ),
    row(
        "registers the BMC",
        &[Created, Unmanaged],
        Registering,
        |it| it.has_bmc,
        "The record has the address or the credentials of its BMC.",
    ),
    row(
        "takes over an installed host",
        &[Registering],
        ExternallyProvisioned,
        |it| it.is_registered() && it.is_externally_provisioned,
        "Something else has installed the host.",
    ),
    row(
        "inspects the hardware",
        &[Registering],
        Inspecting,
        |it| it.is_registered() && it.is_inspection_wanted,
        "The BMC accepts the credentials.",
    ),
    row(
        "skips the inspection",
        &[Registering],
        Preparing,
        HostFacts::is_registered,
        "The inspection is disabled, or was done.",
    ),
    row(
        "inspects a host that is no more installed by something else",
        &[ExternallyProvisioned],
        Inspecting,
        |it| !it.is_externally_provisioned && it.is_registered() && it.is_inspection_wanted,
        "The flag was cleared.",
    ),
    row(
        "prepares a host that is no more installed by something else",
        &[ExternallyProvisioned],
        Preparing,
        |it| !it.is_externally_provisioned && it.is_registered(),
        "The flag was cleared, and nothing is to be inspected.",
    ),
    row(
        "prepares the host",
        &[Inspecting],
        Preparing,
        |it| it.step == HostStepOutcome::Done,
        "The hardware is inspected.",
    ),
    row(
        "leaves the matching of profiles",
        &[MatchProfile],
        Preparing,
        |_| true,
        "Only old records have this state.",
    ),
    row(
        "offers the host",
        &[Preparing],
        Available,
        |it| it.step == HostStepOutcome::Done,
        "RAID and firmware are set.",
    ),
    row(
        "hands the host over",
        &[Ready, Available],
        ExternallyProvisioned,
        |it| it.is_externally_provisioned,
        "Something else installs the host.",
    ),
    row(
        "renames the state",
        &[Ready],
        Available,
        |_| true,
        "Only old records have this state.",
    ),
    row(
        "installs the host",
        &[Available],
        Provisioning,
        |it| it.is_online && it.deployment == DeploymentDelta::Wanted && it.is_registered(),
        "An image or a custom deployment is wanted, and the host is to run.",
    ),
    row(
        "cleans up after an installation that failed",
        &[Provisioning],
        Deprovisioning,
        |it| it.step == HostStepOutcome::Failed || it.deployment != DeploymentDelta::Wanted,
        "The installation failed, or is not wanted any more.",
    ),
    then(
        row(
            "has installed the host",
            &[Provisioning],
            Provisioned,
            |it| it.step == HostStepOutcome::Done,
            "The image is written, or the custom deployment done.",
        ),
        DEPLOYED,
    ),
    row(
        "removes the installation",
        &[Provisioned],
        Deprovisioning,
        // A status that lost its deployment is no reason to erase a host.
        |it| {
            !matches!(
                it.deployment,
                DeploymentDelta::Same | DeploymentDelta::Wanted
            )
        },
        "Image or custom deployment were removed or changed.",
    ),
    then(
        row(
            "offers the host again",
            &[Deprovisioning],
            Available,
            |it| it.step == HostStepOutcome::Done,
            "The installation is removed.",
        ),
        REMOVED,
    ),
];
