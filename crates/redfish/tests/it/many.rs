//! Many BMCs: independent results, bounded concurrency, cancellation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use host_sim::bmc::{
    BMC_PROFILES, BmcBoot, BmcBootSource, BmcFault, BmcFaultRule, BmcHost, BmcRackPlan,
};
use redfish::{
    BmcError, BmcEvent, BmcRunner, BootJob, BootMedium, BootStep, FenceJob, FinishJob,
    InventoryJob, PowerAction, PowerJob, PowerState,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::lab::{IMAGE, Lab, hasty, patient};

fn medium() -> BootMedium {
    BootMedium::VirtualMedia {
        image: IMAGE.parse().unwrap(),
        size_bytes: None,
    }
}

/// BMCs of all families in turn.
fn mixed(count: usize) -> BmcRackPlan {
    let mut plan = BmcRackPlan::of(&BMC_PROFILES[0], 0);
    let profiles = BMC_PROFILES.iter().cycle().take(count);
    plan.bmcs = profiles
        .enumerate()
        .map(|(at, profile)| (profile, BmcHost::numbered(at)))
        .collect();
    plan
}

#[tokio::test]
async fn one_failure_concerns_its_own_host() {
    let boots = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&boots);
    let mut plan = mixed(40);
    plan.hook = Some(Arc::new(move |boot: &BmcBoot| {
        seen.lock().unwrap().push(boot.clone());
    }));
    let lab = Lab::start(plan, patient()).await;
    for (index, fault) in [
        (3, BmcFault::Status(401)),
        (8, BmcFault::Page),
        (16, BmcFault::Dropped),
        (24, BmcFault::Status(500)),
    ] {
        lab.rack.bmcs()[index].add_fault(BmcFaultRule::on("GET", "/Systems", fault));
    }
    let runner = BmcRunner::new(lab.connector.clone(), CancellationToken::new());
    let results = runner.run(lab.targets(), BootJob(medium())).await;
    let failed: Vec<_> = results
        .iter()
        .filter(|(_, it)| it.is_err())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(failed, ["host-3", "host-8", "host-16", "host-24"]);
    let names: Vec<_> = results.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(
        names,
        (0..40).map(|at| format!("host-{at}")).collect::<Vec<_>>()
    );
    let boots = boots.lock().unwrap();
    assert_eq!(boots.len(), 36);
    let image = BmcBootSource::VirtualCd(IMAGE.to_owned());
    assert!(boots.iter().all(|boot| boot.source == image));
    assert!(lab.rack.bmcs().iter().all(|bmc| bmc.open_sessions() == 0));
}

#[tokio::test]
async fn all_jobs_run_on_many() {
    let lab = Lab::start(mixed(8), patient()).await;
    let runner = BmcRunner::new(lab.connector.clone(), CancellationToken::new());
    let all = |count: usize| assert_eq!(count, 8);
    all(runner
        .run(lab.targets(), BootJob(medium()))
        .await
        .iter()
        .filter(|it| it.1.is_ok())
        .count());
    let finish = FinishJob { restarts: true };
    all(runner
        .run(lab.targets(), finish)
        .await
        .iter()
        .filter(|it| it.1.is_ok())
        .count());
    let disk =
        |bmc: &Arc<host_sim::bmc::SimulatedBmc>| bmc.boots().last() == Some(&BmcBootSource::Disk);
    assert!(lab.rack.bmcs().iter().all(disk));
    let finish = FinishJob { restarts: false };
    all(runner
        .run(lab.targets(), finish)
        .await
        .iter()
        .filter(|it| it.1.is_ok())
        .count());
    let off = runner.run(lab.targets(), FenceJob).await;
    all(off.iter().filter(|it| it.1.is_ok()).count());
    let on = runner.run(lab.targets(), PowerJob(PowerAction::On)).await;
    all(on
        .iter()
        .filter(|it| matches!(it.1, Ok(PowerState::On)))
        .count());
    let read = runner.run(lab.targets(), InventoryJob).await;
    all(read
        .iter()
        .filter(|it| it.1.as_ref().is_ok_and(|it| it.power == PowerState::On))
        .count());
}

