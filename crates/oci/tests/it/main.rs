//! The store on a real disk, and the client against a server that misbehaves.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod client;
mod disk;
mod wire;
