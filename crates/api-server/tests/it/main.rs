//! The real router over HTTP, with a real Postgres.

mod clusters;
mod database;
mod errors;
mod events;
mod harness;
mod hosts;
mod infra_envs;
mod installation;
mod manifests;
mod versions;
