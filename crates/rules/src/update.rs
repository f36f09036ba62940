//! Changes that users request.
//!
//! A refused change leaves the record as it was. Validations and states do not change here: the caller
//! refreshes afterwards.

mod cluster;
mod host;
mod infra_env;
mod machine_networks;
mod members;

use model::cluster::Cluster;

use crate::{InstallationPolicy, Offer};

pub use cluster::{accepts_changes, cluster};
pub use host::{host, host_ignition, installer_args};
pub use infra_env::infra_env;
pub use machine_networks::{derive_machine_networks, host_networks};

/// Inputs of a change besides the request's parameters.
#[derive(Debug, Clone, Copy)]
pub struct UpdateContext<'a> {
    /// Offered versions and default values.
    pub offer: &'a Offer,
    /// Switches of the operator.
    pub policy: &'a InstallationPolicy,
    /// The cluster that a changed infra-env is bound to.
    pub cluster: Option<&'a Cluster>,
}

#[cfg(test)]
mod tests;
