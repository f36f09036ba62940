//! The cluster at one moment, as its healthy members see it.

use serde::Serialize;

use super::address::EtcdAddress;
use super::member::{AlarmKind, EndpointStatus, EtcdMember, MemberAlarm};
use crate::quorum::{MemberId, MemberRole, QuorumMember, VoterCount};

/// Largest distance of a learner's log from the leader's for its promotion. etcd itself promotes from 90 % on, which
/// may be millions of entries behind. Units: log entries.
pub const MAX_LEARNER_LAG: u64 = 1000;

/// Health of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum MemberHealth {
    /// A voter that serves linearizable reads, or a learner that answers.
    Healthy,
    /// It was added and has not started.
    NotStarted,
    /// It does not answer, or not as this member.
    Unhealthy {
        /// The reason.
        reason: String,
    },
}

/// A member with its health.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObservedMember {
    /// The member.
    #[serde(flatten)]
    pub member: EtcdMember,
    /// Its health.
    pub health: MemberHealth,
    /// The endpoint that answered as it.
    pub endpoint: Option<EtcdAddress>,
    /// Its status, if it answered.
    pub status: Option<EndpointStatus>,
}

impl ObservedMember {
    /// Whether it is healthy.
    pub fn is_healthy(&self) -> bool {
        self.health == MemberHealth::Healthy
    }

    fn is_healthy_voter(&self) -> bool {
        self.is_healthy() && self.member.role == MemberRole::Voter
    }
}

/// Members, health and alarms. All healthy voters report the same members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EtcdView {
    /// Id of the cluster.
    pub cluster_id: u64,
    /// Sorted by id.
    pub members: Vec<ObservedMember>,
    /// Active alarms.
    pub alarms: Vec<MemberAlarm>,
}

impl EtcdView {
    /// The member of this id.
    pub fn member(&self, id: MemberId) -> Option<&ObservedMember> {
        self.members.iter().find(|it| it.member.id == id)
    }

    /// The member whose first peer URL has this host: addresses identify nodes, as for etcd's operator.
    pub fn member_at(&self, host: &str) -> Option<&ObservedMember> {
        let mut members = self.members.iter();
        members.find(|it| it.member.peer_host().as_deref() == Some(host))
    }

    /// The leader of the newest term, if the healthy voters agree on one that is healthy.
    pub fn leader(&self) -> Option<&ObservedMember> {
        let [leader] = self.leaders()[..] else {
            return None;
        };
        self.member(leader).filter(|it| it.is_healthy_voter())
    }

    /// Leaders of the newest term, as healthy voters report them: one, or none during an election.
    fn leaders(&self) -> Vec<MemberId> {
        let healthy = self.members.iter().filter(|it| it.is_healthy_voter());
        let statuses: Vec<_> = healthy.filter_map(|it| it.status.as_ref()).collect();
        let term = statuses.iter().map(|it| it.term).max();
        let newest = statuses.iter().filter(|it| Some(it.term) == term);
        let mut leaders: Vec<_> = newest.filter_map(|it| it.leader).collect();
        leaders.sort_unstable();
        leaders.dedup();
        leaders
    }

    /// Its voters.
    pub fn voter_count(&self) -> VoterCount {
        VoterCount::of(&self.quorum_members())
    }

