//! The facts that decide about a host: its spec, and observations of its BMC and of the step under way.

use serde_json::Value;

use crate::BareMetalHost;

/// Annotation that switches the inspection off.
const INSPECT: &str = "inspect.metal3.io";
/// Annotation that detaches a host.
const DETACHED: &str = "baremetalhost.metal3.io/detached";
const DISABLED: &str = "disabled";
/// Failures in a row after which a deletion does without the step.
const PATIENCE: u64 = 3;

/// The credentials secret.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CredentialsReach {
    /// Found, with user name and password.
    Present,
    /// Not found.
    #[default]
    Missing,
    /// Found, without usable credentials.
    Invalid,
}

/// The BMC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BmcReach {
    /// Not tried.
    #[default]
    Unknown,
    /// It accepts the credentials.
    Answers,
    /// It is silent or refuses.
    Fails,
}

/// The step of a state: an inspection, a preparation, an installation, a deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostStepOutcome {
    /// Under way, or not begun.
    #[default]
    Running,
    /// Ended well.
    Done,
    /// Failed.
    Failed,
    /// Waits for other hosts.
    Delayed,
}

/// The wanted deployment (image or custom deployment), compared with the present one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeploymentDelta {
    /// None is wanted, none is there.
    #[default]
    None,
    /// Wanted, not there.
    Wanted,
    /// There, as wanted.
    Same,
    /// There, and another one is wanted.
    Changed,
    /// There, and not wanted.
    Removed,
}

/// The facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Whether the spec has a BMC address or the name of credentials.
    pub has_bmc: bool,
    /// `spec.externallyProvisioned`.
    pub is_externally_provisioned: bool,
    /// `spec.online`.
    pub is_online: bool,
    /// `spec.disablePowerOff`.
    pub is_power_off_disabled: bool,
    /// Whether the hardware is inspected: not disabled, and not yet inspected.
    pub is_inspection_wanted: bool,
    /// The deployment.
    pub deployment: DeploymentDelta,
    /// Whether the record is to be deleted.
    pub is_deleting: bool,
    /// Whether the host is detached by its annotation.
    pub is_detached: bool,
    /// The credentials secret.
    pub credentials: CredentialsReach,
    /// The BMC.
    pub bmc: BmcReach,
    /// The step of the present state.
    pub step: HostStepOutcome,
    /// Whether the power state could not be established.
    pub is_power_failing: bool,
    /// Failures in a row.
    pub failures: u64,
}

impl HostFacts {
    /// The facts in the record of a host; the observations are those of a host not yet looked at.
    pub fn of_record(host: &BareMetalHost) -> Self {
        let spec = &host.spec;
        let annotations = &host.metadata.annotations;
        let is_disabled = spec.inspection_mode.as_deref() == Some(DISABLED)
            || annotations.get(INSPECT).map(String::as_str) == Some(DISABLED);
        let status = host.status.as_ref();
        let is_inspected =
            status.is_some_and(|status| status.other.get("hardware").is_some_and(Value::is_object));
        Self {
            has_bmc: !spec.bmc.is_empty(),
            is_externally_provisioned: spec.externally_provisioned,
            is_online: spec.online,
            is_power_off_disabled: spec.disable_power_off,
            is_inspection_wanted: !is_disabled && !is_inspected,
            deployment: deployment(host),
            is_deleting: host.metadata.other.contains_key("deletionTimestamp"),
            is_detached: annotations.contains_key(DETACHED),
            failures: status.map_or(0, |status| status.error_count),
            ..Self::default()
        }
    }

    /// Whether the BMC accepts the credentials.
    pub fn is_registered(&self) -> bool {
        self.credentials == CredentialsReach::Present && self.bmc == BmcReach::Answers
    }

    /// Whether BMC or credentials are known to fail.
    pub(super) fn is_unreachable(&self) -> bool {
        self.credentials != CredentialsReach::Present || self.bmc == BmcReach::Fails
    }

    /// Whether a deletion does without the present step. Source: baremetal-operator, `retryCount`.
    pub(super) fn is_patience_over(&self) -> bool {
        let is_failing = self.step == HostStepOutcome::Failed || self.is_unreachable();
        is_failing && self.failures > PATIENCE
    }
}

/// Source: baremetal-operator, `hasNewImage`, `hasNewCustomDeploy`, `provisioningCancelled`.
fn deployment(host: &BareMetalHost) -> DeploymentDelta {
    let image = host.spec.image.as_ref().map(|image| image.url.as_str());
    let custom = host.spec.custom_deploy.as_ref();
    let custom = custom.map(|custom| custom.method.as_str());
    let wanted = [custom, image].map(Option::unwrap_or_default);
    let status = host.status.as_ref().map(|status| &status.provisioning);
    let present = |name: &str, member: &str| {
        let part = status.and_then(|status| status.other.get(name))?;
        part.get(member)?.as_str()
    };
    let present =
        [present("customDeploy", "method"), present("image", "url")].map(Option::unwrap_or_default);
    match (wanted == [""; 2], present == [""; 2]) {
        (true, true) => DeploymentDelta::None,
        (false, true) => DeploymentDelta::Wanted,
        (true, false) => DeploymentDelta::Removed,
        (false, false) if wanted == present => DeploymentDelta::Same,
        (false, false) => DeploymentDelta::Changed,
    }
}
