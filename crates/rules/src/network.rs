//! Networks of clusters: addresses, connections between hosts, static networks.

pub mod connectivity;
pub(crate) mod free_addresses;
pub mod managed_domains;
pub(crate) mod networking;
pub mod static_networks;
pub mod vip_leases;
pub(crate) mod vip_mac;
