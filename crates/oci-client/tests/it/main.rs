//! The client against a server that misbehaves, its logins, and whom it trusts.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod client;
mod helpers;
mod logins;
mod redirects;
mod trust;
