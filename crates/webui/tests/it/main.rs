//! The server with a small API behind it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod chromium;
#[path = "../../../proxy/tests/it/half_sent.rs"]
mod half_sent;
mod proxy;
mod server;
