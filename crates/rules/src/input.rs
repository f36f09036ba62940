//! Checks of single fields that users send; every error names the field, the value and the remedy.
//!
//! Rules across several records are in `create` and `update`.

mod endpoint;
mod kernel;
mod labels;
mod names;
mod networks;
mod ntp;
mod platform;
mod proxy;
mod refusal;
mod secrets;
mod ssh;
mod tang;
mod topology;

pub use endpoint::{endpoint_headers, endpoint_token};
pub use kernel::{installer_args, kernel_arguments};
pub use labels::node_labels;
pub use names::{base_dns_domain, cluster_name, hostname, tags};
pub use networks::{Family, NetworkInput, NetworkRules, cidr, family, ip, is_mac, vips};
pub use ntp::{additional_ntp_source, ntp_sources};
pub use platform::{disk_encryption, ignition_endpoint};
pub use proxy::{http_proxy, https_proxy, no_proxy, proxy};
pub use refusal::refuse;
pub use secrets::{ca_certificates, cloud_token, ignition_config_override, pull_secret};
pub use ssh::ssh_public_keys;
pub use topology::{Topology, topology};

pub(crate) use platform::{LoadBalancerFacts, load_balancer, network_type, platform};
pub(crate) use tang::tang_servers;
