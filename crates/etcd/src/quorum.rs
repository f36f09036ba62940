//! Quorum safety: one pure function decides about every membership change of etcd.
//!
//! The one invariant: after an allowed change, the healthy voters are a majority of the voters. A failed member is
//! removed before another joins; a healthy one is removed after another was promoted.

mod change;
mod membership;
#[cfg(test)]
mod tests;

pub use change::{
    ChangePermit, MembershipChange, MembershipGoal, QuorumRefusal, decide_change, successor,
};
pub use membership::{MemberId, MemberRole, QuorumMember, VoterCount};
