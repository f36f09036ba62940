//! `atoll up`: all services and their Postgres as child processes, on one data directory.
//!
//! As root, each service is a system user of its own ([`service_users`]).
//!
//! The supervisor holds a pipe to each service, so that services shut down when it dies in any way. It never reads
//! requests or data.

pub(crate) mod account;
mod child;
mod child_output;
mod control;
pub(crate) mod data_directory;
pub(crate) mod environment;
mod log_file;
pub(crate) mod ports;
pub(crate) mod postgres;
pub(crate) mod ready;
mod run;
pub(crate) mod service;
pub(crate) mod service_users;
pub mod settings;
mod state_file;

pub(crate) use run::{UpArgs, run};
pub(crate) use state_file::UpState;
