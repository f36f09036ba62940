//! The image service as its clients see it, with a stand-in for the installer API.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod artifacts;
mod campaign;
mod downloads;
mod errors;
mod images;
mod killed;
mod listeners;
mod machine_os;
mod minimal;
mod network_boot;
mod program;
mod ranges;
mod recipes;
mod slow_readers;
mod world;
