//! Servers under clients that ask for too much, too slowly, or for somebody else.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod connections;
mod hosts;
mod metrics;
mod requests;
mod world;
