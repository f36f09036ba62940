//! The one binary: every service behind `atoll serve`, and `atoll up`, which runs all of them with a private
//! Postgres; `atoll pod`, which prepares the same as containers; `atoll registry`, for users and certificates;
//! `atoll catalog`, for operator catalogs; `atoll backup` and `atoll restore`; `atoll mirror`, to carry images to where there is no internet.
//!
//! No logic of the services is here, and none of them knows that it is supervised. The one invariant: what
//! `atoll up` starts does not outlive it, except a database that finishes by itself or at the next start.

mod backup;
mod catalog;
mod cli;
mod doctor;
mod file;
mod mirror;
mod pod;
mod registry;
mod secrets;
mod serve;
mod status;
mod terminal;
pub mod up;
mod versions;

pub use cli::main;
