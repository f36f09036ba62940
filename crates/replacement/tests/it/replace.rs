//! Replacements with a real etcd, stopped after each entry of the journal and after each effect, with writes beside.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use etcd::EtcdCluster;
use etcd::quorum::MemberId;
use model::node_replacement::{ReplacementKind, ReplacementState, ReplacementStepState};
use replacement::{
    CaseRefusal, JournalError, NodePlace, OpenReplacement, PowerState, ReplacementCase,
    ReplacementError, ReplacementRequest, ReplacementStore, ReplacementWorld, RunEvent, StepId,
    StepPatience, abort, drop_learner, observe, open_case, plan, run,
};
use serde_json::Value;

use crate::load::{Load, LoadReport};
use crate::platform::{Platform, PlatformOptions, client_request, node_records};
use crate::servers::{Place, Servers};
use crate::wait::until;

/// Number and name of another machine's node.
const NEW: (&str, &str, u8) = ("4", "control-4", 14);
/// Far beyond any duration here.
const PATIENT: StepPatience = StepPatience {
    poll: Duration::from_millis(50),
    limit: Duration::from_mins(3),
};
/// For waits that must end without success.
const IMPATIENT: StepPatience = StepPatience {
    poll: Duration::from_millis(50),
    limit: Duration::from_secs(5),
};

/// The node that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    FailedFollower,
    /// It holds the address of the API server, too.
    FailedLeader,
    UnwantedFollower,
    UnwantedLeader,
}

/// A case of the matrix.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    name: &'static str,
    target: Target,
    /// Whether the new node has a name and an address of its own.
    has_new_place: bool,
    /// Nodes that are lost as well.
    lost_too: usize,
    options: PlatformOptions,
}

const OPENSHIFT: PlatformOptions = PlatformOptions {
    control_nodes: 3,
    has_machine_api: true,
    is_operator_managed: true,
};
const PLATFORM_NONE: PlatformOptions = PlatformOptions {
    control_nodes: 3,
    has_machine_api: false,
    is_operator_managed: true,
};
const UNMANAGED: PlatformOptions = PlatformOptions {
    control_nodes: 3,
    has_machine_api: false,
    is_operator_managed: false,
};

static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "failed follower, same name and address",
        target: Target::FailedFollower,
        has_new_place: false,
        lost_too: 0,
        options: OPENSHIFT,
    },
    Scenario {
        name: "failed leader with the API's address, same name and address",
        target: Target::FailedLeader,
        has_new_place: false,
        lost_too: 0,
        options: OPENSHIFT,
    },
    Scenario {
        name: "failed follower, new name and address, no Machine API",
        target: Target::FailedFollower,
        has_new_place: true,
        lost_too: 0,
        options: PLATFORM_NONE,
    },
    Scenario {
        name: "failed follower, unmanaged operator",
        target: Target::FailedFollower,
        has_new_place: false,
        lost_too: 0,
        options: UNMANAGED,
    },
    Scenario {
        name: "unwanted follower",
        target: Target::UnwantedFollower,
        has_new_place: true,
        lost_too: 0,
        options: OPENSHIFT,
    },
    Scenario {
        name: "unwanted leader, no Machine API",
        target: Target::UnwantedLeader,
        has_new_place: true,
        lost_too: 0,
        options: PLATFORM_NONE,
    },
    Scenario {
        name: "unwanted leader, unmanaged operator",
        target: Target::UnwantedLeader,
        has_new_place: true,
        lost_too: 0,
        options: UNMANAGED,
    },
];

/// Interruptions of a replacement.
#[derive(Clone, Copy, Debug)]
enum Stops {
    /// After each kind of entry and effect, once.
    Each,
    /// After this one.
    At(usize),
}

/// A replacement in a test.
struct Trial {
    platform: Platform,
    cluster: EtcdCluster,
    root: PathBuf,
    id: String,
    old: String,
    target: MemberId,
    load: Load,
    /// Interruptions so far, and entries and effects observed.
    stops: usize,
    observed: usize,
    seen: HashSet<String>,
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap()
}

