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

mod hosts;
mod places;
mod read;
mod render;
mod schema;

pub use hosts::{Inventory, InventoryBmc, InventoryHost, PasswordSource};
pub use read::{MAX_HOSTS, MAX_INVENTORY, read};
pub use render::{RenderedHost, Rendering, render};

#[cfg(test)]
mod tests;
