//! The registry as clients see it: a real server on a free port, over a real disk.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod adoption;
mod auth;
mod blobs;
mod client;
mod disk;
mod drain;
mod faults;
mod gc;
mod lists;
mod manifest_list;
mod manifests;
mod notifications;
mod observe;
mod operations;
mod page;
mod policy;
mod process;
mod referrers;
mod s3;
mod schema1;
mod scrub;
mod server;
mod state;
mod tls;
mod torture;
mod upstream;
