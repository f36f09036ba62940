//! All states of up to seven members, against an independent formulation of the invariant; sequences of changes with
//! failures between them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

use proptest::prelude::*;

use super::change::{MembershipChange, MembershipGoal, QuorumRefusal, decide_change, successor};
use super::membership::{MemberId, MemberRole, QuorumMember, VoterCount};

/// Most members of the enumeration.
const MOST: usize = 7;
/// Sets of so many members and one that joins, as bits.
const SETS: usize = 1 << (MOST + 1);

/// Kinds of members that differ for quorum. A voter's log is not among them: see `the_log_of_a_voter_is_irrelevant`.
const KINDS: [(MemberRole, bool, bool); 5] = [
    (MemberRole::Voter, true, true),
    (MemberRole::Voter, false, false),
    (MemberRole::Learner, true, true),
    (MemberRole::Learner, true, false),
    (MemberRole::Learner, false, false),
];

/// Whether a majority of `voters` can be formed out of `healthy`: all sets are tried.
fn forms_majority(voters: usize, healthy: usize) -> bool {
    (1..SETS)
        .any(|set| set & !(voters & healthy) == 0 && 2 * set.count_ones() > voters.count_ones())
}

/// `forms_majority` of all sets.
static MAJORITY: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let pairs = (0..SETS).flat_map(|voters| (0..SETS).map(move |healthy| (voters, healthy)));
    pairs
        .map(|(voters, healthy)| forms_majority(voters, healthy))
        .collect()
});

fn has_majority(voters: usize, healthy: usize) -> bool {
    MAJORITY[voters * SETS + healthy]
}

/// The largest number of healthy voters of which any may fail: all sets are tried. `None` without a majority.
fn survived(voters: usize, healthy: usize) -> Option<u32> {
    let healthy = healthy & voters;
    let fatal = (0..SETS)
        .filter(|set| set & !healthy == 0 && !has_majority(voters, healthy & !set))
        .map(usize::count_ones);
    fatal.min()?.checked_sub(1)
}

static SURVIVED: LazyLock<Vec<Option<u32>>> = LazyLock::new(|| {
    let pairs = (0..SETS).flat_map(|voters| (0..SETS).map(move |healthy| (voters, healthy)));
    pairs
        .map(|(voters, healthy)| survived(voters, healthy))
        .collect()
});

/// Voters and healthy members as bits, by position.
fn bits(members: &[QuorumMember]) -> (usize, usize) {
    let set = |is: fn(&QuorumMember) -> bool| {
        let positions = members.iter().enumerate().filter(|(_, it)| is(it));
        positions.fold(0, |set, (position, _)| set | 1 << position)
    };
    (
        set(|it| it.role == MemberRole::Voter),
        set(|it| it.is_healthy),
    )
}

fn member(id: u64, kind: (MemberRole, bool, bool), is_leader: bool) -> QuorumMember {
    QuorumMember {
        id: MemberId(id),
        role: kind.0,
        is_healthy: kind.1,
        is_leader,
        is_in_sync: kind.2,
    }
}

/// The members after a change that etcd carried out; a new learner has an empty log.
fn applied(members: &[QuorumMember], change: MembershipChange) -> Vec<QuorumMember> {
    let mut after = members.to_vec();
    match change {
        MembershipChange::Remove(id) => after.retain(|it| it.id != id),
        MembershipChange::AddLearner => after.push(member(99, KINDS[3], false)),
        MembershipChange::Promote(id) => {
            for it in after.iter_mut().filter(|it| it.id == id) {
                it.role = MemberRole::Voter;
            }
        }
    }
    after
}

/// All lists of `count` members, as lists of kinds in ascending order: the order of members is irrelevant.
fn kinds(count: usize) -> Vec<Vec<usize>> {
    let mut lists = vec![vec![]];
    for _ in 0..count {
        lists = lists
            .into_iter()
            .flat_map(|list: Vec<usize>| {
                let least = list.last().copied().unwrap_or(0);
                (least..KINDS.len()).map(move |kind| [&list[..], &[kind]].concat())
            })
            .collect();
    }
    lists
}