#[tokio::test]
async fn hosts_report_their_steps() {
    let lab = Lab::start(mixed(3), hasty()).await;
    lab.rack.bmcs()[1].add_fault(BmcFaultRule::on("POST", "InsertMedia", BmcFault::NoEffect));
    let events: Arc<Mutex<BTreeMap<String, Vec<BmcEvent>>>> = Arc::default();
    let seen = Arc::clone(&events);
    let runner = BmcRunner::new(lab.connector.clone(), CancellationToken::new());
    let runner = runner.with_receiver(move |name, event| {
        seen.lock()
            .unwrap()
            .entry(name.to_owned())
            .or_default()
            .push(event);
    });
    lab.rack.bmcs()[1].set_power(host_sim::bmc::SimulatedPower::On);
    runner.run(lab.targets(), BootJob(medium())).await;
    let events = events.lock().unwrap();
    let good = &events["host-0"];
    assert_eq!(
        good[..2],
        [BmcEvent::Connecting, BmcEvent::Connected("standard")]
    );
    assert_eq!(good[2], BmcEvent::Step(BootStep::Check));
    assert_eq!(good.last(), Some(&BmcEvent::Done));
    let Some(BmcEvent::Failed(text)) = events["host-1"].last() else {
        panic!("{events:?}");
    };
    assert!(text.starts_with("insert the medium: "), "{text}");
    assert!(!text.contains("s3cret-token"), "{text}");
}

#[tokio::test]
async fn at_most_so_many_bmcs_are_served_at_a_time() {
    let lab = Lab::start(mixed(24), patient()).await;
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (at, peak) = (Arc::clone(&now), Arc::clone(&most));
    let permits = Arc::new(Semaphore::new(5));
    let runner = || {
        BmcRunner::new(lab.connector.clone(), CancellationToken::new())
            .with_permits(Arc::clone(&permits))
    };
    let receiver = move |_: &str, event| match event {
        BmcEvent::Connecting => {
            peak.fetch_max(at.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        }
        BmcEvent::Done | BmcEvent::Failed(_) => {
            at.fetch_sub(1, Ordering::SeqCst);
        }
        _ => {}
    };
    let (first, other) = (
        runner().with_receiver(receiver.clone()),
        runner().with_receiver(receiver),
    );
    let mut targets = lab.targets();
    let half = targets.split_off(12);
    let (results, others) = tokio::join!(
        first.run(targets, InventoryJob),
        other.run(half, InventoryJob)
    );
    let mut all = results.iter().chain(&others);
    assert!(all.all(|(_, result)| result.is_ok()));
    // The permit is given back just before the event.
    assert!((2..=10).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}

#[tokio::test]
async fn a_cancelled_run_ends_and_leaves_no_session() {
    let lab = Lab::start(mixed(12), patient()).await;
    for bmc in lab.rack.bmcs() {
        bmc.add_fault(BmcFaultRule::on(
            "GET",
            "/EthernetInterfaces",
            BmcFault::Silent,
        ));
    }
    let cancel = CancellationToken::new();
    let runner = BmcRunner::new(lab.connector.clone(), cancel.clone()).with_concurrency(6);
    let (connected, stop) = (Arc::new(AtomicUsize::new(0)), cancel.clone());
    let runner = runner.with_receiver(move |_, event| {
        let is_connected = matches!(event, BmcEvent::Connected(_));
        if is_connected && connected.fetch_add(1, Ordering::SeqCst) == 5 {
            stop.cancel();
        }
    });
    let results = runner.run(lab.targets(), InventoryJob).await;
    assert_eq!(results.len(), 12);
    assert!(
        results
            .iter()
            .all(|(_, result)| matches!(result, Err(BmcError::Cancelled)))
    );
    while lab.rack.bmcs().iter().any(|bmc| bmc.open_sessions() > 0) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_host_that_is_listed_twice_is_served_once() {
    let lab = Lab::start(mixed(2), patient()).await;
    let mut targets = lab.targets();
    let mut again = targets[0].clone();
    again.name = "again".to_owned();
    targets.push(again);
    let runner = BmcRunner::new(lab.connector.clone(), CancellationToken::new());
    let results = runner.run(targets, PowerJob(PowerAction::On)).await;
    assert!(results[0].1.is_ok() && results[1].1.is_ok());
    let Err(BmcError::Duplicate { first }) = &results[2].1 else {
        panic!("{results:?}");
    };
    assert_eq!(first, "host-0");
    assert_eq!(lab.bmc().boots().len(), 1);
}
