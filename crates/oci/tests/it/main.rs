//! The store on a real disk, the client against a server that misbehaves, and whom it trusts.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod client;
mod disk;
mod trust;
mod wire;
