//! New records: what a user sent, checked and completed with the defaults.

mod cluster;
mod infra_env;

use uuid::Uuid;

use crate::{Offer, Policy};
use model::cluster::Cluster;

pub use cluster::{cluster, default_config};
pub use infra_env::infra_env;
pub(crate) use infra_env::{ImageParts, set_image_parts};

/// What creating depends on besides the caller's parameters.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Id of the new record.
    pub id: Uuid,
    /// What the service offers.
    pub offer: &'a Offer,
    /// Switches of the operator.
    pub policy: &'a Policy,
    /// The cluster that a new infra-env is bound to.
    pub cluster: Option<&'a Cluster>,
}

#[cfg(test)]
mod tests;
