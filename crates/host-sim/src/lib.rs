//! Simulated machines: they boot from a discovery image and then behave as the real agent, the real
//! installer and the controller inside the new cluster do.
//!
//! A machine knows nothing but what its image contains and talks to nothing but the public HTTP
//! operations; this crate depends on none of ours, so that it can disagree with them.
//! The network between the machines is simulated ([`World`]), time may run faster ([`Pace`]).

mod agent;
mod api;
pub mod args;
pub mod controller;
mod disk;
mod error;
mod hardware;
pub mod image;
mod install;
pub mod load;
mod machine;
mod pace;
mod sim;
mod steps;
mod world;

pub use api::{Api, Stats};
pub use error::Error;
pub use hardware::{Hardware, Role, Weakness};
pub use pace::Pace;
pub use sim::{Outcome, Plan, run};
pub use world::World;
