//! Replies that changed nothing, recognised by their bytes.
//!
//! Agents repeat most replies each minute. A report of 50 kB takes a millisecond to parse and to compare; its digest
//! takes microseconds, and is of the text as sent, with its escapes.

use std::hash::{BuildHasher as _, RandomState};

use concurrency::BoundedCache;
use model::ids::HostId;
use model::steps::StepType;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Capacity: about 6 000 hosts with ten kinds of replies. Units: bytes.
const CAPACITY: usize = 8 << 20;
/// Size of an entry, with its share of the map. Units: bytes.
const ENTRY_BYTES: usize = 128;

/// A reply as sent: only its structure is read. The id of its step differs in each.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SentReply<'a> {
    step_type: Option<StepType>,
    #[serde(borrow)]
    step_id: Option<&'a RawValue>,
    exit_code: Option<i64>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

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
    pub(super) fn digest(&self, host: HostId, revision: i64, reply: &SentReply<'_>) -> ReplyDigest {
        let SentReply {
            step_type,
            step_id: _,
            exit_code,
            output,
            error,
        } = reply;
        let texts = [output, error].map(|text| text.map(RawValue::get));
        ReplyDigest {
            host,
            kind: *step_type,
            hash: self.key.hash_one((exit_code, texts)),
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
        let digest_of = |host, revision, json: &str| {
            let reply: SentReply<'_> = serde_json::from_str(json).unwrap();
            replies.digest(host, revision, &reply)
        };
        let reply = r#"{"step_type":"inventory","step_id":"inventory-1","output":"{\"a\":1}"}"#;
        let known = digest_of(host, 7, reply);
        assert!(!replies.contains(&known));
        replies.add(known);
        let is_known = |json: &str| replies.contains(&digest_of(host, 7, json));
        assert!(is_known(&reply.replace("inventory-1", "inventory-2")));
        assert!(
            !replies.contains(&digest_of(host, 8, reply)),
            "the cluster changed"
        );
        let other_host = HostId(uuid::Uuid::from_u128(2));
        assert!(!replies.contains(&digest_of(other_host, 7, reply)));
        for (from, to) in [
            (r#"1}""#, r#"2}""#),
            (r#""step_id""#, r#""error":"x","step_id""#),
            (r#""step_id""#, r#""exit_code":1,"step_id""#),
            (r#""output""#, r#""error""#),
            (r#""inventory""#, r#""connectivity-check""#),
        ] {
            let other = reply.replace(from, to);
            assert!(other != reply && !is_known(&other), "{other}");
        }
    }
}
