//! The hosts of an install-config, by role.

use model::host::HostRole;

use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;

/// The hosts by role, each group by name.
pub(super) struct Roles<'a> {
    pub(super) masters: Vec<&'a HostState>,
    pub(super) arbiters: Vec<&'a HostState>,
    pub(super) workers: Vec<&'a HostState>,
}

impl<'a> Roles<'a> {
    pub(super) fn of(snapshot: &'a Snapshot) -> Self {
        let with = |wanted: HostRole| {
            let mut hosts: Vec<&HostState> = snapshot
                .hosts
                .iter()
                .filter(|host| effective_role(host) == wanted)
                .collect();
            hosts.sort_by_key(|host| (host.name(), host.record.id));
            hosts
        };
        Self {
            masters: with(HostRole::Master),
            arbiters: with(HostRole::Arbiter),
            workers: with(HostRole::Worker),
        }
    }
}

/// Role of a host, or the suggested one while it is assigned automatically.
pub(crate) fn effective_role(host: &HostState) -> HostRole {
    match host.record.role {
        Some(HostRole::Bootstrap) => HostRole::Master,
        Some(HostRole::AutoAssign) | None => host.record.suggested_role.unwrap_or_default(),
        Some(role) => role,
    }
}
