//! The decisions: pure functions over plain records.
//!
//! State tables, validations, hardware requirements, defaults and checks of input, version selection,
//! install-config, agent instructions. No I/O, no async, and time is a parameter. The one invariant: the
//! same snapshot, policy and time give the same result.

mod agent_version;
#[cfg(test)]
mod arbitrary;
pub mod bounds;
mod check_outcome;
pub mod cluster;
mod cluster_ignition;
pub mod connectivity;
pub mod create;
pub mod declaration;
pub mod disks;
pub mod event;
pub mod expected_hosts;
pub mod explain;
#[cfg(test)]
mod fixtures;
mod free_addresses;
pub mod hardware;
pub mod heartbeat;
pub mod host;
mod host_state;
mod host_texts;
pub mod hosts;
mod identity;
pub mod ignition_endpoint;
pub mod images;
pub mod input;
pub mod install_config;
pub mod inventory;
pub mod ipxe;
#[cfg(test)]
mod journey;
pub mod json_text;
pub mod managed_domains;
pub mod manifests;
pub mod metric_events;
mod networking;
mod networks;
pub mod offer;
pub mod operators;
pub mod policy;
pub mod preflight;
pub mod progress;
mod reach;
pub mod refresh;
pub mod replies;
mod role_assignment;
pub mod roles;
#[cfg(test)]
mod samples;
pub mod site;
pub mod snapshot;
pub mod static_network;
pub mod steps;
pub mod support;
pub mod table;
mod timeout;
pub mod update;
pub mod urls;
pub mod usage;
pub mod validations;
pub mod versions;
pub mod vip_leases;
mod vip_mac;

pub use check_outcome::CheckOutcome;
pub use event::NewEvent;
pub use host_state::{HostState, ObservedTime, name_of};
pub use host_texts::HostTexts;
pub use hosts::{HostCheckpoint, HostList};
pub use identity::is_machine;
pub use offer::Offer;
pub use policy::InstallationPolicy;
pub use snapshot::{Snapshot, StoredFiles, VipLeases};
pub use vip_mac::vip_mac;
