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
mod host_identity;
pub mod host_network;
pub mod host_operators;
mod host_reach;
mod operator_checks;
#[cfg(test)]
mod operator_tests;
mod subject;
#[cfg(test)]
mod tests;
mod validation;
mod verdict;

pub use cluster::cluster_validations;
pub(crate) use conclude::{
    ClusterJudgement, Flip, HostJudgement, Ignored, applicable, flips, judge_cluster, judge_host,
};
pub use conclude::{NEVER_IGNORED_CLUSTER, NEVER_IGNORED_HOST};
pub(crate) use subject::INVENTORY;
pub use subject::{ClusterSubject, HostSubject};
pub use validation::{
    Category, ClusterBlock, ClusterValidation, HostBlock, HostValidation, Status, Unbound,
};
pub use verdict::{Finding, Verdict};

/// Every validation of hosts, in the order in which they are sent.
pub fn host_validations() -> impl Iterator<Item = &'static HostValidation> {
    host_hardware::VALIDATIONS
        .iter()
        .chain(host_network::VALIDATIONS)
        .chain(host_operators::VALIDATIONS)
}
