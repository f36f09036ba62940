//! A host that operators run on, and its share of the cluster's workloads.

use model::host::{Host, HostRole};
use model::inventory::Inventory;

use crate::explain::validations::subject::ClusterSubject;
use crate::operators::support::MinorVersion;
use crate::snapshot::roles;

/// Number of workers from which masters run no workloads.
/// Source: assisted-service, internal/common/common.go, ShouldMastersBeSchedulable.
pub(super) const SCHEDULABLE_BELOW: usize = 2;

/// A host that operators run on.
#[derive(Clone, Copy)]
pub(crate) struct OperatorHost<'a> {
    pub(crate) record: &'a Host,
    pub(crate) inventory: &'a Inventory,
    /// Role that the user has given.
    pub(crate) given_role: HostRole,
    /// The same, or the suggested one.
    pub(crate) role: HostRole,
}

impl<'a> OperatorHost<'a> {
    pub(crate) fn new(record: &'a Host, inventory: &'a Inventory) -> Self {
        Self {
            record,
            inventory,
            given_role: record.role.unwrap_or_default(),
            role: roles::effective_role(record),
        }
    }

    /// The host as if it had that role.
    pub(crate) fn with_role(self, role: HostRole) -> Self {
        Self {
            given_role: role,
            role,
            ..self
        }
    }
}

/// Version of a cluster; clusters without a readable one count as the latest.
pub(crate) fn version(cluster: &ClusterSubject<'_>) -> MinorVersion {
    let parsed = cluster.cluster.openshift_version.parse();
    parsed.unwrap_or(MinorVersion::four(u64::MAX))
}

/// Whether hosts of the role run no workloads.
pub(super) fn is_unschedulable(cluster: &ClusterSubject<'_>, role: HostRole) -> bool {
    let is_master = matches!(role, HostRole::Master | HostRole::Bootstrap);
    is_master && !cluster.single_node && roles::workers(cluster.snapshot) >= SCHEDULABLE_BELOW
}
