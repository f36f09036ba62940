//! Declarations: the agent-based installer's input files as the wanted state of a cluster, its infra-env and its
//! expected hosts.
//!
//! A member that the files leave out, or that is null, keeps its value. Every member is honoured, refused or noted as
//! one without effect: `schema` has the table. Invariant: the exported files of any state, read again, change nothing.
//!
//! Source: openshift/installer, pkg/types/installconfig.go, pkg/types/agent/agent_config_type.go.

mod agent_file;
mod api_members;
#[cfg(test)]
mod corpus_tests;
mod current;
mod documents;
mod export;
mod files;
mod hosts;
mod install_file;
mod installer_rules;
#[cfg(test)]
mod installer_rules_tests;
mod members;
mod overrides;
mod plan;
mod problems;
mod schema;
#[cfg(test)]
mod tests;

use model::cluster::{ClusterPlatform, LoadBalancerType};
use model::network::NetworkType;
use model::versions::CpuArchitecture;
use serde_json::{Map, Value};

pub use api_members::MemberPlaces;
pub use current::{CurrentState, declare};
pub use documents::{decode, documents};
pub use export::print;
pub use files::{FileText, parse, read_documents};
pub use hosts::{DeclaredHost, DeclaredInterface};
pub use plan::{ApplyPlan, cluster_params, infra_env_params, plan};
pub use problems::ReadPurpose;

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
    installation_disk: Option<String>,
    /// Positions of the values, for errors.
    places: MemberPlaces,
    /// Members without effect, or with another one than the installer's.
    pub notes: Vec<String>,
}
