//! Reception of an inventory, and the host's values that follow from it.

use std::sync::Arc;

use model::cluster::Cluster;
use model::host::{Host, HostStatus};
use model::inventory::Inventory;
use model::time::Timestamp;
use model::{Error, LargeText};

use crate::bounds;
use crate::disks;
use crate::hardware::Requirements;
use crate::host_state::HostState;
use crate::identity;
use crate::policy::InstallationPolicy;
use crate::roles;

/// An inventory that a host sent. It is parsed and printed once, although a host takes it twice: to see whether it
/// changes anything, and to store it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentInventory {
    inventory: Arc<Inventory>,
    /// The inventory as text; empty until a host has taken it.
    text: LargeText,
}

impl SentInventory {
    /// Parses an inventory: members unknown to the API are dropped.
    ///
    /// Errors: Invalid – malformed, or longer than machines have.
    pub(crate) fn parse(json: &str) -> Result<Self, Error> {
        // serde accepts a list for a struct.
        if json.trim_start().starts_with('[') {
            let reason = "the inventory cannot be read: it is a list";
            return Err(Error::invalid("output", reason));
        }
        let inventory: Inventory = serde_json::from_str(json).map_err(|error| {
            Error::invalid("output", format!("the inventory cannot be read: {error}"))
        })?;
        bounds::check_inventory(&inventory)?;
        Ok(Self {
            inventory: Arc::new(inventory),
            text: LargeText::default(),
        })
    }
}

/// Stores an inventory: judges disks, chooses the installation disk.
///
/// Errors: Conflict – the host's status accepts none.
/// Source: assisted-service, internal/host/host.go, UpdateInventory.
pub(crate) fn accept(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    sent: &mut SentInventory,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<(), Error> {
    if !takes_inventory(host.record.status) {
        return Err(Error::conflict(format!(
            "host {} is {} and accepts no inventory now",
            host.record.id, host.record.status
        )));
    }
    let known = host.inventory.take();
    identity::note_inventory(&mut host.record, known.as_deref(), &sent.inventory, now);
    let version = cluster.map_or("", |cluster| cluster.openshift_version.as_str());
    let requirements = Requirements::of(policy, version);
    if judge_disks(&host.record, &mut sent.inventory, cluster, &requirements) {
        sent.text.clear();
    }
    if known.as_ref() == Some(&sent.inventory) {
        // As in most replies: copies of the host still share the inventory, and its text is not printed again.
        host.inventory = known;
    } else {
        if sent.text.is_empty() {
            sent.text = print(&sent.inventory)?;
        }
        host.inventory = Some(Arc::clone(&sent.inventory));
        host.record.inventory = sent.text.clone();
        host.clear_check_target();
    }
    choose_disks(host);
    Ok(())
}

/// Derives eligible disks, the installation disk and the disks to format from a host's inventory.
/// After the installation has started, the chosen disk is final.
/// Source: assisted-service, internal/host/host.go, populateDisksEligibility.
pub(crate) fn derive(host: &mut HostState, cluster: Option<&Cluster>, requirements: &Requirements) {
    if let Some(inventory) = &mut host.inventory
        && judge_disks(&host.record, inventory, cluster, requirements)
        // Records of texts and numbers cannot fail to be printed.
        && let Ok(text) = print(inventory)
    {
        host.record.inventory = text;
    }
    choose_disks(host);
}

/// Judges the disks of a host's inventory. Returns whether anything changed.
fn judge_disks(
    record: &Host,
    inventory: &mut Arc<Inventory>,
    cluster: Option<&Cluster>,
    requirements: &Requirements,
) -> bool {
    let single = cluster.is_some_and(roles::is_single_node);
    let role = roles::effective_role(record);
    let size = requirements.host(role, single, inventory).disk_size_gb;
    disks::judge(inventory, disks::DiskCriteria::new(size, cluster))
}

fn print(inventory: &Inventory) -> Result<LargeText, Error> {
    let text = serde_json::to_string(inventory)
        .map_err(|error| Error::internal("printing a reply", error))?;
    Ok(text.into())
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
