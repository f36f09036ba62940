//! The decision about one membership change.

use std::collections::BTreeSet;

use serde::Serialize;

use super::membership::{MemberId, QuorumMember, VoterCount};

/// A change of etcd's membership. No change adds a voter: a voter joins as a learner and is promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MembershipChange {
    /// Removes this member.
    Remove(MemberId),
    /// Adds a learner.
    AddLearner,
    /// Makes this learner a voter.
    Promote(MemberId),
}

/// The purpose of the changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MembershipGoal {
    /// Voters of the complete cluster: replicas of the control plane.
    pub desired_voters: usize,
    /// Members that leave. No other voter is removed.
    pub targets: BTreeSet<MemberId>,
}

/// An allowed change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ChangePermit {
    /// Voters after the change.
    pub after: VoterCount,
}

impl ChangePermit {
    /// Whether the next failure of a voter loses quorum: nothing else may be drained or rebooted.
    pub fn has_no_spare(&self) -> bool {
        self.after.spare() == 0
    }

    /// Whether two voters are left, both of which quorum needs.
    pub fn is_two_voter_window(&self) -> bool {
        self.after.voters == 2
    }
}

/// The reason against a change, with its remedy in the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum QuorumRefusal {
    /// Two members with one id.
    #[error("the member list has {member} twice")]
    DuplicateMember { member: MemberId },
    /// A learner cannot lead: the observation is wrong.
    #[error("the learner {member} is reported as leader: observe again")]
    LearnerLeads { member: MemberId },
    /// Observations of different terms.
    #[error("members report different leaders: observe again after the election")]
    SeveralLeaders { leaders: Vec<MemberId> },
    /// No healthy leader: changes would not be committed.
    #[error("no healthy member leads: wait for the election")]
    NoLeader,
    /// The majority is lost already.
    #[error("quorum is lost ({before}): restore it from a snapshot, membership cannot change")]
    NoQuorum { before: VoterCount },
    /// An id from an earlier list.
    #[error("no member has the id {member}: observe again")]
    UnknownMember { member: MemberId },
    /// Only members that the person named leave.
    #[error("{member} is not to be replaced, and only a member that is may be removed")]
    NotTarget { member: MemberId },
    /// Its removal would begin an election.
    #[error("{member} leads: move the leadership to another member first")]
    Leads { member: MemberId },
    /// The remaining healthy voters would be no majority.
    #[error("quorum would be lost ({after}): bring another member back first")]
    LosesQuorum { after: VoterCount },
    /// A healthy voter leaves only when it is superfluous.
    #[error(
        "{member} is healthy, and {healthy} of {desired} wanted voters would be left: another member joins first"
    )]
    BelowDesired {
        member: MemberId,
        healthy: usize,
        desired: usize,
    },
    /// A learner that can become a voter is not removed.
    #[error("the learner {member} is ready: promote it")]
    LearnerIsReady { member: MemberId },
    /// A member joins healthy ones only.
    #[error("{member} is unhealthy: remove it or bring it back before another joins")]
    UnhealthyMember { member: MemberId },
    /// One learner at a time.
    #[error("{member} is a learner already: promote or remove it first")]
    LearnerPresent { member: MemberId },
    /// The cluster is complete without another voter.
    #[error("{staying} voters stay of {desired} that are wanted: no member is missing")]
    NoneMissing { staying: usize, desired: usize },
    /// Only learners are promoted.
    #[error("{member} is a voter already")]
    NotLearner { member: MemberId },
    /// A learner that leaves gets no vote.
    #[error("{member} is to be replaced, and is not promoted")]
    PromotesTarget { member: MemberId },
    /// A learner with an old log would delay or block commits.
    #[error("the learner {member} is not in sync with the leader: wait")]
    NotInSync { member: MemberId },
}

/// Decides about `change`. Pure: the caller observes `members` right before it.
///
/// Errors: the first reason against it.
/// Source: the scale-down invariants of cluster-etcd-operator (`clustermemberremovalcontroller`) and the remediation
/// of Cluster API's control-plane provider.
pub fn decide_change(
    members: &[QuorumMember],
    change: MembershipChange,
    goal: &MembershipGoal,
) -> Result<ChangePermit, QuorumRefusal> {
    is_plausible(members)?;
    let before = VoterCount::of(members);
    // The change is committed by the voters of before.
    if !before.has_quorum() {
        return Err(QuorumRefusal::NoQuorum { before });
    }
    if !members.iter().any(|it| it.is_leader && it.is_healthy) {
        return Err(QuorumRefusal::NoLeader);
    }
    let after = match change {
        MembershipChange::Remove(id) => remove(members, member(members, id)?, goal)?,
        MembershipChange::AddLearner => add_learner(members, goal)?,
        MembershipChange::Promote(id) => promote(members, member(members, id)?, goal)?,
    };
    if !after.has_quorum() {
        return Err(QuorumRefusal::LosesQuorum { after });
    }
    Ok(ChangePermit { after })
}

