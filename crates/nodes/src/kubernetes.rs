//! The cluster by its Kubernetes API: the records that a repair reads.

mod certificates;
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
mod replacement;
mod replacement_progress;
mod replacement_view;
mod requests;
mod resources;
mod status;
mod stored;

pub use certificates::ListedCertificate;
pub use connect::{ClusterAddress, KubernetesCluster};
pub use etcd_access::EtcdAccess;
pub(crate) use host_records::{HostRecord, HostWrite};
pub(crate) use host_watch::WatchedHost;
pub use lease::{
    CONTROLLER_LEASE, ClusterLease, LeaseClaim, LeaseHolder, LeasePurpose, LeaseTerms, REPAIR_LEASE,
};
pub use listed::{
    ListedCsr, ListedHost, ListedMachine, ListedNode, NodeAddress, OperatorView, PlatformView,
};
pub use node_config_source::NodeConfigSource;
pub use replacement_progress::MAX_REPORT_BYTES;
pub use requests::PendingRequest;
pub use resources::{
    CONFIG_MAPS, CSRS, ETCD_NAMESPACE, HOSTS, MACHINES, MACHINES_NAMESPACE, NODES, ResourceKind,
    SECRETS,
};
pub use stored::{MAX_RESPONSE_BYTES, MAX_RESPONSE_VALUES};
