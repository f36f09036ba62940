//! The proxy in front of real servers that come, go, freeze and die.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod balance;
mod concurrency;
mod faults;
mod files;
mod files_load;
mod raw;
mod site;
mod slow_clients;
mod status;
mod streams;
mod wire;
mod world;
