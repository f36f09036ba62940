//! A declaration: the members of both files that are present.

use model::cluster::{ClusterPlatform, LoadBalancerType};
use model::network::NetworkType;
use model::versions::CpuArchitecture;
use serde_json::{Map, Value};

use crate::hosts::DeclaredHost;
use crate::places::MemberPlaces;

/// The wanted state: the members of both files that are present.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declaration {
    /// Name of the cluster.
    pub name: String,
    /// Name of the infra-env.
    pub infra_env_name: Option<String>,
    /// Base domain.
    pub base_domain: Option<String>,
    /// Pull secret; exports leave it out.
    pub pull_secret: Option<String>,
    /// Public keys.
    pub ssh_key: Option<String>,
    /// PEM certificates.
    pub trust_bundle: Option<String>,
    /// Network plugin.
    pub network_type: Option<NetworkType>,
    /// CIDRs.
    pub machine_networks: Option<Vec<String>>,
    /// CIDRs and host prefixes.
    pub cluster_networks: Option<Vec<(String, i64)>>,
    /// CIDRs.
    pub service_networks: Option<Vec<String>>,
    /// Number of masters.
    pub control_plane: Option<i64>,
    /// Number of workers, which no record holds.
    pub workers: Option<i64>,
    /// Number of arbiters, which no record holds.
    pub arbiters: Option<i64>,
    /// Architecture of all pools.
    pub architecture: Option<CpuArchitecture>,
    /// Hyperthreading of masters and of workers.
    pub hyperthreading: Option<(bool, bool)>,
    /// Platform.
    pub platform: Option<ClusterPlatform>,
    /// Load balancer of the virtual addresses.
    pub load_balancer: Option<LoadBalancerType>,
    /// Virtual addresses of the API.
    pub api_vips: Option<Vec<String>>,
    /// Virtual addresses of ingress.
    pub ingress_vips: Option<Vec<String>>,
    /// Proxies: HTTP, HTTPS, and exceptions.
    pub proxy: Option<[String; 3]>,
    /// Members that override the generated install-config, as an object like it.
    pub overrides: Map<String, Value>,
    /// Time sources.
    pub ntp_sources: Option<Vec<String>>,
    /// Minimal discovery image.
    pub minimal_iso: Option<bool>,
    /// Agent inside the discovery image.
    pub embedded_agent: Option<bool>,
    /// Hosts.
    pub hosts: Option<Vec<DeclaredHost>>,
    /// Path of the disk of a single node, while the files are read.
    pub(crate) installation_disk: Option<String>,
    /// Positions of the values, for errors.
    pub(crate) places: MemberPlaces,
    /// Members without effect, or with another one than the installer's.
    pub notes: Vec<String>,
}
