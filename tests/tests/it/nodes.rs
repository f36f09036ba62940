//! `atoll node` and `atoll host` on the API of a cluster: a real kube-apiserver with the kinds of the platform.

mod approve;
mod backup;
mod cluster;
mod controller;
mod installer_api;
mod join;
mod lease;
mod replace;
mod requests;
mod restore;
/// Members of etcd, and waiting, as in the tests of the library.
#[path = "../../../crates/etcd/tests/it/servers.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "shared with other tests")]
mod servers;
mod status;
#[path = "../../../crates/etcd/tests/it/wait.rs"]
mod wait;
