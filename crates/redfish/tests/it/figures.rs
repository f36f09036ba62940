//! Figures: many BMCs at a time. Printed, since a busy machine is no failure; run with `--nocapture`.

use std::time::{Duration, Instant};

use host_sim::bmc::{BMC_PROFILES, BmcHost, BmcPace, BmcRackPlan};
use redfish::{BmcRunner, BootJob, BootMedium, InventoryJob};
use tokio_util::sync::CancellationToken;

use crate::lab::{IMAGE, Lab, patient};

/// Times of a fast BMC, a tenth of real ones.
const PACE: BmcPace = BmcPace {
    request: Duration::from_millis(15),
    power: Duration::from_millis(400),
    task: Duration::from_millis(500),
};

async fn boot(count: usize) -> Duration {
    let mut plan = BmcRackPlan::of(&BMC_PROFILES[0], count);
    plan.pace = PACE;
    let lab = Lab::start(plan, patient()).await;
    let runner = BmcRunner::new(lab.connector.clone(), CancellationToken::new());
    let medium = BootMedium::VirtualMedia {
        image: IMAGE.parse().unwrap(),
        size_bytes: None,
    };
    let started = Instant::now();
    let results = runner.run(lab.targets(), BootJob(medium)).await;
    let time = started.elapsed();
    assert!(results.iter().all(|(_, result)| result.is_ok()));
    assert!(lab.rack.bmcs().iter().all(|bmc| bmc.boots().len() == 1));
    time
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rack_boots_by_virtual_media() {
    let (one, many) = (boot(1).await, boot(32).await);
    let ratio = many.as_secs_f64() / one.as_secs_f64();
    println!("one BMC {one:.2?}, 32 BMCs {many:.2?}: {ratio:.2} times");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_inventories_are_read() {
    let mut plan = BmcRackPlan::of(&BMC_PROFILES[0], 0);
    let profiles = BMC_PROFILES.iter().cycle().take(1000);
    plan.bmcs = profiles
        .enumerate()
        .map(|(at, profile)| (profile, BmcHost::numbered(at)))
        .collect();
    let lab = Lab::start(plan, patient()).await;
    let runner = BmcRunner::new(lab.connector.clone(), CancellationToken::new());
    let started = Instant::now();
    let results = runner.run(lab.targets(), InventoryJob).await;
    println!("1000 inventories in {:.2?}", started.elapsed());
    assert_eq!(
        results.iter().filter(|(_, result)| result.is_ok()).count(),
        1000
    );
    let macs: std::collections::BTreeSet<_> = results
        .into_iter()
        .flat_map(|(_, result)| result.unwrap().nics)
        .map(|nic| nic.mac)
        .collect();
    assert_eq!(macs.len(), 2000);
}
