//! The server with a small API behind it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod login;
mod login_in_browser;
mod openid;
mod proxy;
mod registry;
mod server;
#[path = "../../../proxy/tests/it/slow_clients.rs"]
mod slow_clients;
