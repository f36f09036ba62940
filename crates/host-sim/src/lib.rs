//! Simulated machines: they boot a discovery image and then behave like the real agent, the real installer and the
//! controller inside the new cluster.
//!
//! A machine uses its image and the public HTTP operations alone; this crate depends on none of ours, so that it can
//! disagree with them.
//! The network between the machines is simulated ([`World`]), time may run faster ([`Pace`]). Kinds of installations
//! ([`PROFILES`]) and faults ([`FAULTS`]) are tables; a seed determines chance events.

mod agent;
mod api;
pub mod args;
pub mod bmc;
mod connections;
pub mod controller;
mod error;
mod fault;
mod fleet;
mod hardware;
pub mod image;
mod install;
mod install_request;
mod lifecycle;
pub mod load;
mod log_archive;
mod machine;
mod pace;
mod profile;
mod racked;
mod seed;
mod sim;
mod stage;
mod state_file;
mod stats;
mod steps;
mod world;

pub use api::ApiClient;
pub use connections::Connections;
pub use error::Error;
pub use fault::{FAULTS, HostFault, HostFaultKind};
pub use fleet::{Fleet, add_faults, default_route, mac};
pub use hardware::{DEFAULT_MTU, Disk, Hardware, HostRoute, Nic, Role};
pub use pace::Pace;
pub use profile::{InstallationProfile, PROFILES};
pub use racked::RackedMachines;
pub use seed::choose;
pub use sim::{Simulation, SimulationOutcome, SimulationPlan, run};
pub use stats::Stats;
pub use world::{Network, World};
