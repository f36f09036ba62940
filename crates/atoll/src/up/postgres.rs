//! The private Postgres: found, initialised, run under an unprivileged user, stopped.

mod binaries;
mod cluster;
mod roles;
mod stale;
mod temporary_server;

pub(crate) use cluster::Cluster;
pub(crate) use temporary_server::free_port;
