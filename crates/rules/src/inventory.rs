//! Reception of an inventory, and the host's values that follow from it.

use std::sync::Arc;

use model::Error;
use model::cluster::Cluster;
use model::host::HostStatus;
use model::inventory::Inventory;
use model::time::Timestamp;

use crate::bounds;
use crate::disks;
use crate::event::NewEvent;
use crate::hardware::Requirements;
use crate::host_state::HostState;
use crate::identity;
use crate::policy::InstallationPolicy;
use crate::roles;

/// Stores an inventory: drops members unknown to the API, judges disks, chooses the installation disk.
///
/// Errors: Invalid – malformed, or longer than machines have; Conflict – the host's status accepts none.
/// Source: assisted-service, internal/host/host.go, UpdateInventory.
pub fn accept(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    json: &str,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Error> {
    // serde accepts a list for a struct.
    if json.trim_start().starts_with('[') {
        let reason = "the inventory cannot be read: it is a list";
        return Err(Error::invalid("output", reason));
    }
    let inventory: Inventory = serde_json::from_str(json).map_err(|error| {
        Error::invalid("output", format!("the inventory cannot be read: {error}"))
    })?;
    bounds::check_inventory(&inventory)?;
    if !takes_inventory(host.record.status) {
        return Err(Error::conflict(format!(
            "host {} is {} and accepts no inventory now",
            host.record.id, host.record.status
        )));
    }
    identity::note_inventory(&mut host.record, host.inventory.as_deref(), &inventory, now);
    let before = host.inventory.replace(Arc::new(inventory));
    let version = cluster.map_or("", |cluster| cluster.openshift_version.as_str());
    let requirements = Requirements::of(policy, version);
    judge_disks(host, cluster, &requirements);
    if host.inventory == before {
        // As in most replies: copies of the host still share the inventory, and its text is not printed again.
        host.inventory = before;
    } else {
        host.clear_check_target();
        store_text(host)?;
    }
    choose_disks(host);
    Ok(Vec::new())
}

/// Derives eligible disks, the installation disk and the disks to format from a host's inventory.
/// After the installation has started, the chosen disk is final.
/// Source: assisted-service, internal/host/host.go, populateDisksEligibility.
pub(crate) fn derive(host: &mut HostState, cluster: Option<&Cluster>, requirements: &Requirements) {
    if judge_disks(host, cluster, requirements) {
        // Records of texts and numbers cannot fail to be printed.
        let _ = store_text(host);
    }
    choose_disks(host);
}

/// Judges the disks of the inventory. Returns whether anything changed.
fn judge_disks(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    requirements: &Requirements,
) -> bool {
    let single = cluster.is_some_and(roles::is_single_node);
    let role = roles::effective_role(&host.record);
    let Some(inventory) = &mut host.inventory else {
        return false;
    };
    let size = requirements.host(role, single, inventory).disk_size_gb;
    disks::judge(inventory, disks::DiskCriteria::new(size, cluster))
}

/// Prints the inventory into the record.
fn store_text(host: &mut HostState) -> Result<(), Error> {
    let text = serde_json::to_string(&host.inventory.as_deref())
        .map_err(|error| Error::internal("printing a reply", error))?;
    host.record.inventory = text.into();
    Ok(())
}

fn choose_disks(host: &mut HostState) {
    if is_open(host.record.status)
        && let Some(inventory) = &host.inventory
    {
        host.record.disks_to_be_formatted = disks::to_be_formatted(inventory);
        disks::choose(host);
    }
}

pub(crate) fn is_open(status: HostStatus) -> bool {
    matches!(
        status,
        HostStatus::Discovering
            | HostStatus::Known
            | HostStatus::Disconnected
            | HostStatus::Insufficient
            | HostStatus::PendingForInput
            | HostStatus::DiscoveringUnbound
            | HostStatus::KnownUnbound
            | HostStatus::DisconnectedUnbound
            | HostStatus::InsufficientUnbound
    )
}

/// Statuses that accept an inventory.
/// Source: assisted-service, internal/host/host.go, UpdateInventory.
fn takes_inventory(status: HostStatus) -> bool {
    matches!(
        status,
        HostStatus::Discovering
            | HostStatus::Known
            | HostStatus::Disconnected
            | HostStatus::Insufficient
            | HostStatus::PendingForInput
            | HostStatus::InstallingInProgress
            | HostStatus::DiscoveringUnbound
            | HostStatus::KnownUnbound
            | HostStatus::DisconnectedUnbound
            | HostStatus::InsufficientUnbound
    )
}
