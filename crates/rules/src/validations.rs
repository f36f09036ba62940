//! Validations as data: checks, categories, and the effects of a failure.
//!
//! Each list is `static`; adding a validation is adding an entry. A validation that does not apply to a host or a
//! cluster is hidden: no entry is sent for it.

pub mod cluster;
mod cluster_networks;
mod cluster_vips;
mod conclude;
mod host_disks;
pub mod host_hardware;
pub mod host_network;
pub mod host_operators;
mod host_reach;
mod subject;
#[cfg(test)]
mod tests;

pub use cluster::{ClusterValidation, cluster_validations};
pub(crate) use conclude::{
    ClusterJudgement, Flip, HostJudgement, Ignored, flips, judge_cluster, judge_host,
};
pub use subject::{ClusterSubject, HostSubject, HostTexts};
pub(crate) use subject::{mebibytes, usable_mib};

use std::fmt;

use model::validations::HostValidationId;

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Success(String),
    /// It fails.
    Failure(String),
    /// An input is missing; the text names it.
    Pending(String),
    /// An input is broken.
    Error(String),
    /// It does not apply: neither shown nor blocking.
    Hidden,
}

impl Verdict {
    /// Success.
    pub(crate) fn ok(message: impl Into<String>) -> Self {
        Self::Success(message.into())
    }

    /// Failure: field, value, remedy.
    pub(crate) fn fail(message: impl Into<String>) -> Self {
        Self::Failure(message.into())
    }

    /// An input is missing.
    pub(crate) fn wait(what: impl Into<String>) -> Self {
        Self::Pending(what.into())
    }

    /// Success or failure by a claim.
    pub(crate) fn of(claim: bool, good: impl Into<String>, bad: impl Into<String>) -> Self {
        if claim {
            Self::Success(good.into())
        } else {
            Self::Failure(bad.into())
        }
    }
}

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

/// One validation of hosts.
pub struct HostValidation {
    /// Id on the wire.
    pub id: HostValidationId,
    /// Category.
    pub category: Category,
    /// Effect of a failure.
    pub blocks: HostBlock,
    /// Whether it is also judged, and blocks, while the host has no cluster.
    pub unbound: bool,
    /// The check.
    pub check: fn(&HostSubject<'_>) -> Verdict,
    /// The reason, for readers.
    pub doc: &'static str,
}

/// Every validation of hosts, in the order in which they are sent.
pub fn host_validations() -> impl Iterator<Item = &'static HostValidation> {
    host_hardware::VALIDATIONS
        .iter()
        .chain(host_network::VALIDATIONS)
        .chain(host_operators::VALIDATIONS)
}
