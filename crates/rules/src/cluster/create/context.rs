//! Inputs of creations.

use uuid::Uuid;

use crate::InstallationPolicy;
use crate::Offer;
use model::cluster::Cluster;

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
