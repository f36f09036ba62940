//! Cases, gates and plans of made-up worlds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use chrono::DateTime;
use etcd::quorum::{MemberId, MemberRole};
use etcd::{
    AlarmKind, EndpointStatus, EtcdMember, EtcdView, MemberAlarm, MemberHealth, ObservedMember,
};
use model::node_replacement::{ReplacementKind, ReplacementStepState};
use serde_json::{Value, json};

use super::case::{CaseRefusal, ReplacementCase, ReplacementRequest, open_case};
use super::gate::{self, GateContext, GateId};
use super::plan::plan;
use super::progress::{
    ReplaceStepOutcome, ReplacementEntry, ReplacementEvent, ReplacementProgress, StepIntent,
};
use super::step;
use super::step_id::StepId;
use super::view::{
    HostView, KubernetesView, MachineView, NodePlace, NodeView, PowerState, ReplacementView,
    RolloutView,
};

fn address(number: u64) -> IpAddr {
    format!("192.0.2.{number}").parse().unwrap()
}

fn name(number: u64) -> String {
    format!("control-{number}")
}

fn member(number: u64) -> ObservedMember {
    ObservedMember {
        member: EtcdMember {
            id: MemberId(number),
            name: name(number),
            peer_urls: vec![format!("https://{}:2380", address(number))],
            client_urls: vec![],
            role: MemberRole::Voter,
        },
        health: MemberHealth::Healthy,
        endpoint: None,
        status: Some(EndpointStatus {
            cluster_id: 1,
            member_id: MemberId(number),
            version: "3.5.0".to_owned(),
            leader: Some(MemberId(1)),
            term: 2,
            raft_index: 9000,
            applied_index: 9000,
            db_size_bytes: 0,
            role: MemberRole::Voter,
        }),
    }
}

/// Three healthy control nodes, of which the first leads, and a worker.
fn world() -> ReplacementView {
    let numbers = 1..=3_u64;
    let node = |number| NodeView {
        address: Some(address(number)),
        is_ready: true,
        is_control_plane: true,
    };
    let machine = |number| MachineView {
        addresses: vec![address(number)],
        node: Some(name(number)),
        host: Some(format!("host-{number}")),
        is_deleting: false,
        phase: "Running".to_owned(),
    };
    let mut nodes: BTreeMap<_, _> = numbers.clone().map(|it| (name(it), node(it))).collect();
    let worker = NodeView {
        is_control_plane: false,
        ..node(9)
    };
    nodes.insert("worker-1".to_owned(), worker);
    let machines = numbers
        .clone()
        .map(|it| (format!("machine-{it}"), machine(it)));
    let hosts = numbers.clone().map(|it| {
        let host = HostView {
            state: "externally provisioned".to_owned(),
            credentials: None,
            is_deleting: false,
        };
        (format!("host-{it}"), host)
    });
    ReplacementView {
        etcd: EtcdView {
            cluster_id: 1,
            members: numbers.clone().map(member).collect(),
            alarms: vec![],
        },
        kubernetes: Some(KubernetesView {
            topology: "HighlyAvailable".to_owned(),
            desired_replicas: 3,
            upgrade: None,
            has_machine_api: true,
            is_operator_managed: true,
            etcd_endpoints: numbers.clone().map(address).collect(),
            rollouts: vec![RolloutView {
                operator: "etcd".to_owned(),
                revisions: numbers.clone().map(|it| (name(it), 7)).collect(),
                latest: 7,
            }],
            rollout_override: Value::Null,
            is_pool_paused: false,
            nodes,
            machines: machines.collect(),
            hosts: hosts.collect(),
            etcd_secrets: BTreeSet::new(),
            pending_csrs: vec![],
        }),
        kubernetes_failure: None,
        old_power: Some(PowerState::Off),
        new_power: None,
    }
}

fn kill(view: &mut ReplacementView, number: usize) {
    let member = &mut view.etcd.members[number - 1];
    member.health = MemberHealth::Unhealthy {
        reason: "connection refused".to_owned(),
    };
    member.status = None;
}

/// The world after the failure of the second node.
fn failed() -> ReplacementView {
    let mut view = world();
    kill(&mut view, 2);
    view
}

fn request(node: &str) -> ReplacementRequest {
    ReplacementRequest {
        node: node.to_owned(),
        new: None,
        is_unwanted: false,
        confirmed_off_by: None,
        also_lost: BTreeSet::new(),
        skips_snapshot: false,
    }
}

