//! The nodes of an installed cluster, as its API shows them. No other installer has them.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The state of a cluster's nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodesReport {
    /// Address of the cluster's API.
    pub url: String,
    /// Version of the platform; empty on plain Kubernetes.
    pub version: String,
    /// As `HighlyAvailable`; empty where it is unknown.
    pub topology: String,
    /// Message of an upgrade under way.
    pub upgrade: Option<String>,
    /// Control plane first, then by name.
    pub nodes: Vec<NodeReport>,
    /// The etcd operator's message about its members; none where it has none.
    pub etcd: Option<String>,
    /// Operators whose static pods are not on one revision.
    pub rolling_out: Vec<String>,
    /// Requests without a decision.
    pub pending_csrs: Vec<CsrReport>,
    /// Certificates of etcd, the one that ends first first.
    pub certificates: Vec<CertificateReport>,
}

/// A node, or a Machine or host without one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// None: the Machine or host has no node.
    pub node: Option<String>,
    pub is_ready: bool,
    /// Message of a node that is not ready.
    pub reason: String,
    pub is_cordoned: bool,
    pub is_control_plane: bool,
    /// Its internal address.
    pub address: String,
    pub machine: Option<String>,
    pub machine_phase: String,
    pub host: Option<String>,
    pub host_state: String,
    /// None: the BMC was not asked.
    pub is_powered_on: Option<bool>,
    pub host_error: String,
}

/// A request without a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsrReport {
    pub name: String,
    pub signer: String,
    pub requestor: String,
    /// RFC 3339.
    pub created_at: String,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertificateReport {
    pub secret: String,
    pub not_after: Timestamp,
    /// Negative: it has ended. Units: days.
    pub days_left: i64,
}
