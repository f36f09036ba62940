//! The registry as clients see it: a real server on a free port, over a real disk.

mod auth;
mod blobs;
mod client;
mod faults;
mod lists;
mod manifests;
mod server;
