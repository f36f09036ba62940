//! The decisions: pure functions over plain records.
//!
//! State tables, validations, hardware requirements, defaults and checks of input, version selection,
//! install-config, agent instructions. No I/O, no async, and time is a parameter. The one invariant: the
//! same snapshot, policy and time give the same result.
//!
//! Modules know those before them alone: `versions`, `input`, `snapshot`, `event`, `hardware`, `host`, `network`,
//! `operators`, `explain`, `cluster`, `steps`, `install_config`, `manifests`.

#[cfg(test)]
mod arbitrary;
pub mod bounds;
pub mod cluster;
pub mod event;
pub mod explain;
#[cfg(test)]
mod fixtures;
pub mod hardware;
pub mod host;
pub mod input;
pub mod install_config;
#[cfg(test)]
mod journey;
pub mod json_text;
pub mod manifests;
pub mod network;
pub mod operators;
pub mod policy;
#[cfg(test)]
mod samples;
pub mod snapshot;
pub mod steps;
pub mod table;
pub mod urls;
pub mod versions;

pub use event::NewEvent;
pub use hardware::check_outcome::CheckOutcome;
pub use host::identity::is_machine;
pub use network::vip_mac::vip_mac;
pub use policy::{ClusterCatalog, InstallationPolicy};
pub use snapshot::host_state::{HostState, ObservedTime, name_of};
pub use snapshot::host_texts::HostTexts;
pub use snapshot::hosts::{HostCheckpoint, HostList};
pub use snapshot::{Snapshot, StoredFiles, VipLeases};
pub use versions::offer::Offer;
