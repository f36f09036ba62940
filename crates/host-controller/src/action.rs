//! The part of a reconciliation that needs the BMC: chosen before it is asked, so that one login does. Pure.

use serde_json::Value;

use super::intake::HostIntake;
use super::limits;
use host_records::host_state::ProvisioningState::{
    self, Available, Created, Deleting, Deprovisioning, ExternallyProvisioned, Inspecting,
    PoweringOffBeforeDelete, Provisioned, Ready, Unmanaged,
};
use host_records::host_state::{BmcReach, CredentialsReach, HostErrorType, HostFacts, next};

/// The annotation that restarts a host, once it is off; with a name behind a slash, the host is off while it is there.
/// Source: metal3-io/metal3-docs, design/baremetal-operator/reboot-interface.md.
pub(super) const REBOOT: &str = "reboot.metal3.io";
/// The annotation that has the hardware inspected again.
pub(super) const INSPECT: &str = "inspect.metal3.io";
const DISABLED: &str = "disabled";

/// An action by the BMC, after its login and a look at the power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BmcAction {
    /// The BMC is not asked.
    None,
    /// The login, and the look.
    LogIn,
    /// Read the hardware.
    Inspect,
    PowerOn,
    /// By the operating system.
    ShutDown,
    /// At once.
    PowerOff,
    /// At once, and seen off twice.
    Fence,
}

impl HostIntake {
    /// The action that the host needs now.
    pub(super) fn action(&self) -> BmcAction {
        let is_detached = self.facts.is_detached && is_steady(self.state);
        let unseen = HostFacts {
            credentials: CredentialsReach::Present,
            ..self.facts.clone()
        };
        // A transition without a look at the BMC does not wait for one.
        if is_detached || next(self.state, &unseen).state != self.state {
            return BmcAction::None;
        }
        match self.state {
            Created | Unmanaged | Deleting => BmcAction::None,
            Inspecting => BmcAction::Inspect,
            Deprovisioning if !limits::is_kept(&self.host) => BmcAction::None,
            Deprovisioning | PoweringOffBeforeDelete if self.facts.is_power_off_disabled => {
                BmcAction::None
            }
            Deprovisioning | PoweringOffBeforeDelete => BmcAction::Fence,
            Available if self.is_inspection_asked() => BmcAction::Inspect,
            _ => self.power_action(),
        }
    }

    /// Whether its hardware is to be inspected again.
    fn is_inspection_asked(&self) -> bool {
        let is_disabled = self.host.spec.inspection_mode.as_deref() == Some(DISABLED);
        let asked = self.annotation(INSPECT);
        asked.is_some_and(|value| value != DISABLED) && !is_disabled
    }

    /// Towards the power state that the table wants of a host whose BMC answers.
    fn power_action(&self) -> BmcAction {
        let answered = HostFacts {
            credentials: CredentialsReach::Present,
            bmc: BmcReach::Answers,
            ..self.facts.clone()
        };
        let decision = next(self.state, &answered);
        // After a transition, the reached state manages the power.
        let wanted = decision.power.filter(|_| decision.state == self.state);
        let held = self.hold();
        match (wanted, held) {
            (None, _) => BmcAction::LogIn,
            (Some(true), None) => BmcAction::PowerOn,
            // The operating system has not done it.
            _ if self.has_power_error() => BmcAction::PowerOff,
            (_, Some(hold)) => hold,
            (Some(false), None) => BmcAction::ShutDown,
        }
    }

    fn has_power_error(&self) -> bool {
        let status = self.host.status.as_ref();
        status.is_some_and(|it| it.error_type == HostErrorType::PowerManagement.name())
    }

    /// The way to switch off a host whose annotations hold it off. Source: baremetal-operator, `hasRebootAnnotation`.
    fn hold(&self) -> Option<BmcAction> {
        if !is_installed(self.state) || self.facts.is_power_off_disabled {
            return None;
        }
        let annotations = self.host.metadata.annotations.iter();
        let holds = annotations.filter(|(key, _)| is_reboot(key));
        let modes: Vec<bool> = holds.map(|(_, value)| is_hard(value)).collect();
        // One that asks for an end at once decides.
        match modes.as_slice() {
            [] => None,
            modes if modes.contains(&true) => Some(BmcAction::PowerOff),
            _ => Some(BmcAction::ShutDown),
        }
    }

    /// Whether a restart is asked for that is never made.
    pub(super) fn has_vain_reboot(&self) -> bool {
        let mut keys = self.host.metadata.annotations.keys();
        self.facts.is_power_off_disabled && keys.any(|key| is_reboot(key))
    }

    /// Annotations whose wish is fulfilled by this look, to be removed.
    pub(super) fn fulfilled(&self, is_off: bool, is_inspected: bool) -> Vec<&'static str> {
        let reboot = is_off && is_installed(self.state);
        let inspect = is_inspected && self.annotation(INSPECT) != Some(DISABLED);
        [(REBOOT, reboot), (INSPECT, inspect)]
            .into_iter()
            .filter(|(key, is_fulfilled)| *is_fulfilled && self.annotation(key).is_some())
            .map(|(key, _)| key)
            .collect()
    }
}

fn is_reboot(key: &str) -> bool {
    key.strip_prefix(REBOOT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the arguments of a restart ask for an end at once; others leave it to the operating system.
fn is_hard(arguments: &str) -> bool {
    let arguments: Option<Value> = serde_json::from_str(arguments).ok();
    arguments.is_some_and(|it| it["mode"] == "hard")
}

/// Whether no step is under way: the annotation detaches such hosts alone.
fn is_steady(state: ProvisioningState) -> bool {
    matches!(
        state,
        Ready | Available | Provisioned | ExternallyProvisioned
    )
}

fn is_installed(state: ProvisioningState) -> bool {
    matches!(state, Provisioned | ExternallyProvisioned)
}
