//! New records: the parameters of a request, checked and completed with defaults.

mod cluster;
mod infra_env;

use uuid::Uuid;

use crate::{InstallationPolicy, Offer};
use model::cluster::Cluster;

pub use cluster::{cluster, default_config};
pub use infra_env::infra_env;
pub(crate) use infra_env::{ImageParts, set_image_parts};

/// Inputs of a creation besides the request's parameters.
#[derive(Debug, Clone, Copy)]
pub struct CreateContext<'a> {
    /// Id of the new record.
    pub id: Uuid,
    /// Offered versions and default values.
    pub offer: &'a Offer,
    /// Switches of the operator.
    pub policy: &'a InstallationPolicy,
    /// The cluster that a new infra-env is bound to.
    pub cluster: Option<&'a Cluster>,
}

#[cfg(test)]
mod tests;
