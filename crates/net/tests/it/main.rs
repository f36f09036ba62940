//! Name resolution and web clients against scripted servers.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod dns;
mod file_server;
mod resolve;