fn place(name: &str, number: u64) -> NodePlace {
    NodePlace {
        name: name.to_owned(),
        address: address(number),
    }
}

/// The reason against a request, by its name.
fn refused(request: &ReplacementRequest, view: &ReplacementView) -> String {
    let refusal = open_case(request, view).unwrap_err();
    let value = serde_json::to_value(&refusal).unwrap();
    value["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_failed_node_is_a_case_with_its_records() {
    let case = open_case(&request("control-2"), &failed()).unwrap();
    assert_eq!(case.kind, ReplacementKind::Failed);
    assert_eq!(case.targets, BTreeSet::from([MemberId(2)]));
    assert_eq!(
        (case.machine.as_deref(), case.host.as_deref()),
        (Some("machine-2"), Some("host-2"))
    );
    assert!(case.reuses_place());
    // Its Node was deleted by hand already, and its member, too.
    let mut view = failed();
    view.kubernetes.as_mut().unwrap().nodes.remove("control-2");
    assert_eq!(
        open_case(&request("control-2"), &view)
            .unwrap()
            .targets
            .len(),
        1
    );
    view.etcd.members.remove(1);
    let gone = open_case(&request("control-2"), &view).unwrap();
    assert_eq!(
        (gone.kind, gone.targets.len()),
        (ReplacementKind::Failed, 0)
    );
    // Another node is lost as well, of five.
    let mut five = failed();
    five.kubernetes.as_mut().unwrap().desired_replicas = 5;
    for number in 4..=5 {
        five.etcd.members.push(member(number));
        let nodes = &mut five.kubernetes.as_mut().unwrap().nodes;
        let node = NodeView {
            address: Some(address(number)),
            ..nodes["control-1"].clone()
        };
        nodes.insert(name(number), node);
    }
    kill(&mut five, 3);
    let mut both = request("control-2");
    both.also_lost.insert("control-3".to_owned());
    let case = open_case(&both, &five).unwrap();
    assert_eq!(case.targets, BTreeSet::from([MemberId(2), MemberId(3)]));
    both.also_lost.insert("control-4".to_owned());
    assert_eq!(refused(&both, &five), "not-lost");
}

#[test]
fn requests_that_would_lose_something_are_refused() {
    let base = request("control-2");
    assert_eq!(refused(&base, &world()), "healthy");
    let mut unwanted = base.clone();
    unwanted.is_unwanted = true;
    assert_eq!(refused(&unwanted, &world()), "healthy-in-place");
    for (new, reason) in [
        (place("control-2", 4), "healthy-in-place"),
        (place("control-4", 2), "healthy-in-place"),
        (place("control-3", 4), "place-taken"),
        (place("control-4", 9), "place-taken"),
    ] {
        unwanted.new = Some(new.clone());
        assert_eq!(refused(&unwanted, &world()), reason, "{new:?}");
    }
    unwanted.new = Some(place("control-4", 4));
    assert_eq!(
        open_case(&unwanted, &world()).unwrap().kind,
        ReplacementKind::Unwanted
    );
    assert_eq!(refused(&request("control-7"), &failed()), "unknown-node");
    assert_eq!(
        refused(&request("worker-1"), &failed()),
        "not-control-plane"
    );
    let changed = |change: fn(&mut KubernetesView)| {
        let mut view = failed();
        change(view.kubernetes.as_mut().unwrap());
        refused(&base, &view)
    };
    assert_eq!(
        changed(|it| it.topology = "DualReplica".to_owned()),
        "dual-replica"
    );
    assert_eq!(changed(|it| it.desired_replicas = 2), "too-few");
    let no_address = |it: &mut KubernetesView| {
        it.machines.clear();
        it.nodes.get_mut("control-2").unwrap().address = None;
    };
    assert_eq!(changed(no_address), "no-address");
    let mut lost = failed();
    kill(&mut lost, 3);
    assert_eq!(refused(&base, &lost), "quorum-lost");
    let mut away = failed();
    away.kubernetes = None;
    away.kubernetes_failure = Some("connection refused".to_owned());
    let refusal = open_case(&base, &away).unwrap_err();
    assert!(matches!(refusal, CaseRefusal::NoKubernetes { .. }));
    assert!(
        refusal.to_string().ends_with("connection refused"),
        "{refusal}"
    );
}

fn entry(event: ReplacementEvent) -> ReplacementEntry {
    let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    ReplacementEntry { at, event }
}

/// A replacement whose steps before `next` are finished.
fn progress(
    request: ReplacementRequest,
    case: ReplacementCase,
    next: StepId,
) -> ReplacementProgress {
    let steps = step::sequence(&case);
    let opened = ReplacementEvent::Opened {
        format: 1,
        request: Box::new(request),
        case: Box::new(case),
    };
    let mut progress = ReplacementProgress::open(&entry(opened)).unwrap();
    for step in steps.into_iter().take_while(|step| *step != next) {
        let intent = StepIntent::default();
        progress.apply(&entry(ReplacementEvent::Started { step, intent }));
        progress.apply(&entry(ReplacementEvent::Finished {
            step,
            was_done: false,
            outcome: ReplaceStepOutcome::default(),
        }));
    }
    progress
}

/// Closed gates before the removal of the second node's member, and whether they may open by themselves.
fn closed(change: impl Fn(&mut ReplacementView, &mut ReplacementRequest)) -> Vec<(GateId, bool)> {
    let mut request = request("control-2");
    let case = open_case(&request, &failed()).unwrap();
    let mut view = failed();
    change(&mut view, &mut request);
    let step = StepId::RemoveMember;
    let progress = progress(request, case, step);
    let context = GateContext {
        case: &progress.case,
        view: &view,
        progress: &progress,
        step,
        others: &[],
    };
    let refusals = gate::closed(step::rule(step).gates, &context);
    refusals.iter().map(|it| (it.gate, it.may_open)).collect()
}

fn closed_by(change: impl Fn(&mut KubernetesView)) -> Vec<(GateId, bool)> {
    closed(|view, _| change(view.kubernetes.as_mut().unwrap()))
}

#[test]
fn each_gate_closes_for_its_reason() {
    use GateId as G;
    assert_eq!(closed(|_, _| ()), []);
    assert_eq!(
        closed_by(|it| it.topology = "DualReplica".to_owned()),
        [(G::Topology, false)]
    );
    assert_eq!(
        closed_by(|it| it.upgrade = Some("4.19.0".to_owned())),
        [(G::NoUpgrade, false)]
    );
    let deleting =
        |name: &'static str| closed_by(|it| it.machines.get_mut(name).unwrap().is_deleting = true);
    assert_eq!(deleting("machine-2"), []);
    assert_eq!(deleting("machine-3"), [(G::NoOtherDeletion, false)]);
    let alarm = |number, kind| {
        closed(|view, _| {
            let member = MemberId(number);
            view.etcd.alarms = vec![MemberAlarm { member, kind }];
        })
    };
    assert_eq!(alarm(2, AlarmKind::Corrupt), []);
    assert_eq!(alarm(2, AlarmKind::NoSpace), [(G::NoAlarm, false)]);
    // It is not healthy then: two of three voters are lost.
    assert_eq!(
        alarm(3, AlarmKind::Corrupt),
        [(G::Membership, true), (G::NoAlarm, false)]
    );
    let revision = |node: &'static str| {
        closed_by(|it| {
            it.rollouts[0].revisions.insert(node.to_owned(), 6);
        })
    };
    // The lost node's revision stays for ever.
    assert_eq!(revision("control-2"), []);
    assert_eq!(revision("control-3"), [(G::OneRevision, true)]);
    let unknown = |it: &mut KubernetesView| {
        it.etcd_endpoints.insert(address(8));
    };
    assert_eq!(closed_by(unknown), [(G::EndpointsMatch, true)]);
    let power = |power| closed(move |view, _| view.old_power = power);
    assert_eq!(power(Some(PowerState::On)), [(G::Fenced, false)]);
    assert_eq!(power(None), [(G::Fenced, false)]);
    let confirmed = closed(|view, request| {
        view.old_power = None;
        request.confirmed_off_by = Some("a person".to_owned());
    });
    assert_eq!(confirmed, []);
    // A machine that is seen running is not off, although a person confirmed it.
    let contradicted = closed(|view, request| {
        view.old_power = Some(PowerState::On);
        request.confirmed_off_by = Some("a person".to_owned());
    });
    assert_eq!(contradicted, [(G::Fenced, false)]);
    let away: Vec<_> = closed(|view, _| view.kubernetes = None);
    assert!(
        away.iter().all(|(_, may_open)| *may_open) && away.len() == 5,
        "{away:?}"
    );
    assert_eq!(closed(|view, _| kill(view, 3)), [(G::Membership, true)]);
    let recovered = closed(|view, _| view.etcd.members[1] = member(2));
    assert_eq!(recovered, [(G::Membership, false)]);
    let election = closed(|view, _| {
        for member in &mut view.etcd.members {
            if let Some(status) = &mut member.status {
                status.leader = None;
            }
        }
    });
    assert_eq!(election, [(G::Membership, true)]);
}

