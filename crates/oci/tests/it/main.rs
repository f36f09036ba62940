//! The stores on a real disk and in a bucket, the client against a server that misbehaves, whom it trusts, and
//! how hosts are found.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod adoption;
mod bucket;
mod campaign;
mod client;
mod disk;
mod dns;
mod freed;
mod helpers;
mod index;
mod logins;
mod redirects;
mod resolve;
mod trust;
