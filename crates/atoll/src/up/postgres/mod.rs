//! The private Postgres: found, initialised, run under an unprivileged user, stopped.

mod binaries;
mod cluster;
mod roles;
mod serving;
mod stale;

pub(crate) use cluster::Cluster;
pub(crate) use serving::free_port;
