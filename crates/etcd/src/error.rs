//! Errors of etcd's client.

use std::io;

use serde::Serialize;
use tonic::Code;

use super::address::EtcdAddressError;
use super::member::EtcdMember;
use crate::quorum::MemberId;

/// An error of a call to etcd, or a contradiction between its members.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// Certificates or the key cannot be used.
    #[error("etcd's {part} cannot be used: {reason}")]
    Credentials {
        /// The certificate or key.
        part: &'static str,
        /// The defect.
        reason: String,
    },
    /// A URL of a member or of the settings.
    #[error(transparent)]
    Address(#[from] EtcdAddressError),
    /// No connection: nothing was changed.
    #[error("{endpoint}: {call}: no connection: {reason}")]
    Unreachable {
        /// URL of the endpoint.
        endpoint: String,
        /// Name of the call.
        call: &'static str,
        /// The cause.
        reason: String,
    },
    /// A connection that broke, or a cluster that is busy. A change may have been made.
    #[error("{endpoint}: {call}: {reason}")]
    Unavailable {
        /// URL of the endpoint.
        endpoint: String,
        /// Name of the call.
        call: &'static str,
        /// The cause.
        reason: String,
    },
    /// No response in time. A change may have been made.
    #[error("{endpoint}: {call}: no response within {timeout_s} s")]
    Timeout {
        /// URL of the endpoint.
        endpoint: String,
        /// Name of the call.
        call: &'static str,
        /// Units: seconds.
        timeout_s: u64,
    },
    /// etcd refuses the call: nothing was changed.
    #[error("{endpoint}: {call}: {refusal}")]
    Refused {
        /// URL of the endpoint.
        endpoint: String,
        /// Name of the call.
        call: &'static str,
        /// The reason.
        refusal: EtcdRefusal,
    },
    /// A response without its parts, or beyond a bound.
    #[error("{endpoint}: {call}: unusable response: {reason}")]
    Malformed {
        /// URL of the endpoint.
        endpoint: String,
        /// Name of the call.
        call: &'static str,
        /// The defect.
        reason: String,
    },
    /// No voter answers.
    #[error("no voter of etcd serves linearizable reads: {}", failures.join("; "))]
    NoVoter {
        /// The endpoints and their failures.
        failures: Vec<String>,
    },
    /// Healthy voters report different members, or belong to different clusters.
    #[error("{0}")]
    Different(Box<ClusterDifference>),
    /// No member has this id, or it has no usable endpoint.
    #[error("the member {member} has no endpoint that answers")]
    NoEndpoint {
        /// The member.
        member: MemberId,
    },
    /// No healthy member leads.
    #[error("no healthy member of etcd leads: wait for the election")]
    NoLeader,
    /// A value that was acknowledged is not read.
    #[error("{endpoint}: a linearizable read misses the write of revision {revision}")]
    LostWrite {
        /// URL of the endpoint that was read.
        endpoint: String,
        /// Revision of the write.
        revision: i64,
    },
}

/// Two endpoints that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterDifference {
    /// URL, id of the cluster and members of one.
    pub first: (String, u64, Vec<EtcdMember>),
    /// Those of the other.
    pub second: (String, u64, Vec<EtcdMember>),
}

impl std::fmt::Display for ClusterDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = |(url, cluster, members): &(String, u64, Vec<EtcdMember>)| {
            let members: Vec<_> = members.iter().map(ToString::to_string).collect();
            format!(
                "{url} is in cluster {cluster:x} with {}",
                members.join(", ")
            )
        };
        let (first, second) = (side(&self.first), side(&self.second));
        write!(f, "members of etcd differ: {first}; {second}")
    }
}

/// Reason of a refused call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdRefusal {
    /// No member has the id.
    #[error("no member has this id")]
    MemberNotFound,
    /// A member has the peer URL already.
    #[error("a member has this peer URL already")]
    PeerUrlExists,
    /// The member is a voter.
    #[error("the member is a voter already")]
    NotLearner,
    /// The learner's log is too old.
    #[error("the learner is not in sync with the leader")]
    LearnerNotReady,
    /// etcd allows one learner.
    #[error("there is a learner already")]
    TooManyLearners,
    /// The change would leave too few started members.
    #[error("too few started members would be left")]
    NotEnoughStarted,
    /// The members have not been connected for long enough.
    #[error("the cluster is not healthy enough for a change of members")]
    Unhealthy,
    /// Only the leader hands over.
    #[error("the endpoint does not lead")]
    NotLeader,
    /// The successor is no voter.
    #[error("the successor cannot lead")]
    BadTransferee,
    /// A learner serves its status and stale reads alone.
    #[error("the endpoint is a learner")]
    Learner,
    /// The database's quota is used up.
    #[error("the database's space is used up: compact and defragment it")]
    NoSpace,
    /// Any other refusal, in etcd's words.
    #[error("{0}")]
    Other(String),
}

