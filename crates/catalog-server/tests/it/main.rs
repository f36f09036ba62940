//! The catalog server over real gRPC connections.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod calls;
mod client;
mod content;
mod health;
mod limits;
mod operation;
mod oracle;
mod ports;
mod process;
mod replaced;
mod server;
mod site_check;
mod sources;
mod tls;
