//! A cluster by its Kubernetes API: its records, leases and certificate requests, and the way to its etcd.

mod certificates;
mod changes;
mod connect;
mod etcd_access;
mod host_operator;
mod host_records;
mod host_watch;
mod kubeconfig;
mod lease;
mod listed;
mod managed_fields;
mod node_config_source;
mod replacement_progress;
mod requests;
mod resources;
mod status;
mod stored;

pub use certificates::ListedCertificate;
pub use connect::{ClusterAddress, KubernetesCluster};
pub use etcd_access::EtcdAccess;
pub use host_records::{HostRecord, HostWrite, SecretRecord};
pub use host_watch::WatchedHost;
pub use lease::{
    CONTROLLER_LEASE, ClusterLease, LeaseClaim, LeaseHolder, LeasePurpose, LeaseTerms, REPAIR_LEASE,
};
pub use listed::{
    ListedCsr, ListedHost, ListedMachine, ListedNode, NodeAddress, OperatorView, PlatformView,
    member,
};
pub use node_config_source::NodeConfigSource;
pub use replacement_progress::MAX_REPORT_BYTES;
pub use requests::{CertificateRequest, PendingRequest};
pub use resources::{
    BMC_SECRETS, CONFIG_MAPS, CSRS, ETCD_NAMESPACE, ETCDS, HOSTS, MACHINE_CONFIG_POOLS, MACHINES,
    MACHINES_NAMESPACE, NODES, ResourceKind, SECRETS,
};
pub use stored::{MAX_RESPONSE_BYTES, MAX_RESPONSE_VALUES};
