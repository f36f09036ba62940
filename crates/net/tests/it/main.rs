//! Name resolution against scripted servers.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod dns;
mod resolve;