fn members(kinds: &[usize], leader: Option<usize>) -> Vec<QuorumMember> {
    let each = kinds.iter().enumerate();
    each.map(|(index, kind)| member(index as u64, KINDS[*kind], leader == Some(index)))
        .collect()
}

fn changes(count: usize) -> Vec<MembershipChange> {
    // One id above those of the members: it is unknown.
    let ids = (0..=count as u64).map(MemberId);
    let each = ids.flat_map(|id| [MembershipChange::Remove(id), MembershipChange::Promote(id)]);
    each.chain([MembershipChange::AddLearner]).collect()
}

fn goal(desired_voters: usize, targets: &[u64]) -> MembershipGoal {
    MembershipGoal {
        desired_voters,
        targets: targets.iter().copied().map(MemberId).collect(),
    }
}

/// Calls `check` with every state, change, target (none, one; all sets of few members) and desired number of voters.
fn each_case(mut check: impl FnMut(&[QuorumMember], MembershipChange, &MembershipGoal)) {
    for count in 0..=MOST {
        let ids: Vec<u64> = (0..count as u64).collect();
        let targets: Vec<Vec<u64>> = if count <= 4 {
            let sets = 0..1_u64 << count;
            let members = |set: u64| ids.iter().copied().filter(move |id| set >> id & 1 == 1);
            sets.map(|set| members(set).collect()).collect()
        } else {
            let single = ids.iter().map(|id| vec![*id]);
            single.chain([vec![]]).collect()
        };
        for kinds in kinds(count) {
            for leader in (0..count).map(Some).chain([None]) {
                let members = members(&kinds, leader);
                for change in changes(count) {
                    for targets in &targets {
                        for desired in 1..=MOST {
                            check(&members, change, &goal(desired, targets));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn allowed_changes_keep_a_majority_and_lose_no_spare() {
    let (mut allowed, mut refused) = (0_u64, 0_u64);
    each_case(|members, change, goal| {
        let Ok(permit) = decide_change(members, change, goal) else {
            refused += 1;
            return;
        };
        allowed += 1;
        let after = applied(members, change);
        let context = || format!("{members:?}\n{change:?}\n{goal:?}");
        let ((voters, healthy), (voters_after, healthy_after)) = (bits(members), bits(&after));
        // The old voters commit it, and the new ones continue.
        assert!(has_majority(voters, healthy), "{}", context());
        assert!(
            voters_after < SETS && has_majority(voters_after, healthy_after),
            "{}",
            context()
        );
        assert_eq!(permit.after, VoterCount::of(&after), "{}", context());
        let survived = |voters, healthy| SURVIVED[voters * SETS + healthy];
        let (before, then) = (
            survived(voters, healthy),
            survived(voters_after, healthy_after),
        );
        assert_eq!(
            then.map(|it| it == 0),
            Some(permit.has_no_spare()),
            "{}",
            context()
        );
        let find = |id| members.iter().find(|it| it.id == id).unwrap();
        match change {
            MembershipChange::Remove(id) => {
                let leaving = find(id);
                assert!(!leaving.is_leader, "{}", context());
                let is_healthy_voter = leaving.role == MemberRole::Voter && leaving.is_healthy;
                if is_healthy_voter {
                    let left = (voters_after & healthy_after).count_ones() as usize;
                    assert!(left >= goal.desired_voters, "{}", context());
                } else {
                    assert!(then >= before, "{}", context());
                }
            }
            MembershipChange::AddLearner => {
                assert_eq!(
                    healthy.count_ones() as usize,
                    members.len(),
                    "{}",
                    context()
                );
                assert_eq!(then, before, "{}", context());
            }
            MembershipChange::Promote(id) => {
                let learner = find(id);
                assert!(learner.is_healthy && learner.is_in_sync, "{}", context());
                assert!(then >= before, "{}", context());
                let is_beside_dead = voters & !healthy != 0;
                assert!(!is_beside_dead || then > before, "{}", context());
            }
        }
    });
    assert!(allowed > 1000 && refused > 1_000_000, "{allowed} {refused}");
}

/// Whether a refusal is true, in other words than those of the decision.
fn is_true(
    refusal: &QuorumRefusal,
    members: &[QuorumMember],
    change: MembershipChange,
    goal: &MembershipGoal,
) -> bool {
    use QuorumRefusal as R;
    let (voters, healthy) = bits(members);
    let after = applied(members, change);
    let (voters_after, healthy_after) = bits(&after);
    let has = |id: &MemberId, is: fn(&QuorumMember) -> bool| {
        members.iter().any(|it| it.id == *id && is(it))
    };
    let is_voter = |it: &QuorumMember| it.role == MemberRole::Voter;
    let staying = |it: &&QuorumMember| is_voter(it) && !goal.targets.contains(&it.id);
    match refusal {
        R::DuplicateMember { .. } | R::SeveralLeaders { .. } => false,
        R::LearnerLeads { member } => {
            has(member, |it| it.is_leader && it.role == MemberRole::Learner)
        }
        R::NoLeader => members.iter().all(|it| !it.is_leader || !it.is_healthy),
        R::NoQuorum { .. } => !has_majority(voters, healthy),
        R::UnknownMember { member } => !has(member, |_| true),
        R::NotTarget { member } => has(member, is_voter) && !goal.targets.contains(member),
        R::Leads { member } => has(member, |it| it.is_leader),
        R::LosesQuorum { .. } => !has_majority(voters_after, healthy_after),
        R::BelowDesired { member, .. } => {
            let left = (voters_after & healthy_after).count_ones() as usize;
            has(member, |it| it.is_healthy) && left < goal.desired_voters
        }
        R::LearnerIsReady { member } => {
            has(member, |it| it.is_in_sync && it.role == MemberRole::Learner)
        }
        R::UnhealthyMember { member } => has(member, |it| !it.is_healthy),
        R::LearnerPresent { member } => has(member, |it| it.role == MemberRole::Learner),
        R::NoneMissing { .. } => members.iter().filter(staying).count() >= goal.desired_voters,
        R::NotLearner { member } => has(member, is_voter),
        R::PromotesTarget { member } => goal.targets.contains(member),
        R::NotInSync { member } => has(member, |it| !it.is_in_sync),
    }
}

#[test]
fn refusals_are_true_and_each_is_reached() {
    let mut reached: BTreeMap<String, u64> = BTreeMap::new();
    each_case(|members, change, goal| {
        if let Err(refusal) = decide_change(members, change, goal) {
            assert!(
                is_true(&refusal, members, change, goal),
                "{refusal:?}\n{members:?}\n{change:?}\n{goal:?}"
            );
            let value = serde_json::to_value(&refusal).unwrap();
            let reason = value["reason"].as_str().unwrap().to_owned();
            *reached.entry(reason).or_default() += 1;
        }
    });
    let names: Vec<_> = reached.keys().map(String::as_str).collect();
    // Duplicates and several leaders have a test of their own.
    assert_eq!(
        names,
        [
            "below-desired",
            "leads",
            "learner-is-ready",
            "learner-leads",
            "learner-present",
            "loses-quorum",
            "no-leader",
            "no-quorum",
            "none-missing",
            "not-in-sync",
            "not-learner",
            "not-target",
            "promotes-target",
            "unhealthy-member",
            "unknown-member",
        ]
    );
}

#[test]
fn contradictory_observations_are_refused() {
    let mut twice = members(&[0, 0, 0], Some(0));
    twice[2].id = twice[0].id;
    let refused = |members: &[QuorumMember]| {
        decide_change(members, MembershipChange::AddLearner, &goal(4, &[])).unwrap_err()
    };
    let member = MemberId(0);
    assert_eq!(refused(&twice), QuorumRefusal::DuplicateMember { member });
    let mut leaders = members(&[0, 0, 0], Some(0));
    leaders[1].is_leader = true;
    let both = vec![MemberId(0), MemberId(1)];
    assert_eq!(
        refused(&leaders),
        QuorumRefusal::SeveralLeaders { leaders: both }
    );
}

/// State of the exploration: members, and whether the target still runs.
type State = Vec<QuorumMember>;

/// Events beside our changes: failures that quorum survives, recoveries, logs that catch up, elections.
fn events(state: &State) -> Vec<State> {
    let mut next = Vec::new();
    let (voters, healthy) = bits(state);
    for index in 0..state.len() {
        let mut push = |change: &dyn Fn(&mut QuorumMember)| {
            let mut then = state.clone();
            change(&mut then[index]);
            next.push(then);
        };
        let it = state[index];
        // Without its leader, the cluster elects another one: the election is an event of its own.
        if it.is_healthy && has_majority(voters, healthy & !(1 << index)) {
            push(&|it| {
                (it.is_healthy, it.is_leader) = (false, false);
                it.is_in_sync = false;
            });
        }
        if !it.is_healthy {
            push(&|it| {
                it.is_healthy = true;
                it.is_in_sync = it.role == MemberRole::Voter;
            });
        }
        if it.is_healthy && !it.is_in_sync {
            push(&|it| it.is_in_sync = true);
        }
        if it.role == MemberRole::Voter && it.is_healthy && !it.is_leader {
            let mut then = state.clone();
            for other in &mut then {
                other.is_leader = other.id == it.id;
            }
            next.push(then);
        }
    }
    next
}

/// The state without ids of members that do not leave: those are interchangeable.
fn canonical(state: &State, targets: &BTreeSet<MemberId>) -> State {
    let mut state = state.clone();
    state.sort_by_key(|it| (!targets.contains(&it.id), it.role, *it));
    let rest = state.iter_mut().filter(|it| !targets.contains(&it.id));
    let mut kinds: Vec<QuorumMember> = rest.map(|it| *it).collect();
    kinds.sort_by_key(|it| (it.role, it.is_healthy, it.is_leader, it.is_in_sync));
    let leaving = state.into_iter().filter(|it| targets.contains(&it.id));
    let numbered = kinds.into_iter().zip(100..).map(|(it, id)| QuorumMember {
        id: MemberId(id),
        ..it
    });
    leaving.chain(numbered).collect()
}

/// All states that allowed changes and survivable events lead to.
fn reachable(start: &State, goal: &MembershipGoal) -> BTreeSet<State> {
    let mut seen = BTreeSet::from([canonical(start, &goal.targets)]);
    let mut waiting: VecDeque<_> = seen.iter().cloned().collect();
    while let Some(state) = waiting.pop_front() {
        let ids = state.iter().map(|it| it.id);
        let changes =
            ids.flat_map(|id| [MembershipChange::Remove(id), MembershipChange::Promote(id)]);
        let allowed = changes
            .chain([MembershipChange::AddLearner])
            .filter(|change| decide_change(&state, *change, goal).is_ok());
        let next = allowed.map(|change| applied(&state, change));
        for then in next.chain(events(&state)) {
            let then = canonical(&then, &goal.targets);
            if seen.insert(then.clone()) {
                waiting.push_back(then);
            }
        }
    }
    seen
}

#[test]
fn no_sequence_of_allowed_changes_loses_quorum() {
    for desired in 1..=5 {
        let start = members(&vec![0; desired], Some(0));
        // The target leads, so that all orders of leadership and removal occur.
        let goal = goal(desired, &[0]);
        let states = reachable(&start, &goal);
        for state in &states {
            let (voters, healthy) = bits(state);
            assert!(has_majority(voters, healthy), "{state:?}");
            // One more than wanted, while the leaving one is still there.
            assert!(voters.count_ones() as usize <= desired + 1, "{state:?}");
            assert!(state.len() <= desired + 1, "{state:?}");
        }
        assert!(states.len() >= 4, "{desired}: {}", states.len());
    }
}

/// Changes until the target has left and the wanted voters are there, as a plan makes them: the first allowed one of
/// promotion, removal of the target and addition; a learner catches up, and leadership is moved when it must be.
fn complete(mut state: State, goal: &MembershipGoal) -> Result<Vec<MembershipChange>, State> {
    let mut done = Vec::new();
    let is_complete = |state: &State| {
        let count = VoterCount::of(state);
        count.healthy == goal.desired_voters
            && count.voters == state.len()
            && !state.iter().any(|it| goal.targets.contains(&it.id))
    };
    for _ in 0..4 * MOST {
        if is_complete(&state) {
            return Ok(done);
        }
        let leader = state.iter().find(|it| it.is_leader).map(|it| it.id);
        if leader.is_none_or(|id| goal.targets.contains(&id)) {
            let Some(next) = successor(&state, goal) else {
                return Err(state);
            };
            for it in &mut state {
                it.is_leader = it.id == next;
            }
        }
        let ids: Vec<_> = state.iter().map(|it| it.id).collect();
        let changes = (ids.iter().copied().map(MembershipChange::Promote))
            .chain(ids.iter().copied().map(MembershipChange::Remove))
            .chain([MembershipChange::AddLearner]);
        let allowed = |change: &MembershipChange| decide_change(&state, *change, goal).is_ok();
        // A learner that is not in sync may be removed; it catches up first.
        let is_new = |id: &MemberId| id.0 == 99;
        let next = changes
            .filter(allowed)
            .find(|it| !matches!(it, MembershipChange::Remove(id) if is_new(id)));
        match next {
            Some(change) => {
                done.push(change);
                state = applied(&state, change);
            }
            None => match state.iter_mut().find(|it| it.is_healthy && !it.is_in_sync) {
                Some(learner) => learner.is_in_sync = true,
                None => return Err(state),
            },
        }
    }
    Err(state)
}

#[test]
fn failed_members_leave_first_and_healthy_ones_last() {
    use MembershipChange::{AddLearner, Promote, Remove};
    let (target, new) = (MemberId(0), MemberId(99));
    for desired in 3..MOST {
        for leader in 1..desired {
            let mut kinds = vec![0; desired];
            let healthy = members(&kinds, Some(leader));
            kinds[0] = 1;
            let failed = members(&kinds, Some(leader));
            let goal = goal(desired, &[0]);
            assert_eq!(
                complete(failed, &goal).unwrap(),
                [Remove(target), AddLearner, Promote(new)]
            );
            assert_eq!(
                complete(healthy, &goal).unwrap(),
                [AddLearner, Promote(new), Remove(target)]
            );
        }
        // The target leads.
        let healthy = members(&vec![0; desired], Some(0));
        complete(healthy, &goal(desired, &[0])).unwrap();
    }
}

#[test]
fn two_members_have_no_failure_to_lose() {
    let goal = goal(2, &[0]);
    let failed = members(&[1, 0], Some(1));
    let refused = decide_change(&failed, MembershipChange::Remove(MemberId(0)), &goal);
    assert!(matches!(refused, Err(QuorumRefusal::NoQuorum { .. })));
    complete(members(&[0, 0], Some(0)), &goal).unwrap();
}

#[test]
fn two_of_five_lost_are_both_removed_before_one_joins() {
    use MembershipChange::{AddLearner, Remove};
    let lost = members(&[1, 1, 0, 0, 0], Some(2));
    let both = goal(5, &[0, 1]);
    let first = applied(&lost, Remove(MemberId(0)));
    decide_change(&lost, Remove(MemberId(0)), &both).unwrap();
    let refused = decide_change(&first, AddLearner, &both).unwrap_err();
    let member = MemberId(1);
    assert_eq!(refused, QuorumRefusal::UnhealthyMember { member });
    let permit = decide_change(&first, Remove(member), &both).unwrap();
    assert!(!permit.has_no_spare());
    decide_change(&applied(&first, Remove(member)), AddLearner, &both).unwrap();
}

#[test]
fn a_learner_in_sync_is_promoted_beside_a_dead_voter_where_it_helps() {
    use MembershipChange::Promote;
    // A second failure while the new member caught up: four voters with three alive.
    let four = members(&[0, 0, 0, 1, 2], Some(0));
    let permit = decide_change(&four, Promote(MemberId(4)), &goal(5, &[])).unwrap();
    assert_eq!((permit.after.voters, permit.after.spare()), (5, 1));
    // Beside a dead one of three: four voters, of which none may fail.
    let three = members(&[0, 0, 1, 2], Some(0));
    let refused = decide_change(&three, Promote(MemberId(3)), &goal(4, &[])).unwrap_err();
    let member = MemberId(2);
    assert_eq!(refused, QuorumRefusal::UnhealthyMember { member });
}

#[test]
fn the_two_voter_window_is_flagged() {
    let failed = members(&[1, 0, 0], Some(1));
    let target = MembershipChange::Remove(MemberId(0));
    let permit = decide_change(&failed, target, &goal(3, &[0])).unwrap();
    assert!(permit.is_two_voter_window() && permit.has_no_spare());
}

#[test]
fn ids_are_hexadecimal() {
    let id = MemberId(0xabc0_0def);
    assert_eq!(id.to_string(), "abc00def");
    assert_eq!("abc00def".parse(), Ok(id));
    let json = serde_json::to_string(&id).unwrap();
    assert_eq!(json, "\"abc00def\"");
    assert_eq!(serde_json::from_str::<MemberId>(&json).unwrap(), id);
    serde_json::from_str::<MemberId>("\"member-1\"").unwrap_err();
}

prop_compose! {
    fn any_member()(id in 0_u64..9, voter: bool, is_healthy: bool, is_leader: bool, is_in_sync: bool) -> QuorumMember {
        let role = if voter { MemberRole::Voter } else { MemberRole::Learner };
        QuorumMember { id: MemberId(id), role, is_healthy, is_leader, is_in_sync }
    }
}

fn any_change() -> impl Strategy<Value = MembershipChange> {
    prop_oneof![
        (0_u64..10).prop_map(|id| MembershipChange::Remove(MemberId(id))),
        (0_u64..10).prop_map(|id| MembershipChange::Promote(MemberId(id))),
        Just(MembershipChange::AddLearner),
    ]
}

proptest! {
    #[test]
    fn the_order_of_members_is_irrelevant(
        members in prop::collection::vec(any_member(), 0..8),
        rotation in 0_usize..8,
        change in any_change(),
        desired in 1_usize..8,
        targets in prop::collection::vec(0_u64..9, 0..3),
    ) {
        let goal = goal(desired, &targets);
        let mut other = members.clone();
        other.reverse();
        other.rotate_left(rotation.min(members.len()));
        let decided = decide_change(&members, change, &goal);
        prop_assert_eq!(decided.is_ok(), decide_change(&other, change, &goal).is_ok());
        prop_assert_eq!(successor(&members, &goal), successor(&other, &goal));
    }

    #[test]
    fn the_log_of_a_voter_is_irrelevant(
        members in prop::collection::vec(any_member(), 0..8),
        change in any_change(),
        desired in 1_usize..8,
    ) {
        let goal = goal(desired, &[0]);
        let mut other = members.clone();
        for it in other.iter_mut().filter(|it| it.role == MemberRole::Voter) {
            it.is_in_sync = !it.is_in_sync;
        }
        prop_assert_eq!(decide_change(&members, change, &goal), decide_change(&other, change, &goal));
    }

    /// Random walks with up to nine members, beyond the exploration above.
    #[test]
    fn walks_of_changes_and_survivable_failures_keep_quorum(
        count in 3_usize..8,
        leader in 0_usize..8,
        desired in 3_usize..8,
        targets in prop::collection::vec(0_u64..8, 1..3),
        steps in prop::collection::vec((any_change(), 0_usize..40, any::<bool>()), 1..60),
    ) {
        let goal = goal(desired, &targets);
        let mut state = members(&vec![0; count.min(6)], Some(leader.min(count.min(6) - 1)));
        for (change, event, is_event) in steps {
            let change = match change {
                // Ids of members that joined are used as well.
                MembershipChange::Promote(_) => state.iter().find(|it| it.role == MemberRole::Learner)
                    .map_or(change, |it| MembershipChange::Promote(it.id)),
                other => other,
            };
            if is_event {
                let events = events(&state);
                if let Some(next) = events.get(event % events.len().max(1)) {
                    state.clone_from(next);
                }
            } else if decide_change(&state, change, &goal).is_ok() {
                state = applied(&state, change);
                let fresh = 10 + state.len() as u64 + event as u64 * 100;
                for it in state.iter_mut().filter(|it| it.id.0 == 99) {
                    it.id = MemberId(fresh);
                }
            }
            let (voters, healthy) = bits(&state);
            prop_assert!(has_majority(voters, healthy), "{state:?}");
        }
    }
}