#[test]
fn a_change_needs_a_snapshot_and_no_other_replacement() {
    let case = open_case(&request("control-2"), &failed()).unwrap();
    let view = failed();
    let closed = |request: ReplacementRequest, others: &[String]| {
        let progress = progress(request, case.clone(), StepId::TakeSnapshot);
        let step = StepId::RemoveMember;
        let context = GateContext {
            case: &case,
            view: &view,
            progress: &progress,
            step,
            others,
        };
        let refusals = gate::closed(step::rule(step).gates, &context);
        refusals.into_iter().map(|it| it.gate).collect::<Vec<_>>()
    };
    let others = ["0001-control-1".to_owned()];
    let base = request("control-2");
    assert_eq!(closed(base.clone(), &[]), [GateId::Snapshot]);
    let mut skips = base;
    skips.skips_snapshot = true;
    assert_eq!(closed(skips.clone(), &[]), []);
    assert_eq!(closed(skips, &others), [GateId::NoOtherReplacement]);
}

#[test]
fn plans_show_the_steps_of_each_case() {
    let steps = |request: ReplacementRequest, view: &ReplacementView| {
        let case = open_case(&request, view).unwrap();
        let progress = progress(request, case, StepId::TakeSnapshot);
        let plan = plan(&progress, view, &[]);
        assert_eq!(plan.closed, []);
        let steps = plan
            .steps
            .into_iter()
            .map(|it| serde_json::to_value(it.step).unwrap());
        (json!(steps.collect::<Vec<_>>()), plan.fewest_voters)
    };
    assert_eq!(
        steps(request("control-2"), &failed()),
        (
            json!([
                "take-snapshot",
                "save-records",
                "fence-node",
                "pause-pool",
                "allow-rollout",
                "move-leader",
                "remove-member",
                "delete-secrets",
                "delete-host",
                "delete-machine",
                "delete-node",
                "create-records",
                "boot-node",
                "join-node",
                "eject-image",
                "add-member",
                "promote-member",
                "restore-rollout",
                "resume-pool",
                "settle-operators"
            ]),
            2
        )
    );
    let mut unwanted = request("control-1");
    unwanted.is_unwanted = true;
    unwanted.new = Some(place("control-4", 4));
    assert_eq!(
        steps(unwanted.clone(), &world()),
        (
            json!([
                "take-snapshot",
                "save-records",
                "create-records",
                "boot-node",
                "join-node",
                "eject-image",
                "add-member",
                "promote-member",
                "move-leader",
                "retire-machine",
                "delete-node",
                "remove-member",
                "fence-node",
                "delete-secrets",
                "delete-machine",
                "delete-host",
                "settle-operators"
            ]),
            3
        )
    );
    // Platform none.
    let mut none = world();
    none.kubernetes.as_mut().unwrap().machines.clear();
    none.kubernetes.as_mut().unwrap().has_machine_api = false;
    let (names, _) = steps(unwanted, &none);
    for record in ["retire-machine", "delete-machine", "delete-host"] {
        assert!(
            !names.as_array().unwrap().contains(&json!(record)),
            "{names}"
        );
    }
}

#[test]
fn a_plan_follows_the_journal_and_the_world() {
    let request = request("control-2");
    let case = open_case(&request, &failed()).unwrap();
    let progress = progress(request, case, StepId::PausePool);
    let mut view = failed();
    view.kubernetes.as_mut().unwrap().is_pool_paused = true;
    let planned = plan(&progress, &view, &[]);
    let state = |step| {
        planned
            .steps
            .iter()
            .find(|it| it.step == step)
            .unwrap()
            .state
    };
    assert_eq!(state(StepId::FenceNode), ReplacementStepState::Finished);
    // It was paused before.
    assert_eq!(state(StepId::PausePool), ReplacementStepState::Done);
    assert_eq!(state(StepId::AllowRollout), ReplacementStepState::Planned);
    assert_eq!(state(StepId::RemoveMember), ReplacementStepState::Planned);
    view.etcd.members.remove(1);
    let planned = plan(&progress, &view, &[]);
    let removal = planned
        .steps
        .iter()
        .find(|it| it.step == StepId::RemoveMember);
    assert_eq!(removal.unwrap().state, ReplacementStepState::Done);
}
