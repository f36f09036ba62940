//! Short inventories of hosts, and the records rendered from them: Secret, BareMetalHost, and Machine.
//!
//! ```yaml
//! cluster: prod-x7k2p            # id of the cluster, for machines of control nodes
//! namespace: openshift-machine-api
//! defaults:                      # of all hosts; the same members as a host
//!   bmc: {scheme: idrac-virtualmedia, username: root, passwordFile: bmc.password}
//! hosts:
//! - name: cp-0
//!   role: master
//!   mac: 52:54:00:00:00:10
//!   bmc: 10.0.0.10               # host[:port], or a whole address
//! ```
//!
//! Rendered records are checked by [`check`](crate::check::check); the findings have positions of the inventory.

mod places;
mod read;
mod render;
mod schema;

pub use read::read;
pub use render::{RenderedHost, Rendering, render};

use std::collections::BTreeSet;
use std::net::IpAddr;

use secrecy::SecretString;

use crate::RootDeviceHints;
use crate::check::RecordFinding;
use places::HostPlaces;

/// Largest inventory. Units: bytes.
pub const MAX_INVENTORY: usize = 1 << 20;
/// Most hosts of an inventory.
pub const MAX_HOSTS: usize = 2000;

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
    places: HostPlaces,
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

#[cfg(test)]
mod tests;
