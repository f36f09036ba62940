//! Changes that users request.
//!
//! A refused change leaves the record as it was. Validations and states do not change here: the caller
//! refreshes afterwards.

mod cluster;
mod context;
mod host;
mod image_parts;
mod infra_env;
mod machine_networks;
mod members;
mod reset_validation;

pub use cluster::{accepts_changes, cluster};
pub use context::UpdateContext;
pub use host::{host, host_ignition, installer_args};
pub(crate) use image_parts::{ImageParts, set_image_parts};
pub(crate) use infra_env::image_event;
pub use infra_env::infra_env;
pub use machine_networks::{derive_machine_networks, host_networks, release_machine_networks};
pub use reset_validation::reset_validation;

#[cfg(test)]
mod tests;
