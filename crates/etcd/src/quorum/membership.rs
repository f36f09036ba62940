//! Members of an etcd cluster, as far as quorum depends on them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Id of a member. Written in hexadecimal, as etcd's own tools do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl FromStr for MemberId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

impl Serialize for MemberId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MemberId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Vote of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Counts for quorum.
    Voter,
    /// Receives the log, and does not count.
    Learner,
}

/// A member, as observed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct QuorumMember {
    /// Its id; names are reused by replacements and identify no member.
    pub id: MemberId,
    /// Its vote.
    pub role: MemberRole,
    /// A voter that serves linearizable reads, or a learner that answers; without an alarm.
    pub is_healthy: bool,
    /// Whether the healthy members regard it as their leader.
    pub is_leader: bool,
    /// Whether its log is close to the leader's. A healthy voter always is: a linearizable read waits for the log.
    pub is_in_sync: bool,
}

impl QuorumMember {
    pub(super) fn is_voter(&self) -> bool {
        self.role == MemberRole::Voter
    }

    pub(super) fn is_healthy_voter(&self) -> bool {
        self.is_voter() && self.is_healthy
    }
}

/// Voters of a membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VoterCount {
    /// All of them.
    pub voters: usize,
    /// The healthy ones.
    pub healthy: usize,
}

impl VoterCount {
    /// Counts the voters among `members`.
    pub fn of(members: &[QuorumMember]) -> Self {
        Self {
            voters: members.iter().filter(|it| it.is_voter()).count(),
            healthy: members.iter().filter(|it| it.is_healthy_voter()).count(),
        }
    }

    /// The smallest majority of the voters.
    pub fn quorum(self) -> usize {
        self.voters / 2 + 1
    }

    /// Whether the healthy voters are a majority.
    pub fn has_quorum(self) -> bool {
        self.healthy >= self.quorum()
    }

    /// Failures that quorum survives; zero also without quorum.
    pub fn spare(self) -> usize {
        self.healthy.saturating_sub(self.quorum())
    }
}

impl fmt::Display for VoterCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (healthy, voters) = (self.healthy, self.voters);
        write!(
            f,
            "{healthy} of {voters} voters healthy, quorum {}",
            self.quorum()
        )
    }
}
