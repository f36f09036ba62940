//! A validation as data: its category, its check, and the effect of its failure.

use std::fmt;

use model::validations::{ClusterValidationId, HostValidationId};

use super::subject::{ClusterSubject, HostSubject};
use super::verdict::Verdict;

/// Categories of validations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// `hardware`
    Hardware,
    /// `network`
    Network,
    /// `operators`
    Operators,
    /// `hosts-data`
    HostsData,
    /// `configuration`
    Configuration,
}

impl Category {
    /// The text on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Network => "network",
            Self::Operators => "operators",
            Self::HostsData => "hosts-data",
            Self::Configuration => "configuration",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Status of a validation in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// `success`
    Success,
    /// `failure`
    Failure,
    /// `pending`
    Pending,
    /// `error`
    Error,
    /// `disabled`
    Disabled,
}

impl Status {
    /// The text on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Pending => "pending",
            Self::Error => "error",
            Self::Disabled => "disabled",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Effect of a host's failed validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostBlock {
    /// Status disconnected.
    Connection,
    /// Status insufficient, for any role.
    Hardware,
    /// Status pending-for-input.
    Input,
    /// Status insufficient.
    Sufficient,
    /// Status insufficient: VMware disks without ids.
    DiskIds,
    /// Blocks only the preparation of an installation.
    Preparing,
    /// None: it is shown only.
    Nothing,
}

/// Use of a host's validation while the host has no cluster.
/// Source: assisted-service, internal/host/pool_host_statemachine.go, sufficientToBeBound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbound {
    /// It depends on a cluster: neither shown nor blocking.
    Hidden,
    /// It is shown only.
    Shown,
    /// It is shown, and its failure blocks the binding.
    Blocks,
}

/// One validation of hosts.
pub struct HostValidation {
    /// Id on the wire.
    pub id: HostValidationId,
    /// Category.
    pub category: Category,
    /// Effect of a failure.
    pub blocks: HostBlock,
    /// Use while the host has no cluster.
    pub unbound: Unbound,
    /// The check.
    pub check: fn(&HostSubject<'_>) -> Verdict,
    /// The reason, for readers.
    pub doc: &'static str,
    /// The value that passes, unless a verdict names a more exact one.
    pub required: &'static str,
    /// The remedy, as one sentence.
    pub fix: &'static str,
}

impl HostValidation {
    /// Adds the value that passes, and the remedy.
    pub(super) const fn needs(mut self, required: &'static str, fix: &'static str) -> Self {
        self.required = required;
        self.fix = fix;
        self
    }
}

/// Effect of a cluster's failed validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterBlock {
    /// Status pending-for-input.
    Input,
    /// Status pending-for-input, unless virtual addresses are leased from DHCP: then insufficient.
    VipInput,
    /// Status insufficient.
    Install,
    /// None: it is shown only.
    Nothing,
}

/// One validation of clusters.
pub struct ClusterValidation {
    /// Id on the wire.
    pub id: ClusterValidationId,
    /// Category.
    pub category: Category,
    /// Effect of a failure.
    pub blocks: ClusterBlock,
    /// The check.
    pub check: fn(&ClusterSubject<'_>) -> Verdict,
    /// The reason, for readers.
    pub doc: &'static str,
    /// The value that passes, unless a verdict names a more exact one.
    pub required: &'static str,
    /// The remedy, as one sentence.
    pub fix: &'static str,
}

impl ClusterValidation {
    /// Adds the value that passes, and the remedy.
    pub(super) const fn needs(mut self, required: &'static str, fix: &'static str) -> Self {
        self.required = required;
        self.fix = fix;
        self
    }
}
