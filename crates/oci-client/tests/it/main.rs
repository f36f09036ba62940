//! The client against faulty servers; its logins and its TLS trust.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod client;
mod helpers;
mod logins;
mod redirects;
mod trust;
