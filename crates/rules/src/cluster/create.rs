//! New records: the parameters of a request, checked and completed with defaults.

mod cluster;
mod context;
mod day2;
mod infra_env;

pub(crate) use cluster::other_stream;
pub use cluster::{cluster, default_config};
pub use context::CreateContext;
pub use day2::{disconnected_cluster, imported_cluster};
pub use infra_env::{image_event, infra_env};

#[cfg(test)]
mod tests;
