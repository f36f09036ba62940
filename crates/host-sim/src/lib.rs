//! Simulated machines: they boot a discovery image and then behave like the real agent, the real installer and the
//! controller inside the new cluster.
//!
//! A machine uses its image and the public HTTP operations alone; this crate depends on none of ours, so that it can
//! disagree with them.
//! The network between the machines is simulated ([`World`]), time may run faster ([`Pace`]).

mod agent;
mod api;
pub mod args;
pub mod controller;
mod error;
mod hardware;
pub mod image;
mod install;
mod install_request;
mod lifecycle;
pub mod load;
mod log_archive;
mod machine;
mod pace;
mod sim;
mod stage;
mod state_file;
mod steps;
mod world;

pub use api::{ApiClient, Stats};
pub use error::Error;
pub use hardware::{Hardware, Role, Weakness};
pub use pace::Pace;
pub use sim::{SimulationOutcome, SimulationPlan, run};
pub use world::World;
