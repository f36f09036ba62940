//! The client against real members.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use etcd::quorum::{
    MemberId, MemberRole, MembershipChange, MembershipGoal, QuorumRefusal, decide_change, successor,
};
use etcd::{
    EtcdCluster, EtcdError, EtcdRefusal, EtcdSurvivor, EtcdView, MAX_SNAPSHOT_BYTES, MemberHealth,
    ObservedMember, SnapshotError, check_snapshot, save_snapshot,
};
use net::resolve::Resolver;
use testkit::certificates::Authority;
use tokio::net::TcpListener;

use crate::servers::{Servers, credentials};
use crate::wait::until;

fn goal(targets: &[MemberId]) -> MembershipGoal {
    MembershipGoal {
        desired_voters: 3,
        targets: targets.iter().copied().collect(),
    }
}

/// The view once `is` holds for it.
async fn view_with(cluster: &EtcdCluster, what: &str, is: impl Fn(&EtcdView) -> bool) -> EtcdView {
    until(what, async || {
        let view = cluster.observe().await.map_err(|error| error.to_string())?;
        let text = format!("{view:?}");
        Some(view).filter(|view| is(view)).ok_or(text)
    })
    .await
}

#[tokio::test]
async fn members_leader_and_writes_are_seen_by_mutual_tls() {
    let Some(servers) = Servers::start(3).await else {
        return;
    };
    let cluster = servers.cluster();
    let view = cluster.observe().await.unwrap();
    let names: Vec<_> = view.members.iter().map(|it| &it.member.name).collect();
    assert_eq!(names.len(), 3);
    assert!(view.leader().is_some() && view.alarms.is_empty());
    assert_eq!(view.voter_count().healthy, 3);
    let first = cluster.check_write(&view, b"1").await.unwrap();
    let second = cluster.check_write(&view, b"2").await.unwrap();
    assert!(second > first);
    // One seed is enough.
    let one = servers.places["control-2"].address();
    let client =
        |credentials| EtcdCluster::new(vec![one.clone()], &credentials, Resolver::system());
    let small = client(servers.credentials()).unwrap();
    assert_eq!(small.observe().await.unwrap().members.len(), 3);
    // A client of another authority, and servers of another one.
    let other = Authority::new("another").unwrap();
    let trusted = servers.credentials().authorities_pem;
    for (wrong, reason) in [
        (credentials(&other, &trusted), "fatal alert"),
        (credentials(&other, &other.certificate), "UnknownIssuer"),
    ] {
        let error = client(wrong).unwrap().observe().await.unwrap_err();
        assert!(matches!(error, EtcdError::NoVoter { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_killed_member_is_removed_and_a_learner_becomes_a_voter() {
    let Some(mut servers) = Servers::start(3).await else {
        return;
    };
    let cluster = servers.cluster();
    servers.kill("control-2");
    let view = view_with(&cluster, "a leader without control-2", |view| {
        view.leader().is_some() && view.voter_count().healthy == 2
    })
    .await;
    let target = servers.id(&view, "control-2");
    let goal = goal(&[target]);
    let dead = view.member(target).unwrap();
    assert!(
        matches!(dead.health, MemberHealth::Unhealthy { .. }),
        "{dead:?}"
    );
    // Not beside a dead one.
    let members = view.quorum_members();
    let refused = decide_change(&members, MembershipChange::AddLearner, &goal).unwrap_err();
    assert_eq!(refused, QuorumRefusal::UnhealthyMember { member: target });
    let remove = MembershipChange::Remove(target);
    assert!(
        decide_change(&members, remove, &goal)
            .unwrap()
            .is_two_voter_window()
    );
    cluster.leader(&view).unwrap().remove(target).await.unwrap();
    let view = cluster.observe().await.unwrap();
    assert_eq!(view.members.len(), 2);

    // The same name and address.
    let learner = joined(&mut servers, &cluster, &goal).await;
    let view = cluster.observe().await.unwrap();
    cluster.check_write(&view, b"after").await.unwrap();

    // An id from before the change.
    assert_ne!(learner, target);
    let stale = decide_change(&view.quorum_members(), remove, &goal).unwrap_err();
    assert_eq!(stale, QuorumRefusal::UnknownMember { member: target });
    let leader = cluster.leader(&view).unwrap();
    for refused in [leader.remove(target).await, leader.promote(target).await] {
        let error = refused.unwrap_err();
        assert_eq!(
            error.refusal(),
            Some(&EtcdRefusal::MemberNotFound),
            "{error}"
        );
    }
    let update = leader
        .update(learner, &[servers.places["control-2"].peer_url()])
        .await;
    update.unwrap();
}

/// Adds control-2 as a learner, starts it and promotes it, with the decisions before each change.
async fn joined(servers: &mut Servers, cluster: &EtcdCluster, goal: &MembershipGoal) -> MemberId {
    let view = cluster.observe().await.unwrap();
    let members = view.quorum_members();
    decide_change(&members, MembershipChange::AddLearner, goal).unwrap();
    let urls = [servers.places["control-2"].peer_url()];
    let leader = cluster.leader(&view).unwrap();
    let learner = until("the learner is added", async || {
        leader.add_learner(&urls).await
    })
    .await;
    let again = leader.add_learner(&urls).await.unwrap_err();
    assert_eq!(
        again.refusal(),
        Some(&EtcdRefusal::PeerUrlExists),
        "{again}"
    );
    let view = cluster.observe().await.unwrap();
    let added = view.member(learner).unwrap();
    assert_eq!(added.health, MemberHealth::NotStarted);
    assert_eq!(added.member.role, MemberRole::Learner);
    let promote = MembershipChange::Promote(learner);
    let early = decide_change(&view.quorum_members(), promote, goal).unwrap_err();
    assert_eq!(early, QuorumRefusal::UnhealthyMember { member: learner });
    let refused = leader.promote(learner).await.unwrap_err();
    assert_eq!(
        refused.refusal(),
        Some(&EtcdRefusal::LearnerNotReady),
        "{refused}"
    );

    servers.join("control-2", &view);
    let view = view_with(cluster, "the learner is in sync", |view| {
        decide_change(&view.quorum_members(), promote, goal).is_ok()
    })
    .await;
    let leader = cluster.leader(&view).unwrap();
    until("the learner is promoted", async || {
        leader.promote(learner).await
    })
    .await;
    let refused = leader.promote(learner).await.unwrap_err();
    assert_eq!(
        refused.refusal(),
        Some(&EtcdRefusal::NotLearner),
        "{refused}"
    );
    view_with(cluster, "three healthy voters", |view| {
        view.voter_count().healthy == 3
    })
    .await;
    learner
}

#[tokio::test]
async fn a_stuck_learner_is_not_promoted_and_can_be_removed() {
    let Some(mut servers) = Servers::start(3).await else {
        return;
    };
    let cluster = servers.cluster();
    servers.place("control-4", 14);
    let view = cluster.observe().await.unwrap();
    let leader = cluster.leader(&view).unwrap();
    let urls = [servers.places["control-4"].peer_url()];
    let learner = until("the learner is added", async || {
        leader.add_learner(&urls).await
    })
    .await;
    servers.join("control-4", &cluster.observe().await.unwrap());
    let healthy = |view: &EtcdView| view.members.iter().all(ObservedMember::is_healthy);
    let view = view_with(&cluster, "the learner runs", healthy).await;
    assert_eq!(
        view.member(learner).unwrap().member.role,
        MemberRole::Learner
    );
    // It hangs.
    servers.signal("control-4", "-STOP");
    let view = cluster.observe().await.unwrap();
    let stuck = view.member(learner).unwrap();
    assert!(
        matches!(stuck.health, MemberHealth::Unhealthy { .. }),
        "{stuck:?}"
    );
    assert_eq!(view.voter_count().healthy, 3);
    let goal = goal(&[]);
    let members = view.quorum_members();
    decide_change(&members, MembershipChange::Promote(learner), &goal).unwrap_err();
    decide_change(&members, MembershipChange::Remove(learner), &goal).unwrap();
    cluster
        .leader(&view)
        .unwrap()
        .remove(learner)
        .await
        .unwrap();
    let view = cluster.observe().await.unwrap();
    assert_eq!((view.members.len(), view.voter_count().healthy), (3, 3));
    servers.signal("control-4", "-CONT");
}

#[tokio::test]
async fn leadership_moves_before_its_holder_leaves() {
    let Some(servers) = Servers::start(3).await else {
        return;
    };
    let cluster = servers.cluster();
    let view = cluster.observe().await.unwrap();
    let target = view.leader().unwrap().member.id;
    let goal = MembershipGoal {
        desired_voters: 2,
        ..goal(&[target])
    };
    let members = view.quorum_members();
    let refused = decide_change(&members, MembershipChange::Remove(target), &goal).unwrap_err();
    assert_eq!(refused, QuorumRefusal::Leads { member: target });
    let next = successor(&members, &goal).unwrap();
    // Another member does not hand over.
    let other = cluster.endpoint_of(&view, next).unwrap();
    let refused = other.move_leader(next).await.unwrap_err();
    assert_eq!(
        refused.refusal(),
        Some(&EtcdRefusal::NotLeader),
        "{refused}"
    );
    cluster
        .leader(&view)
        .unwrap()
        .move_leader(next)
        .await
        .unwrap();
    let view = view_with(&cluster, "another leader", |view| view.leader().is_some()).await;
    assert_eq!(view.leader().unwrap().member.id, next);
    decide_change(
        &view.quorum_members(),
        MembershipChange::Remove(target),
        &goal,
    )
    .unwrap();
    let unknown = cluster
        .leader(&view)
        .unwrap()
        .move_leader(MemberId(1))
        .await;
    unknown.unwrap_err();
}

#[tokio::test]
async fn a_hanging_member_is_unhealthy_and_quorum_remains() {
    let Some(servers) = Servers::start(3).await else {
        return;
    };
    let cluster = servers.cluster();
    let leader = Servers::leader(&cluster.observe().await.unwrap());
    servers.signal(&leader, "-STOP");
    let view = view_with(&cluster, "another leader", |view| {
        view.leader().is_some_and(|it| it.member.name != leader)
    })
    .await;
    assert_eq!(view.voter_count().healthy, 2);
    cluster.check_write(&view, b"with two").await.unwrap();
    servers.signal(&leader, "-CONT");
    view_with(&cluster, "all are healthy again", |view| {
        view.voter_count().healthy == 3
    })
    .await;
}

#[tokio::test]
async fn seeds_of_two_clusters_are_refused_with_both_lists() {
    let authority = Arc::new(Authority::new("etcd of a test").unwrap());
    let Some(one) = Servers::start_with(1, Arc::clone(&authority)).await else {
        return;
    };
    let other = Servers::start_with(1, authority).await.unwrap();
    let seeds = [&one, &other].map(|it| it.places["control-1"].address());
    let credentials = one.credentials();
    let cluster = EtcdCluster::new(seeds.to_vec(), &credentials, Resolver::system()).unwrap();
    let error = cluster.observe().await.unwrap_err();
    let EtcdError::Different(difference) = &error else {
        panic!("{error}")
    };
    assert_ne!(difference.first.1, difference.second.1);
    for servers in [&one, &other] {
        assert!(
            error
                .to_string()
                .contains(&servers.places["control-1"].peer_url()),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_endpoint_that_never_answers_is_a_failure_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let authority = Authority::new("etcd").unwrap();
    let credentials = credentials(&authority, &authority.certificate);
    let seeds = vec![url.parse().unwrap()];
    let cluster = EtcdCluster::new(seeds, &credentials, Resolver::system()).unwrap();
    let error = cluster.observe().await.unwrap_err();
    assert!(error.to_string().contains(&url), "{error}");
    let endpoint = cluster.endpoint(&url.parse().unwrap()).unwrap();
    let status = || async { endpoint.status().await.unwrap_err() };
    // No handshake, then no listener.
    let silent = status().await;
    assert!(
        matches!(silent, EtcdError::Unreachable { .. }),
        "{silent:?}"
    );
    drop(listener);
    let refused = status().await;
    assert!(
        matches!(refused, EtcdError::Unreachable { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_snapshot_is_checked_and_can_be_restored() {
    let Some(servers) = Servers::start(1).await else {
        return;
    };
    let cluster = servers.cluster();
    let view = cluster.observe().await.unwrap();
    cluster.check_write(&view, b"content").await.unwrap();
    let endpoint = cluster.leader(&view).unwrap();
    let path = servers.path("snapshot.db");
    let snapshot = save_snapshot(&endpoint, &path, MAX_SNAPSHOT_BYTES)
        .await
        .unwrap();
    assert_eq!(check_snapshot(&path).unwrap(), snapshot);
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    servers.restore(&path).unwrap();

    // An existing file stays; one byte above the bound is refused and leaves nothing.
    let again = save_snapshot(&endpoint, &path, MAX_SNAPSHOT_BYTES).await;
    assert!(
        matches!(again, Err(SnapshotError::File { .. })),
        "{again:?}"
    );
    let other = servers.path("bounded.db");
    let bounded = save_snapshot(&endpoint, &other, snapshot.size_bytes - 1).await;
    assert!(
        matches!(bounded, Err(SnapshotError::TooLarge { .. })),
        "{bounded:?}"
    );
    let left = std::fs::read_dir(other.parent().unwrap())
        .unwrap()
        .flatten();
    let left = left.filter(|it| it.file_name().to_string_lossy().starts_with("bounded"));
    assert_eq!(left.count(), 0);
    save_snapshot(&endpoint, &other, snapshot.size_bytes)
        .await
        .unwrap();
    // Damage is found by etcd's tools and ours alike.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[9000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(
        check_snapshot(&path),
        Err(SnapshotError::Hash { .. })
    ));
    servers.restore(&path).unwrap_err();
}

#[tokio::test]
async fn survivors_answer_without_quorum() {
    let Some(mut servers) = Servers::start(3).await else {
        return;
    };
    let cluster = servers.cluster();
    let all = cluster.survivors().await.unwrap();
    assert_eq!((all.alive.len(), all.dead.len()), (3, 0));
    let logs: Vec<_> = all.alive.iter().map(EtcdSurvivor::log).collect();
    assert!(logs.is_sorted_by(|newer, older| newer >= older), "{logs:?}");
    servers.kill("control-1");
    servers.kill("control-2");
    let left = cluster.survivors().await.unwrap();
    let last = servers.places["control-3"].address();
    assert_eq!((left.alive.len(), left.dead.len()), (1, 2));
    assert_eq!(left.alive[0].endpoint, last);
    servers.force_alone("control-3");
    let view = until("quorum of one", async || cluster.observe().await).await;
    let count = view.voter_count();
    assert_eq!((count.voters, count.healthy), (1, 1), "{view:?}");
}
