//! Replies that changed nothing, recognised by their bytes.
//!
//! Agents repeat most replies each minute. A report of 50 kB takes a millisecond to parse and to compare; its digest
//! takes microseconds.

use std::hash::{BuildHasher as _, RandomState};

use model::ids::HostId;
use model::steps::{StepReply, StepType};

use super::bounded_cache::BoundedCache;

/// Capacity: about 6 000 hosts with ten kinds of replies. Units: bytes.
const CAPACITY: usize = 8 << 20;
/// Size of an entry, with its share of the map. Units: bytes.
const ENTRY_BYTES: usize = 128;

/// A reply that changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplyDigest {
    host: HostId,
    kind: Option<StepType>,
    /// Of the members that are read. The key is random, so that no reply can be made to look like another.
    hash: u64,
    /// Of the cluster that the reply was compared with: another one may make it count.
    revision: i64,
}

/// The last reply without a change of each host and kind.
#[derive(Debug)]
pub(super) struct RepeatedReplies {
    last: BoundedCache<(HostId, Option<StepType>), ReplyDigest>,
    key: RandomState,
}

impl Default for RepeatedReplies {
    fn default() -> Self {
        Self {
            last: BoundedCache::new(CAPACITY),
            key: RandomState::new(),
        }
    }
}

impl RepeatedReplies {
    pub(super) fn digest(&self, host: HostId, revision: i64, reply: &StepReply) -> ReplyDigest {
        let StepReply {
            step_type,
            step_id: _,
            exit_code,
            output,
            error,
        } = reply;
        ReplyDigest {
            host,
            kind: *step_type,
            hash: self.key.hash_one((exit_code, output, error)),
            revision,
        }
    }

    /// Whether the reply changed nothing the last time, at the same revision.
    pub(super) fn contains(&self, reply: &ReplyDigest) -> bool {
        self.last.get((reply.host, reply.kind)).as_ref() == Some(reply)
    }

    /// Remembers a reply that changed nothing.
    pub(super) fn add(&self, reply: ReplyDigest) {
        self.last.put((reply.host, reply.kind), reply, ENTRY_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_reply_at_the_same_revision_is_repeated() {
        let replies = RepeatedReplies::default();
        let host = HostId(uuid::Uuid::from_u128(1));
        let reply = StepReply {
            step_type: Some(StepType::Inventory),
            step_id: "inventory-1".to_owned(),
            output: "{}".to_owned(),
            ..StepReply::default()
        };
        let known = replies.digest(host, 7, &reply);
        assert!(!replies.contains(&known));
        replies.add(known);
        let same = StepReply {
            step_id: "inventory-2".to_owned(),
            ..reply.clone()
        };
        assert!(replies.contains(&replies.digest(host, 7, &same)));
        assert!(
            !replies.contains(&replies.digest(host, 8, &reply)),
            "the cluster changed"
        );
        let other_host = HostId(uuid::Uuid::from_u128(2));
        assert!(!replies.contains(&replies.digest(other_host, 7, &reply)));
        let changes: [fn(&mut StepReply); 4] = [
            |reply| reply.output.push(' '),
            |reply| reply.error.push('x'),
            |reply| reply.exit_code = 1,
            |reply| reply.step_type = Some(StepType::ConnectivityCheck),
        ];
        for change in changes {
            let mut other = reply.clone();
            change(&mut other);
            assert!(
                !replies.contains(&replies.digest(host, 7, &other)),
                "{other:?}"
            );
        }
    }
}