    /// The members, as the decision about a change takes them.
    pub fn quorum_members(&self) -> Vec<QuorumMember> {
        let leaders = self.leaders();
        let newest = self.leader().and_then(|it| it.status.as_ref());
        let members = self.members.iter().map(|it| {
            let is_corrupt = self.alarms.contains(&MemberAlarm {
                member: it.member.id,
                kind: AlarmKind::Corrupt,
            });
            let is_healthy = it.is_healthy() && !is_corrupt;
            let lag = newest
                .zip(it.status.as_ref())
                .map(|(leader, own)| leader.raft_index.saturating_sub(own.applied_index));
            let is_in_sync = match it.member.role {
                MemberRole::Voter => is_healthy,
                MemberRole::Learner => lag.is_some_and(|lag| lag <= MAX_LEARNER_LAG),
            };
            QuorumMember {
                id: it.member.id,
                role: it.member.role,
                is_healthy,
                is_leader: leaders.contains(&it.member.id),
                is_in_sync,
            }
        });
        members.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(id: u64, role: MemberRole, term: u64, leader: u64, applied: u64) -> ObservedMember {
        ObservedMember {
            member: EtcdMember {
                id: MemberId(id),
                name: format!("control-{id}"),
                peer_urls: vec![format!("https://192.0.2.{id}:2380")],
                client_urls: vec![],
                role,
            },
            health: MemberHealth::Healthy,
            endpoint: None,
            status: Some(EndpointStatus {
                cluster_id: 1,
                member_id: MemberId(id),
                version: "3.5.0".to_owned(),
                leader: Some(MemberId(leader)).filter(|id| id.0 != 0),
                term,
                raft_index: applied,
                applied_index: applied,
                db_size_bytes: 0,
                role,
            }),
        }
    }

    fn view(members: Vec<ObservedMember>) -> EtcdView {
        EtcdView {
            cluster_id: 1,
            members,
            alarms: vec![],
        }
    }

    #[test]
    fn the_newest_term_names_the_leader() {
        use MemberRole::{Learner, Voter};
        let voters = |third: (u64, u64)| {
            view(vec![
                observed(1, Voter, 7, 1, 5000),
                observed(2, Voter, 7, 1, 5000),
                observed(3, Voter, third.0, third.1, 5000),
            ])
        };
        let leader = |view: &EtcdView| view.leader().map(|it| it.member.id.0);
        assert_eq!(leader(&voters((7, 1))), Some(1));
        assert_eq!(leader(&voters((6, 3))), Some(1));
        assert_eq!(leader(&voters((8, 0))), None);
        // Two leaders of one term: the decision refuses.
        assert_eq!(leader(&voters((7, 3))), None);
        let members = voters((7, 3)).quorum_members();
        assert_eq!(members.iter().filter(|it| it.is_leader).count(), 2);
        // A leader that does not answer.
        let mut dead = voters((7, 1));
        dead.members[0].health = MemberHealth::Unhealthy {
            reason: "connection refused".to_owned(),
        };
        assert_eq!(leader(&dead), None);
        assert!(!dead.quorum_members()[0].is_healthy);
        // A learner has no say.
        let mut learner = voters((7, 1));
        learner.members.push(observed(4, Learner, 9, 4, 0));
        assert_eq!(leader(&learner), Some(1));
    }

    #[test]
    fn learners_are_in_sync_within_the_bound() {
        let at = |applied| {
            let view = view(vec![
                observed(1, MemberRole::Voter, 7, 1, 5000),
                observed(2, MemberRole::Learner, 7, 1, applied),
            ]);
            view.quorum_members()[1].is_in_sync
        };
        assert!(at(5000 - MAX_LEARNER_LAG));
        assert!(!at(5000 - MAX_LEARNER_LAG - 1));
        // Read after the leader's status.
        assert!(at(6000));
    }

    #[test]
    fn a_corrupt_member_is_unhealthy_and_a_full_database_is_not() {
        let mut view = view(vec![observed(1, MemberRole::Voter, 7, 1, 1)]);
        let mut alarm = |kind| {
            let member = MemberId(1);
            view.alarms = vec![MemberAlarm { member, kind }];
            view.voter_count().healthy
        };
        assert_eq!(alarm(AlarmKind::NoSpace), 1);
        assert_eq!(alarm(AlarmKind::Corrupt), 0);
    }

    #[test]
    fn members_are_found_by_address() {
        let view = view(vec![observed(1, MemberRole::Voter, 7, 1, 1)]);
        assert!(view.member_at("192.0.2.1").is_some());
        assert!(view.member_at("192.0.2.2").is_none());
        assert_eq!(
            view.members[0].member.to_string(),
            "1 (control-1, https://192.0.2.1:2380)"
        );
    }
}
