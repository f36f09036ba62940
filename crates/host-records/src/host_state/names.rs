//! Names of states, as records spell them. Source: metal3-io/baremetal-operator, apis/metal3.io/v1alpha1.

use std::fmt;
use std::str::FromStr;

/// State of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProvisioningState {
    /// New.
    Created,
    /// Without BMC.
    Unmanaged,
    /// BMC and credentials are tried.
    Registering,
    /// Legacy: profiles are no more.
    MatchProfile,
    /// The hardware is inspected.
    Inspecting,
    /// RAID and firmware are set.
    Preparing,
    /// Legacy name of `available`.
    Ready,
    /// Can be installed.
    Available,
    /// Being installed.
    Provisioning,
    /// Installed.
    Provisioned,
    /// Installed by something else.
    ExternallyProvisioned,
    /// The installation is removed.
    Deprovisioning,
    /// Switched off, to be deleted.
    PoweringOffBeforeDelete,
    /// The record is about to be removed.
    Deleting,
}

impl ProvisioningState {
    /// All states.
    pub const ALL: &[Self] = &[
        Self::Created,
        Self::Unmanaged,
        Self::Registering,
        Self::MatchProfile,
        Self::Inspecting,
        Self::Preparing,
        Self::Ready,
        Self::Available,
        Self::Provisioning,
        Self::Provisioned,
        Self::ExternallyProvisioned,
        Self::Deprovisioning,
        Self::PoweringOffBeforeDelete,
        Self::Deleting,
    ];

    /// The name in records; empty for a new host.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "",
            Self::Unmanaged => "unmanaged",
            Self::Registering => "registering",
            Self::MatchProfile => "match profile",
            Self::Inspecting => "inspecting",
            Self::Preparing => "preparing",
            Self::Ready => "ready",
            Self::Available => "available",
            Self::Provisioning => "provisioning",
            Self::Provisioned => "provisioned",
            Self::ExternallyProvisioned => "externally provisioned",
            Self::Deprovisioning => "deprovisioning",
            Self::PoweringOffBeforeDelete => "powering off before delete",
            Self::Deleting => "deleting",
        }
    }
}

/// The name in records; `created` for a new host.
impl fmt::Display for ProvisioningState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            state => state.name(),
        })
    }
}

/// A state that no version of the operator has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a state of a host: it was written by another program")]
pub struct UnknownState(String);

impl FromStr for ProvisioningState {
    type Err = UnknownState;

    fn from_str(name: &str) -> Result<Self, UnknownState> {
        let found = Self::ALL.iter().find(|state| state.name() == name);
        let shown = || name.chars().take(60).collect();
        found.copied().ok_or_else(|| UnknownState(shown()))
    }
}

/// Health of a host as the operator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationalStatus {
    /// Nothing is known.
    Unknown,
    /// Managed.
    Ok,
    /// Not yet managed.
    Discovered,
    /// See the error type.
    Error,
    /// Waits for other hosts.
    Delayed,
    /// Detached by its annotation.
    Detached,
    /// Firmware is updated.
    Servicing,
}

impl OperationalStatus {
    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Ok => "OK",
            Self::Discovered => "discovered",
            Self::Error => "error",
            Self::Delayed => "delayed",
            Self::Detached => "detached",
            Self::Servicing => "servicing",
        }
    }
}

/// Kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostErrorType {
    /// BMC or credentials fail.
    Registration,
    /// An installed host cannot be taken over again.
    ProvisionedRegistration,
    /// The inspection failed.
    Inspection,
    /// RAID or firmware failed.
    Preparation,
    /// The installation or its removal failed.
    Provisioning,
    /// Power cannot be switched.
    PowerManagement,
}

impl HostErrorType {
    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Registration => "registration error",
            Self::ProvisionedRegistration => "provisioned registration error",
            Self::Inspection => "inspection error",
            Self::Preparation => "preparation error",
            Self::Provisioning => "provisioning error",
            Self::PowerManagement => "power management error",
        }
    }
}
