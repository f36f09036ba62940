//! Inputs of changes.

use model::cluster::Cluster;
use model::infra_env::InfraEnv;

use crate::InstallationPolicy;
use crate::Offer;

/// Inputs of a change besides the request's parameters.
#[derive(Debug, Clone, Copy)]
pub struct UpdateContext<'a> {
    /// Offered versions and default values.
    pub offer: &'a Offer,
    /// Switches of the operator.
    pub policy: &'a InstallationPolicy,
    /// The cluster that a changed infra-env is bound to.
    pub cluster: Option<&'a Cluster>,
    /// Infra-envs of a changed cluster, if its operators or its kind of networking change: they name architectures of its machines.
    pub infra_envs: &'a [InfraEnv],
}
