//! Calls with their paths and timeouts.

use std::time::Duration;

use tonic::codegen::http::uri::PathAndQuery;

/// A unary or streaming call.
#[derive(Debug)]
pub(super) struct EtcdCall {
    /// Name in errors.
    pub(super) name: &'static str,
    path: &'static str,
    /// Time of its response; of each message of a stream.
    pub(super) timeout: Duration,
}

impl EtcdCall {
    pub(super) fn path(&self) -> PathAndQuery {
        PathAndQuery::from_static(self.path)
    }
}

/// A member that needs longer for a read is no help to a replacement. etcd's own limit for a proposal is 5 s plus two
/// elections, about 7 s with its defaults.
const READ: Duration = Duration::from_secs(5);
const CHANGE: Duration = Duration::from_secs(10);

const fn call(name: &'static str, path: &'static str, timeout: Duration) -> EtcdCall {
    EtcdCall {
        name,
        path,
        timeout,
    }
}

/// Source: etcd-io/etcd, api/etcdserverpb/rpc.proto.
pub(super) static STATUS: EtcdCall = call("status", "/etcdserverpb.Maintenance/Status", READ);
pub(super) static ALARMS: EtcdCall = call("alarms", "/etcdserverpb.Maintenance/Alarm", READ);
pub(super) static SNAPSHOT: EtcdCall = call(
    "snapshot",
    "/etcdserverpb.Maintenance/Snapshot",
    Duration::from_secs(30),
);
pub(super) static MOVE_LEADER: EtcdCall = call(
    "move leader",
    "/etcdserverpb.Maintenance/MoveLeader",
    CHANGE,
);
pub(super) static RANGE: EtcdCall = call("read", "/etcdserverpb.KV/Range", READ);
pub(super) static PUT: EtcdCall = call("write", "/etcdserverpb.KV/Put", CHANGE);
pub(super) static DELETE: EtcdCall = call("delete", "/etcdserverpb.KV/DeleteRange", CHANGE);
pub(super) static MEMBERS: EtcdCall = call("member list", "/etcdserverpb.Cluster/MemberList", READ);
pub(super) static ADD: EtcdCall = call("add member", "/etcdserverpb.Cluster/MemberAdd", CHANGE);
pub(super) static REMOVE: EtcdCall = call(
    "remove member",
    "/etcdserverpb.Cluster/MemberRemove",
    CHANGE,
);
pub(super) static UPDATE: EtcdCall = call(
    "update member",
    "/etcdserverpb.Cluster/MemberUpdate",
    CHANGE,
);
pub(super) static PROMOTE: EtcdCall = call(
    "promote member",
    "/etcdserverpb.Cluster/MemberPromote",
    CHANGE,
);
