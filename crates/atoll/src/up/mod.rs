//! `atoll up`: all services and their Postgres as child processes, on one data directory.
//!
//! As root, each service is a system user of its own ([`users`]).
//!
//! The supervisor holds a pipe to each service: when it dies, however it dies, they end by themselves. It never
//! looks into requests or data.

mod account;
mod board;
mod child;
mod control;
pub(crate) mod environment;
pub(crate) mod layout;
mod lines;
mod log_file;
pub(crate) mod ports;
pub(crate) mod postgres;
pub(crate) mod ready;
mod run;
pub(crate) mod service;
pub mod settings;
pub(crate) mod users;

pub(crate) use board::State;
pub(crate) use run::{UpArguments, run};