/// The member that leadership moves to before a target leaves: a healthy voter that stays, the lowest id first.
pub fn successor(members: &[QuorumMember], goal: &MembershipGoal) -> Option<MemberId> {
    let stays = |it: &&QuorumMember| it.is_healthy_voter() && !goal.targets.contains(&it.id);
    members.iter().filter(stays).map(|it| it.id).min()
}

fn is_plausible(members: &[QuorumMember]) -> Result<(), QuorumRefusal> {
    let is_repeated = |(index, it): &(usize, &QuorumMember)| {
        let mut earlier = members[..*index].iter();
        earlier.any(|other| other.id == it.id)
    };
    if let Some((_, twice)) = members.iter().enumerate().find(is_repeated) {
        return Err(QuorumRefusal::DuplicateMember { member: twice.id });
    }
    let leaders: Vec<_> = members.iter().filter(|it| it.is_leader).collect();
    if let Some(learner) = leaders.iter().find(|it| !it.is_voter()) {
        return Err(QuorumRefusal::LearnerLeads { member: learner.id });
    }
    if leaders.len() > 1 {
        let leaders = leaders.iter().map(|it| it.id).collect();
        return Err(QuorumRefusal::SeveralLeaders { leaders });
    }
    Ok(())
}

fn member(members: &[QuorumMember], id: MemberId) -> Result<&QuorumMember, QuorumRefusal> {
    let found = members.iter().find(|it| it.id == id);
    found.ok_or(QuorumRefusal::UnknownMember { member: id })
}

fn remove(
    members: &[QuorumMember],
    leaving: &QuorumMember,
    goal: &MembershipGoal,
) -> Result<VoterCount, QuorumRefusal> {
    let member = leaving.id;
    let is_target = goal.targets.contains(&member);
    let before = VoterCount::of(members);
    if !leaving.is_voter() {
        // Without a vote it is no loss, unless it is about to become a voter that the cluster misses.
        let is_ready = leaving.is_healthy && leaving.is_in_sync;
        return if is_ready && !is_target {
            Err(QuorumRefusal::LearnerIsReady { member })
        } else {
            Ok(before)
        };
    }
    if !is_target {
        return Err(QuorumRefusal::NotTarget { member });
    }
    if leaving.is_leader {
        return Err(QuorumRefusal::Leads { member });
    }
    let after = VoterCount {
        voters: before.voters - 1,
        healthy: before.healthy - usize::from(leaving.is_healthy),
    };
    let desired = goal.desired_voters;
    if leaving.is_healthy && after.healthy < desired {
        return Err(QuorumRefusal::BelowDesired {
            member,
            healthy: after.healthy,
            desired,
        });
    }
    Ok(after)
}

fn add_learner(
    members: &[QuorumMember],
    goal: &MembershipGoal,
) -> Result<VoterCount, QuorumRefusal> {
    if let Some(learner) = members.iter().find(|it| !it.is_voter()) {
        return Err(QuorumRefusal::LearnerPresent { member: learner.id });
    }
    if let Some(unhealthy) = members.iter().find(|it| !it.is_healthy) {
        return Err(QuorumRefusal::UnhealthyMember {
            member: unhealthy.id,
        });
    }
    is_missing(members, goal)?;
    Ok(VoterCount::of(members))
}

/// Errors: the voters that stay are enough.
fn is_missing(members: &[QuorumMember], goal: &MembershipGoal) -> Result<(), QuorumRefusal> {
    let stays = |it: &&QuorumMember| it.is_voter() && !goal.targets.contains(&it.id);
    let staying = members.iter().filter(stays).count();
    let desired = goal.desired_voters;
    if staying >= desired {
        return Err(QuorumRefusal::NoneMissing { staying, desired });
    }
    Ok(())
}

fn promote(
    members: &[QuorumMember],
    learner: &QuorumMember,
    goal: &MembershipGoal,
) -> Result<VoterCount, QuorumRefusal> {
    let member = learner.id;
    if learner.is_voter() {
        return Err(QuorumRefusal::NotLearner { member });
    }
    if goal.targets.contains(&member) {
        return Err(QuorumRefusal::PromotesTarget { member });
    }
    if !learner.is_healthy {
        return Err(QuorumRefusal::UnhealthyMember { member });
    }
    if !learner.is_in_sync {
        return Err(QuorumRefusal::NotInSync { member });
    }
    is_missing(members, goal)?;
    let before = VoterCount::of(members);
    let after = VoterCount {
        voters: before.voters + 1,
        healthy: before.healthy + 1,
    };
    // Beside a dead voter, another one helps only where it raises the number of failures that quorum survives: of four
    // voters with three alive, none may fail; of five with four alive, one may.
    let unhealthy = members.iter().find(|it| it.is_voter() && !it.is_healthy);
    if let Some(unhealthy) = unhealthy.filter(|_| after.spare() <= before.spare()) {
        return Err(QuorumRefusal::UnhealthyMember {
            member: unhealthy.id,
        });
    }
    Ok(after)
}
