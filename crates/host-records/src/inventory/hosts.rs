//! The hosts of an inventory, with its defaults applied.

use std::collections::BTreeSet;
use std::net::IpAddr;

use secrecy::SecretString;

use super::places::HostPlaces;
use crate::RootDeviceHints;
use crate::check::RecordFinding;

/// The hosts of a site.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// Name of the file.
    pub file: String,
    /// Namespace of all records.
    pub namespace: String,
    /// Id of the cluster.
    pub cluster: Option<String>,
    /// Hosts, in the order of the file.
    pub hosts: Vec<InventoryHost>,
    /// Members that have no effect.
    pub warnings: Vec<RecordFinding>,
}

/// A host, with the defaults applied.
#[derive(Debug, Clone)]
pub struct InventoryHost {
    /// Name of the host and its node.
    pub name: String,
    /// `master`, `worker` or `infra`.
    pub role: String,
    /// MAC address of the NIC that boots.
    pub mac: Option<String>,
    /// The BMC; none makes an unmanaged host.
    pub bmc: Option<InventoryBmc>,
    /// Boot mode.
    pub boot_mode: String,
    /// Wanted power state.
    pub online: bool,
    /// Whether something else installed the host.
    pub is_externally_provisioned: bool,
    /// Name of its machine; none for no machine.
    pub machine: Option<String>,
    /// Addresses of the node, for the status of the machine.
    pub addresses: Vec<IpAddr>,
    /// Choice of the disk.
    pub root_device: Option<RootDeviceHints>,
    pub(super) places: HostPlaces,
}

/// The BMC of a host.
#[derive(Debug, Clone)]
pub struct InventoryBmc {
    /// The whole address.
    pub address: String,
    /// User name.
    pub username: String,
    /// Source of the password.
    pub password: PasswordSource,
    /// Whether certificates are not verified.
    pub is_unverified: bool,
}

/// Source of a password.
#[derive(Debug, Clone)]
pub enum PasswordSource {
    /// The inventory.
    Inline(SecretString),
    /// A file, relative to the inventory; `-` for standard input.
    File(String),
}

impl Inventory {
    /// The files with passwords.
    pub fn password_files(&self) -> BTreeSet<&str> {
        let all = self.hosts.iter().filter_map(|host| host.bmc.as_ref());
        let files = all.filter_map(|bmc| match &bmc.password {
            PasswordSource::File(path) => Some(path.as_str()),
            PasswordSource::Inline(_) => None,
        });
        files.collect()
    }
}
