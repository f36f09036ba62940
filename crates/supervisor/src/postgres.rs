//! The private Postgres: binaries, initialisation, roles, server.

mod binaries;
mod cluster;
mod roles;
mod stale;
mod temporary_server;

pub use cluster::Cluster;
pub(crate) use temporary_server::TemporaryServer;
