//! The file that the platform's installer reads: install-config.
//!
//! Built from a cluster and its hosts, then the user's overrides are laid over it.

mod build;
mod overrides;
mod platform;
mod schema;

pub use build::{Context, Mirror, build};
pub use overrides::{check, update};

pub(crate) use build::effective_role;

#[cfg(test)]
mod tests;
