//! Replacements of control nodes against a real etcd, and their machines by simulated BMCs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod hardware;
#[path = "../../../redfish/tests/it/lab.rs"]
#[expect(dead_code, reason = "shared with the tests of BMCs")]
mod lab;
mod load;
mod platform;
mod replace;
#[path = "../../../etcd/tests/it/servers.rs"]
#[expect(dead_code, reason = "shared with the tests of etcd")]
mod servers;
#[path = "../../../etcd/tests/it/wait.rs"]
mod wait;
