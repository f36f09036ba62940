//! Nodes of a cluster: host records, their BMCs, and the replacement of control nodes.

pub mod check;
mod client_tls;
#[cfg(feature = "kubernetes")]
pub mod controller;
pub mod etcd;
pub mod hardware;
pub mod host_state;
pub mod inventory;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod network;
pub mod quorum;
pub mod records;
pub mod redfish;
pub mod replace;
