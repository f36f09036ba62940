//! Records of members.

use std::fmt;

use serde::Serialize;

use super::address::EtcdAddress;
use super::messages::Member;
use crate::quorum::{MemberId, MemberRole};

/// A member, as the member list has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EtcdMember {
    /// Its id.
    pub id: MemberId,
    /// Its name; empty before its first start.
    pub name: String,
    /// URLs for other members.
    pub peer_urls: Vec<String>,
    /// URLs for clients; none before its first start.
    pub client_urls: Vec<String>,
    /// Its vote.
    pub role: MemberRole,
}

impl EtcdMember {
    /// Whether it has started once.
    pub fn has_started(&self) -> bool {
        !self.name.is_empty()
    }

    /// Host of its first peer URL, which is its node's address.
    pub fn peer_host(&self) -> Option<String> {
        let address: EtcdAddress = self.peer_urls.first()?.parse().ok()?;
        Some(address.host)
    }
}

impl fmt::Display for EtcdMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, role, .. } = self;
        let name = if name.is_empty() { "not started" } else { name };
        let learner = match role {
            MemberRole::Voter => "",
            MemberRole::Learner => ", learner",
        };
        write!(f, "{id} ({name}, {}{learner})", self.peer_urls.join(" "))
    }
}

impl From<Member> for EtcdMember {
    fn from(member: Member) -> Self {
        let sorted = |mut urls: Vec<String>| {
            urls.sort_unstable();
            urls
        };
        Self {
            id: MemberId(member.id),
            name: member.name,
            peer_urls: sorted(member.peer_urls),
            client_urls: sorted(member.client_urls),
            role: if member.is_learner {
                MemberRole::Learner
            } else {
                MemberRole::Voter
            },
        }
    }
}

/// The members, sorted by id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberList {
    /// Id of the cluster.
    pub cluster_id: u64,
    /// Sorted by id.
    pub members: Vec<EtcdMember>,
}

/// Status of the member behind an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndpointStatus {
    /// Id of its cluster.
    pub cluster_id: u64,
    /// Its own id.
    pub member_id: MemberId,
    /// Version of its program.
    pub version: String,
    /// The member that it follows, or itself.
    pub leader: Option<MemberId>,
    /// Term of that leader.
    pub term: u64,
    /// Newest index of its log that is committed.
    pub raft_index: u64,
    /// Newest index that its database has.
    pub applied_index: u64,
    /// Size of its database. Units: bytes.
    pub db_size_bytes: u64,
    /// Its vote, by its own log.
    pub role: MemberRole,
}

/// A key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredValue {
    /// Revision of its last write.
    pub revision: i64,
    /// The value.
    pub value: Vec<u8>,
}

/// Kind of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AlarmKind {
    /// The database's quota is used up: the cluster refuses writes.
    NoSpace,
    /// The database of the member differs from the others'.
    Corrupt,
    /// A kind of later versions.
    Unknown,
}

/// An alarm of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MemberAlarm {
    /// The member that raised it.
    pub member: MemberId,
    /// Its kind.
    pub kind: AlarmKind,
}

impl AlarmKind {
    /// The kind of a number on the wire; none of zero.
    pub(super) fn from_wire(number: i32) -> Option<Self> {
        match number {
            0 => None,
            1 => Some(Self::NoSpace),
            2 => Some(Self::Corrupt),
            _ => Some(Self::Unknown),
        }
    }
}
