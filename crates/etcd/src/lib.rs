//! Client of etcd v3 by mutual TLS, with the calls that a replacement needs.
//!
//! The Kubernetes API may vanish when a control node does; etcd is spoken to directly. Endpoints belong to members,
//! members have ids, and every call has a timeout and a bound on its response.

mod address;
mod bolt;
mod call;
mod cluster;
mod connection;
mod endpoint;
mod error;
mod member;
// Generated: it knows nothing about its visibility.
#[expect(unreachable_pub, reason = "prost-build marks every message as public")]
mod messages;
pub mod quorum;
mod snapshot;
mod survivor;
mod view;

pub use address::{EtcdAddress, EtcdAddressError};
pub use bolt::BoltError;
pub use cluster::EtcdCluster;
pub use connection::EtcdCredentials;
pub use endpoint::{EtcdEndpoint, MAX_MEMBERS};
pub use error::{ClusterDifference, EtcdError, EtcdRefusal};
pub use member::{AlarmKind, EndpointStatus, EtcdMember, MemberAlarm, MemberList, StoredValue};
pub use snapshot::{
    MAX_SNAPSHOT_BYTES, SnapshotError, SnapshotFile, check_snapshot, save_snapshot,
};
pub use survivor::{EtcdSurvivor, EtcdSurvivors};
pub use view::{EtcdView, MAX_LEARNER_LAG, MemberHealth, ObservedMember};
