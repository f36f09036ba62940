//! Reception of an inventory, and the host's values that follow from it.

use std::fmt::Display;
use std::sync::Arc;

use model::cluster::Cluster;
use model::host::{Host, HostStatus};
use model::inventory::Inventory;
use model::time::Timestamp;
use model::{Error, LargeText};

use crate::bounds;
use crate::hardware::disks;
use crate::hardware::requirements::Requirements;
use crate::host::identity;
use crate::json_text::{with_whole_characters, without_null_items};
use crate::policy::InstallationPolicy;
use crate::snapshot::host_state::HostState;
use crate::snapshot::roles;

/// An inventory that a host sent. It is parsed and printed once, although a host takes it twice: to see whether it
/// changes anything, and to store it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentInventory {
    inventory: Arc<Inventory>,
    /// The inventory as text; empty until a host has taken it.
    text: LargeText,
}

/// Reason why an inventory cannot be read, at most [`bounds::MESSAGE_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the inventory cannot be read: {0}")]
pub struct UnreadableInventory(String);

impl UnreadableInventory {
    fn new(reason: impl Display) -> Self {
        Self(bounds::cut(&reason.to_string()).to_owned())
    }

    /// The error with which the agent is answered.
    pub fn to_error(&self) -> Error {
        Error::invalid("output", self.to_string())
    }
}

impl SentInventory {
    /// Parses an inventory: members unknown to the API are dropped.
    ///
    /// Errors: malformed, with line and column, or longer than machines have.
    pub(crate) fn parse(json: &str) -> Result<Self, UnreadableInventory> {
        bounds::check_inventory_text(json).map_err(UnreadableInventory::new)?;
        // serde accepts a list for a struct.
        if json.trim_start().starts_with('[') {
            return Err(UnreadableInventory::new("it is a list"));
        }
        let json = with_whole_characters(json);
        let parsed = serde_json::from_str(&json);
        let parsed = parsed.or_else(|error| without_null_items(&json).ok_or(error));
        let mut inventory: Inventory = parsed.map_err(UnreadableInventory::new)?;
        bounds::check_inventory(&inventory).map_err(UnreadableInventory::new)?;
        disks::name_by_path(&mut inventory);
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
    if !is_accepted_in(host.record.status) {
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

/// Statuses that follow from validations: nothing is prepared or installed yet.
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
pub(crate) fn is_accepted_in(status: HostStatus) -> bool {
    is_open(status) || status == HostStatus::InstallingInProgress
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_values_do_not_lose_a_host() {
        let text = r#"{"hostname":null,"truncation":{"type":"half","reasons":null},"tpm_version":"3.0",
            "boot":{"secure_boot_state":"SetupMode","device_type":"net"},"memory":{"physical_bytes_method":"smbios"},
            "system_vendor":{"serial_number":null,"product_name":"x\ud800y"},
            "interfaces":[{"mac_address":null,"mtu":null,"flags":null}],
            "disks":[{"drive_type":"NVMe-oF","size_bytes":null,"removable":null,"installation_eligibility":null}]}"#;
        let sent = SentInventory::parse(text).unwrap();
        let vendor = sent.inventory.system_vendor.as_ref().unwrap();
        assert_eq!(vendor.product_name, "x\u{fffd}y");
        let printed = serde_json::to_string(&*sent.inventory).unwrap();
        for kept in ["NVMe-oF", "SetupMode", "3.0", "half", "smbios"] {
            assert!(printed.contains(kept), "{printed}");
        }
        assert_eq!(SentInventory::parse(&printed).unwrap(), sent);
        let mut inventory = Arc::clone(&sent.inventory);
        disks::judge(&mut inventory, disks::DiskCriteria::new(1, None));
        let eligibility = &inventory.disks[0].installation_eligibility;
        assert!(!eligibility.eligible);
        let reasons = eligibility.not_eligible_reasons.join(" ");
        assert!(reasons.contains("Drive type is NVMe-oF"), "{reasons}");
    }

    #[test]
    fn inventories_are_read_as_the_peer_reads_them() {
        let text = r#"{"hostname":"a","hostname":"b\u0000","disks":[null,{"name":"sda"}],"interfaces":[{"flags":["up",null]}]}"#;
        let sent = SentInventory::parse(text).unwrap();
        assert_eq!(sent.inventory.hostname, "b\u{fffd}", "the last one; no NUL");
        assert_eq!(sent.inventory.disks.len(), 1);
        assert_eq!(sent.inventory.interfaces[0].flags, ["up"]);
        let text = text.replace("sda\"", "sda\",\"size_bytes\":\"4\"");
        let error = SentInventory::parse(&text).unwrap_err().to_string();
        assert!(error.contains("at line 1 column"), "{error}");
    }

    #[test]
    fn unreadable_inventories_are_refused_with_their_place() {
        for (text, reason) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            ("[]", "it is a list"),
            (r#"{"disks":{}}"#, "at line 1 column 9"),
            ("{\n \"cpu\": {\"count\": \"4\"}}", "at line 2 column 21"),
            (r#"{"disks":[{"size_bytes":1e400}]}"#, "at line 1 column"),
        ] {
            let error = SentInventory::parse(text).unwrap_err().to_string();
            assert!(
                error.starts_with("the inventory cannot be read: "),
                "{error}"
            );
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn words_of_newer_agents_are_bounded() {
        let disk = |length| format!(r#"{{"disks":[{{"drive_type":"{}"}}]}}"#, "x".repeat(length));
        assert!(SentInventory::parse(&disk(256)).is_ok());
        assert!(SentInventory::parse(&disk(257)).is_err());
    }
}
