//! The private Postgres: found, initialised, run under an unprivileged user, stopped.

mod account;
mod binaries;
mod cluster;
mod roles;
mod stale;

pub(crate) use cluster::Cluster;
