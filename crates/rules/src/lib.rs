//! The decisions: pure functions over plain records.
//!
//! State tables, validations, hardware requirements, defaults and checks of input, version selection,
//! install-config, agent instructions. No I/O, no async, and time is a parameter. The one invariant: given the
//! same snapshot, policy and moment, the answer is the same.

pub mod create;
pub mod event;
pub mod input;
pub mod install_config;
pub mod ipxe;
mod networking;
pub mod offer;
pub mod policy;
pub mod snapshot;
pub mod steps;
pub mod update;
pub mod urls;
pub mod versions;

pub use event::NewEvent;
pub use offer::Offer;
pub use policy::Policy;
pub use snapshot::{HostState, Snapshot, StoredFiles};