/// The store; programs that other tests start have its lock until they run.
fn store(root: &std::path::Path) -> ReplacementStore {
    loop {
        match ReplacementStore::open(root) {
            Err(JournalError::Locked { .. }) => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    }
}

fn request(node: &str, new: Option<NodePlace>, is_unwanted: bool) -> ReplacementRequest {
    ReplacementRequest {
        node: node.to_owned(),
        new,
        is_unwanted,
        confirmed_off_by: None,
        also_lost: BTreeSet::new(),
        skips_snapshot: false,
    }
}

impl Trial {
    /// Starts a cluster with the failure of the scenario, writes beside it, and begins the replacement.
    async fn begin(scenario: &Scenario) -> Option<Self> {
        let servers = Servers::start(scenario.options.control_nodes).await?;
        let cluster = servers.cluster();
        let addresses = servers.places.values().map(Place::address).collect();
        let load = Load::start(servers.cluster(), addresses);
        let root = servers.path("replacements");
        let view = cluster.observe().await.unwrap();
        let leader = Servers::leader(&view);
        let names = servers.places.keys();
        let old = match scenario.target {
            Target::FailedLeader | Target::UnwantedLeader => leader,
            Target::FailedFollower | Target::UnwantedFollower => names
                .into_iter()
                .find(|name| **name != leader)
                .unwrap()
                .clone(),
        };
        let target = servers.id(&view, &old);
        let names: Vec<_> = servers.places.keys().cloned().collect();
        let others = names.iter().filter(|name| **name != old);
        let platform = Platform::start(servers, scenario.options);
        let is_unwanted = matches!(
            scenario.target,
            Target::UnwantedFollower | Target::UnwantedLeader
        );
        let (mut new, mut records) = (None, Vec::<Value>::new());
        {
            let mut state = platform.state();
            if scenario.has_new_place {
                let place = state.servers.place(NEW.1, NEW.2);
                state.power.insert(place.name.clone(), PowerState::Off);
                records = node_records(NEW.0, &place.host);
                new = Some(NodePlace {
                    name: place.name,
                    address: place.host.parse().unwrap(),
                });
            }
            if scenario.target == Target::FailedLeader {
                state.api_away = 5;
            }
        }
        if !is_unwanted {
            platform.fail(&old);
        }
        let also_lost: BTreeSet<_> = others.take(scenario.lost_too).cloned().collect();
        for name in &also_lost {
            platform.fail(name);
        }
        let mut trial = Self {
            platform,
            cluster,
            root,
            id: String::new(),
            target,
            load,
            stops: 0,
            observed: 0,
            seen: HashSet::new(),
            old,
        };
        let request = ReplacementRequest {
            also_lost,
            ..request(&trial.old, new, is_unwanted)
        };
        let case = until("the request is a case", async || trial.case(&request).await).await;
        trial.id = {
            let store = store(&trial.root);
            store.begin(request, case, &records, now()).unwrap().id
        };
        Some(trial)
    }

    async fn case(&self, request: &ReplacementRequest) -> Result<ReplacementCase, String> {
        let view = observe(&self.world(PATIENT), None).await;
        let view = view.map_err(|error| error.to_string())?;
        open_case(request, &view).map_err(|refusal| refusal.to_string())
    }

    fn world(&self, patience: StepPatience) -> ReplacementWorld<'_> {
        ReplacementWorld {
            etcd: &self.cluster,
            kubernetes: &self.platform,
            hardware: &self.platform,
            now: &now,
            patience,
        }
    }

    /// One run, of another process each time.
    async fn run_once(
        &mut self,
        patience: StepPatience,
        stops: Option<Stops>,
    ) -> Result<(), ReplacementError> {
        let cluster = self.platform.state().servers.cluster();
        self.cluster = cluster;
        let store = store(&self.root);
        let mut replacement = store.resume(&self.id).unwrap();
        let (mut count, mut seen) = (self.observed, std::mem::take(&mut self.seen));
        let mut observer = |event: RunEvent<'_>, _: DateTime<Utc>| {
            let text = match event {
                RunEvent::Entry(entry) => format!("{:?}", entry.event),
                RunEvent::Effect(step) => format!("{step:?}"),
                RunEvent::Waiting(..) => return ControlFlow::Continue(()),
            };
            count += 1;
            let is_stop = match stops {
                Some(Stops::Each) => seen.insert(text),
                Some(Stops::At(number)) => count == number,
                None => false,
            };
            if is_stop {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let world = self.world(patience);
        let ended = run(&mut replacement, &store, world, &mut observer).await;
        (self.observed, self.seen) = (count, seen);
        ended
    }

    /// Runs until its end.
    async fn complete(&mut self, stops: Stops) {
        loop {
            match self.run_once(PATIENT, Some(stops)).await {
                // The entry of its end may be the one after which it was stopped.
                Ok(()) | Err(ReplacementError::Ended(ReplacementState::Completed)) => return,
                Err(ReplacementError::Interrupted) => self.stops += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn opened(&self) -> OpenReplacement {
        store(&self.root).resume(&self.id).unwrap()
    }

    /// Checks the end: whole cluster, restored settings, no lost write.
    async fn check(self) -> LoadReport {
        let progress = self.opened().progress().clone();
        assert_eq!(progress.state, ReplacementState::Completed);
        let view = self.cluster.observe().await.unwrap();
        let count = view.voter_count();
        assert_eq!(
            (count.voters, count.healthy, view.members.len()),
            (3, 3, 3),
            "{view:?}"
        );
        assert!(view.member(self.target).is_none());
        let new = view.member_at(&progress.case.new.address.to_string());
        assert_eq!(new.unwrap().member.name, progress.case.new.name);
        {
            let state = self.platform.state();
            assert!(!state.is_pool_paused && state.rollout_override.is_null());
            assert_eq!(state.boots, 1);
            let hostile: Vec<_> = state
                .approved
                .iter()
                .filter(|name| name.contains("hostile"))
                .collect();
            assert!(hostile.is_empty(), "{hostile:?}");
            assert_eq!(state.approved.len(), 2);
            assert_eq!(state.nodes.len(), 3);
            assert!(state.nodes[&progress.case.new.name].is_ready);
            if progress.case.has_machine_api {
                let number = progress.case.new.name.trim_start_matches("control-");
                let host = &state.records[&format!("BareMetalHost/host-{number}")];
                assert_eq!(host["spec"]["externallyProvisioned"], true);
                assert_eq!(state.machines.len(), 3);
                assert!(state.machines.values().all(|it| !it.is_deleting));
            }
            if progress.case.kind == ReplacementKind::Unwanted {
                assert_eq!(state.power[&self.old], PowerState::Off);
            }
        }
        let store = store(&self.root);
        assert_eq!(store.list().unwrap().len(), 1);
        let report = self.load.finish().await;
        assert!(!report.acknowledged.is_empty());
        report
    }
}

/// A scenario that is stopped after each of its entries and effects.
async fn stopped_after_each(scenario: &Scenario) {
    let Some(mut trial) = Trial::begin(scenario).await else {
        return;
    };
    trial.complete(Stops::Each).await;
    // Each step has two entries and an effect.
    let case = trial.opened().progress().case.clone();
    let least = if case.kind == ReplacementKind::Failed {
        20
    } else {
        15
    };
    assert!(trial.stops > least, "{}: {}", scenario.name, trial.stops);
    trial.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_follower_is_replaced_through_stops_after_each_entry() {
    stopped_after_each(&SCENARIOS[0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_leader_with_the_address_of_the_api_is_replaced_through_stops() {
    stopped_after_each(&SCENARIOS[1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_node_is_replaced_by_one_with_another_name() {
    stopped_after_each(&SCENARIOS[2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_join_without_the_operator() {
    stopped_after_each(&SCENARIOS[3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unwanted_node_leaves_after_another_joined() {
    stopped_after_each(&SCENARIOS[4]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unwanted_leader_leaves_without_the_machine_api() {
    stopped_after_each(&SCENARIOS[5]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unwanted_leader_leaves_without_the_operator() {
    stopped_after_each(&SCENARIOS[6]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_cut_anywhere_is_resumed() {
    let Some(mut trial) = Trial::begin(&SCENARIOS[0]).await else {
        return;
    };
    // Also between an observation and its change, or within a call.
    for cut in (0..).map(|number| Duration::from_millis(30 + 7 * number)) {
        match tokio::time::timeout(cut, trial.run_once(PATIENT, None)).await {
            Ok(Ok(())) => break,
            Ok(Err(error)) => panic!("{error}"),
            Err(_) => trial.stops += 1,
        }
    }
    assert!(trial.stops > 10, "{}", trial.stops);
    trial.check().await;
}

/// Every scenario, stopped once after one of its entries and effects: a cluster for each. All of them, about 300, with
/// the variable; else each seventh.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn no_stop_loses_quorum_or_a_write() {
    let stride = if std::env::var_os("REPLACEMENT_EACH_STOP").is_some() {
        1
    } else {
        7
    };
    let (mut runs, mut writes) = (0, 0);
    for (offset, scenario) in SCENARIOS.iter().enumerate() {
        let mut longest = Duration::ZERO;
        for number in (1 + offset % stride..).step_by(stride) {
            let Some(mut trial) = Trial::begin(scenario).await else {
                return;
            };
            trial.complete(Stops::At(number)).await;
            let is_last = trial.stops == 0;
            let report = trial.check().await;
            longest = longest.max(report.longest_pause);
            runs += 1;
            writes += report.acknowledged.len();
            if is_last {
                break;
            }
        }
        println!(
            "{}: {runs} runs so far, longest pause {longest:?}",
            scenario.name
        );
    }
    println!("{runs} runs, {writes} acknowledged writes, none lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_five_lost_are_removed_before_one_joins() {
    let scenario = Scenario {
        name: "two of five lost",
        target: Target::FailedFollower,
        has_new_place: false,
        lost_too: 1,
        options: PlatformOptions {
            control_nodes: 5,
            ..OPENSHIFT
        },
    };
    let Some(mut trial) = Trial::begin(&scenario).await else {
        return;
    };
    assert_eq!(trial.opened().progress().case.targets.len(), 2);
    trial.complete(Stops::Each).await;
    let view = trial.cluster.observe().await.unwrap();
    let count = view.voter_count();
    assert_eq!((count.voters, count.healthy), (4, 4), "{view:?}");
    trial.load.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_learner_is_dropped_and_joins_again() {
    let Some(mut trial) = Trial::begin(&SCENARIOS[0]).await else {
        return;
    };
    trial.platform.state().hangs_learners = true;
    until("the run waits for the learner", async || {
        match trial.run_once(IMPATIENT, None).await {
            Err(ReplacementError::TimedOut {
                step: StepId::PromoteMember,
                reason,
                ..
            }) => Ok(reason),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let view = trial.cluster.observe().await.unwrap();
    assert_eq!((view.members.len(), view.voter_count().healthy), (3, 2));
    let dropped = {
        let store = store(&trial.root);
        let mut replacement = store.resume(&trial.id).unwrap();
        let mut observer = |_: RunEvent<'_>, _: DateTime<Utc>| ControlFlow::Continue(());
        trial.platform.state().hangs_learners = false;
        let world = trial.world(PATIENT);
        drop_learner(&mut replacement, &store, world, &mut observer)
            .await
            .unwrap()
    };
    // Its process ends with the machine's next start of the pod.
    let old = trial.old.clone();
    trial.platform.state().servers.kill(&old);
    trial.complete(Stops::At(usize::MAX)).await;
    let view = trial.cluster.observe().await.unwrap();
    assert!(view.member(dropped).is_none());
    trial.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_failure_stops_the_run_until_its_member_is_back() {
    let Some(mut trial) = Trial::begin(&SCENARIOS[0]).await else {
        return;
    };
    // Until the old member is removed: two voters are left.
    while !matches!(
        trial.opened().progress().window,
        Some(window) if window.until.is_none()
    ) {
        let stopped = trial.run_once(PATIENT, Some(Stops::Each)).await;
        assert!(
            matches!(stopped, Err(ReplacementError::Interrupted)),
            "{stopped:?}"
        );
    }
    let names: Vec<_> = trial
        .platform
        .state()
        .servers
        .places
        .keys()
        .cloned()
        .collect();
    let second = names.into_iter().find(|name| *name != trial.old).unwrap();
    trial.platform.state().servers.signal(&second, "-STOP");
    let stopped = trial.run_once(IMPATIENT, None).await.unwrap_err();
    assert!(
        matches!(stopped, ReplacementError::TimedOut { .. }),
        "{stopped}"
    );
    assert!(stopped.to_string().contains("no voter"), "{stopped}");
    // The reason is in the journal.
    assert!(trial.opened().progress().stopped.is_some());
    trial.platform.state().servers.signal(&second, "-CONT");
    trial.complete(Stops::Each).await;
    trial.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_with_another_system_boots_after_a_stop_before_it() {
    let Some(mut trial) = Trial::begin(&SCENARIOS[2]).await else {
        return;
    };
    let new = trial.opened().progress().case.new.name.clone();
    {
        let mut state = trial.platform.state();
        state.power.insert(new.clone(), PowerState::On);
        state.others.insert(new);
    }
    while !trial
        .opened()
        .progress()
        .started
        .contains_key(&StepId::BootNode)
    {
        drop(trial.run_once(PATIENT, Some(Stops::Each)).await);
    }
    assert_eq!(trial.platform.state().boots, 0);
    trial.complete(Stops::At(usize::MAX)).await;
    trial.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_machines_that_claim_to_be_the_node_stop_the_run() {
    let Some(mut trial) = Trial::begin(&SCENARIOS[0]).await else {
        return;
    };
    while !trial
        .opened()
        .progress()
        .finished
        .contains_key(&StepId::BootNode)
    {
        drop(trial.run_once(PATIENT, Some(Stops::Each)).await);
    }
    until("the kubelet asks for a certificate", async || {
        let state = trial.platform.state();
        let has_asked = state.csrs.keys().any(|name| name.starts_with("csr-client"));
        has_asked.then_some(()).ok_or("it installs")
    })
    .await;
    let rival = client_request("rival", &trial.old);
    trial
        .platform
        .state()
        .csrs
        .insert("rival".to_owned(), rival);
    let stopped = trial.run_once(IMPATIENT, None).await.unwrap_err();
    let is_waiting = matches!(
        stopped,
        ReplacementError::TimedOut {
            step: StepId::JoinNode,
            ..
        }
    );
    assert!(is_waiting, "{stopped}");
    let progress = trial.opened().progress().clone();
    assert_eq!(progress.csrs.get("rival"), Some(&false));
    assert!(trial.platform.state().approved.is_empty());
    // A person finds out which machine is the node.
    trial.platform.state().csrs.remove("rival");
    trial.complete(Stops::At(usize::MAX)).await;
    trial.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_restores_the_settings() {
    let Some(mut trial) = Trial::begin(&SCENARIOS[0]).await else {
        return;
    };
    while !trial
        .opened()
        .progress()
        .finished
        .contains_key(&StepId::AllowRollout)
    {
        drop(trial.run_once(PATIENT, Some(Stops::Each)).await);
    }
    {
        let state = trial.platform.state();
        assert!(state.is_pool_paused && state.rollout_override == true);
    }
    let store = store(&trial.root);
    let mut replacement = store.resume(&trial.id).unwrap();
    let mut observer = |_: RunEvent<'_>, _: DateTime<Utc>| ControlFlow::Continue(());
    let world = trial.world(PATIENT);
    abort(&mut replacement, &store, world, &mut observer)
        .await
        .unwrap();
    {
        let state = trial.platform.state();
        assert!(!state.is_pool_paused && state.rollout_override.is_null());
    }
    let ended = run(&mut replacement, &store, world, &mut observer).await;
    assert!(
        matches!(
            ended,
            Err(ReplacementError::Ended(ReplacementState::Aborted))
        ),
        "{ended:?}"
    );
    let view = trial.cluster.observe().await.unwrap();
    assert!(view.member(trial.target).is_some());
    drop(store);
    trial.load.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_plan_shows_the_steps_and_closed_gates() {
    let Some(mut trial) = Trial::begin(&SCENARIOS[0]).await else {
        return;
    };
    let others = [];
    let planned = async |trial: &Trial| {
        let progress = trial.opened().progress().clone();
        let view = observe(&trial.world(PATIENT), Some(&progress.case))
            .await
            .unwrap();
        plan(&progress, &view, &others)
    };
    let first = planned(&trial).await;
    assert_eq!(first.closed, []);
    assert_eq!((first.voters.voters, first.fewest_voters), (3, 2));
    assert_eq!(first.steps[0].state, ReplacementStepState::Planned);
    // A healthy node keeps its place.
    let nodes: Vec<_> = trial.platform.state().nodes.keys().cloned().collect();
    let other = nodes.iter().find(|it| **it != trial.old);
    let healthy = request(other.unwrap(), None, true);
    let refused = trial.case(&healthy).await.unwrap_err();
    assert!(refused.contains("is healthy"), "{refused}");
    let unknown = trial
        .case(&request("control-9", None, false))
        .await
        .unwrap_err();
    let expected = CaseRefusal::UnknownNode {
        node: "control-9".to_owned(),
    };
    assert_eq!(unknown, expected.to_string());
    // The machine is turned on again before its member is removed.
    while !trial
        .opened()
        .progress()
        .finished
        .contains_key(&StepId::FenceNode)
    {
        drop(trial.run_once(PATIENT, Some(Stops::Each)).await);
    }
    let old = trial.old.clone();
    trial.platform.state().power.insert(old, PowerState::On);
    let stopped = trial.run_once(PATIENT, None).await.unwrap_err();
    let ReplacementError::Refused { step, refusals } = stopped else {
        panic!("{stopped}")
    };
    assert_eq!(step, StepId::RemoveMember);
    // A rollout may be under way as well.
    let second = planned(&trial).await;
    for refusals in [&refusals, &second.closed] {
        assert!(
            refusals.iter().any(|it| it.reason.contains("is on")),
            "{refusals:?}"
        );
    }
    let state = |step| {
        second
            .steps
            .iter()
            .find(|it| it.step == step)
            .unwrap()
            .state
    };
    assert_eq!(state(StepId::FenceNode), ReplacementStepState::Finished);
    assert_eq!(state(StepId::RemoveMember), ReplacementStepState::Planned);
    let entries = std::fs::read_to_string(trial.root.join(&trial.id).join("journal")).unwrap();
    assert!(
        entries.lines().last().unwrap().contains("\"stopped\""),
        "{entries}"
    );
    trial.load.finish().await;
}