/// Texts of refusals. Source: etcd-io/etcd, api/v3rpc/rpctypes/error.go; equal from 3.4 to 3.7.
static TEXTS: &[(&str, EtcdRefusal)] = &[
    ("etcdserver: member not found", EtcdRefusal::MemberNotFound),
    (
        "etcdserver: Peer URLs already exists",
        EtcdRefusal::PeerUrlExists,
    ),
    // Ids are made of the URL and the second.
    (
        "etcdserver: member ID already exist",
        EtcdRefusal::PeerUrlExists,
    ),
    (
        "etcdserver: can only promote a learner member",
        EtcdRefusal::NotLearner,
    ),
    (
        "etcdserver: can only promote a learner member which is in sync with leader",
        EtcdRefusal::LearnerNotReady,
    ),
    (
        "etcdserver: too many learner members in cluster",
        EtcdRefusal::TooManyLearners,
    ),
    (
        "etcdserver: re-configuration failed due to not enough started members",
        EtcdRefusal::NotEnoughStarted,
    ),
    ("etcdserver: unhealthy cluster", EtcdRefusal::Unhealthy),
    ("etcdserver: not leader", EtcdRefusal::NotLeader),
    (
        "etcdserver: bad leader transferee",
        EtcdRefusal::BadTransferee,
    ),
    (
        "etcdserver: rpc not supported for learner",
        EtcdRefusal::Learner,
    ),
    (
        "etcdserver: mvcc: database space exceeded",
        EtcdRefusal::NoSpace,
    ),
];

impl EtcdError {
    /// The error of a status.
    pub(super) fn from_status(
        endpoint: String,
        call: &'static str,
        status: &tonic::Status,
    ) -> Self {
        let text = status.message();
        let known = TEXTS.iter().find(|(known, _)| *known == text);
        if let Some((_, refusal)) = known {
            return Self::Refused {
                endpoint,
                call,
                refusal: refusal.clone(),
            };
        }
        // Also of broken connections. Their cause is a source of the status.
        if matches!(
            status.code(),
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown
        ) {
            // Without the code and the chain of its own text.
            let cause = std::error::Error::source(status);
            let reason = cause.map_or_else(|| text.to_owned(), model::error::chain);
            if is_unreachable(status) {
                return Self::Unreachable {
                    endpoint,
                    call,
                    reason,
                };
            }
            return Self::Unavailable {
                endpoint,
                call,
                reason,
            };
        }
        let refusal = EtcdRefusal::Other(text.chars().take(MAX_TEXT_CHARS).collect());
        Self::Refused {
            endpoint,
            call,
            refusal,
        }
    }

    /// The refusal, if etcd refused the call.
    pub fn refusal(&self) -> Option<&EtcdRefusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }
}

/// Whether a status comes from a connection that could not be made.
fn is_unreachable(status: &tonic::Status) -> bool {
    let mut next = std::error::Error::source(status);
    while let Some(cause) = next {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return matches!(
                io.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::AddrNotAvailable
            );
        }
        next = cause.source();
    }
    false
}

/// Longest text of an unknown refusal. Units: characters.
const MAX_TEXT_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: Code, text: &str) -> EtcdError {
        let status = tonic::Status::new(code, text);
        EtcdError::from_status("https://192.0.2.1:2379".to_owned(), "promote", &status)
    }

    #[test]
    fn refusals_are_distinguished() {
        for (text, refusal) in TEXTS {
            let error = error(Code::FailedPrecondition, text);
            assert_eq!(error.refusal(), Some(refusal), "{text}");
        }
        let other = error(Code::PermissionDenied, "etcdserver: permission denied");
        assert_eq!(
            other.to_string(),
            "https://192.0.2.1:2379: promote: etcdserver: permission denied"
        );
        let long = error(Code::Internal, &"x".repeat(MAX_TEXT_CHARS + 1));
        assert_eq!(
            long.refusal(),
            Some(&EtcdRefusal::Other("x".repeat(MAX_TEXT_CHARS)))
        );
        let lost = error(Code::Unavailable, "etcdserver: no leader");
        assert!(lost.refusal().is_none());
    }
}
