//! The proxy in front of real servers that come, go, freeze and die.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod balance;
mod faults;
mod half_sent;
mod raw;
mod slots;
mod status;
mod streams;
mod wire;
mod world;
