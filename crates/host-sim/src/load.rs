//! Load test of the API server with many hosts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::args::LoadArgs;
use crate::sim::{self, SimulationOutcome};
use crate::{Connections, Error, SimulationPlan, Stats};

/// Silence after which the first replies are complete.
const SETTLE_TIME: Duration = Duration::from_secs(3);
/// Timeout of the settling: hosts whose replies always change never settle.
const SETTLE_LIMIT: Duration = Duration::from_mins(1);
/// The kind of a registration's request.
const REGISTER: &str = "register";

/// Registers all hosts, polls for the configured time and reports durations and failures.
///
/// Errors: as [`sim::run`]; an agent that freezes ends the run early and is reported.
pub async fn run(load: &LoadArgs) -> Result<Value, Error> {
    let connections = Arc::new(Connections::default());
    let stats = &connections.stats;
    let plans = load.plans()?;
    let simulation = tokio::spawn({
        let connections = Arc::clone(&connections);
        async move { run_all(plans, connections).await }
    });
    let started = Instant::now();
    while stats.count(REGISTER) < load.hosts && !simulation.is_finished() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let registration = started.elapsed();
    settle(stats, load.hosts).await;
    let arrival = stats.take_durations();
    if !simulation.is_finished() {
        tokio::time::sleep(Duration::from_secs_f64(load.duration.clamp(0.0, 86_400.0))).await;
    }
    let mut report = json!({
        "hosts": load.hosts,
        "registered": arrival.get(REGISTER).map_or(0, Vec::len),
        "registration_seconds": registration.as_secs_f64(),
        "arrival": requests(&arrival),
        "duration": requests(&stats.take_durations()),
        "failures": stats.failures(),
    });
    if simulation.is_finished() {
        let outcome = simulation
            .await
            .map_err(|e| Error::invalid("load", e.to_string()))??;
        report["frozen"] = json!(outcome.frozen.len());
        report["first_reason"] = json!(outcome.frozen.first().map(|(_, why)| why));
    } else {
        simulation.abort();
    }
    Ok(report)
}

/// Runs all plans concurrently; the first that ends, ends all.
async fn run_all(
    plans: Vec<SimulationPlan>,
    connections: Arc<Connections>,
) -> Result<SimulationOutcome, Error> {
    let mut running = JoinSet::new();
    for plan in plans {
        let connections = Arc::clone(&connections);
        running.spawn(async move { sim::run(&plan, connections).await });
    }
    match running.join_next().await {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => Err(Error::invalid("load", error.to_string())),
        None => Ok(SimulationOutcome::default()),
    }
}

/// Waits for the steady state: every host has polled once, and the first replies are complete.
async fn settle(stats: &Stats, hosts: usize) {
    let (mut replies, mut changed) = (0, Instant::now());
    let started = Instant::now();
    while started.elapsed() < SETTLE_LIMIT {
        let now = stats.count("reply");
        if now != replies {
            (replies, changed) = (now, Instant::now());
        }
        if stats.count("instructions") >= hosts && changed.elapsed() >= SETTLE_TIME {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn requests(durations: &std::collections::BTreeMap<&'static str, Vec<u32>>) -> Value {
    let entry = |list: &Vec<u32>| {
        let at = |share: usize| {
            list.get((list.len() * share / 1000).min(list.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0)
        };
        json!({ "count": list.len(), "p50_us": at(500), "p99_us": at(990), "max_us": at(1000) })
    };
    durations
        .iter()
        .map(|(kind, list)| ((*kind).to_owned(), entry(list)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
