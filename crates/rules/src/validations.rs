//! Validations as data: what is judged, how, and what a failure holds back.
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

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Success(String),
    /// It does not.
    Failure(String),
    /// What is needed to judge it is not there yet; the text names what is awaited.
    Pending(String),
    /// What it is judged by is broken.
    Error(String),
    /// It does not apply here: nothing is shown, nothing is held back.
    Hidden,
}

impl Verdict {
    /// It passes, and there is little to say.
    pub(crate) fn ok(message: impl Into<String>) -> Self {
        Self::Success(message.into())
    }

    /// It fails: field, value, remedy.
    pub(crate) fn fail(message: impl Into<String>) -> Self {
        Self::Failure(message.into())
    }

    /// Something is awaited.
    pub(crate) fn wait(what: impl Into<String>) -> Self {
        Self::Pending(what.into())
    }

    /// Passes or fails by a claim.
    pub(crate) fn of(claim: bool, good: impl Into<String>, bad: impl Into<String>) -> Self {
        if claim {
            Self::Success(good.into())
        } else {
            Self::Failure(bad.into())
        }
    }
}

/// The groups that validations are shown in.
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

/// How a validation is reported.
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

/// What a host's validation holds back when it does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostBlock {
    /// The host counts as disconnected.
    Connection,
    /// The host is insufficient, whatever its role.
    Hardware,
    /// The host waits for its user's input.
    Input,
    /// The host is insufficient.
    Sufficient,
    /// VMware disks without ids: insufficient.
    DiskIds,
    /// Only the preparation of an installation.
    Preparing,
    /// Nothing: it is shown.
    Nothing,
}

/// One validation of hosts.
pub struct HostValidation {
    /// Its id on the wire.
    pub id: HostValidationId,
    /// The group it is shown in.
    pub category: Category,
    /// What it holds back.
    pub blocks: HostBlock,
    /// It is also judged, and blocks, while the host has no cluster.
    pub unbound: bool,
    /// Judges a host.
    pub check: fn(&HostSubject<'_>) -> Verdict,
    /// Why it matters.
    pub doc: &'static str,
}

/// Every validation of hosts, in the order in which they are sent.
pub fn host_validations() -> impl Iterator<Item = &'static HostValidation> {
    host_hardware::VALIDATIONS
        .iter()
        .chain(host_network::VALIDATIONS)
        .chain(host_operators::VALIDATIONS)
}
