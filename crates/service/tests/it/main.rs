//! Limits of servers: greedy clients, slow clients, foreign hosts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod connections;
mod hosts;
mod metrics;
mod requests;
mod waiting;
mod world;
