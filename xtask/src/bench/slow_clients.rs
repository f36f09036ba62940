//! Cost of thousands of slow clients for others: per public port, the latency of fresh clients before, during
//! and after the attack, and the memory of the server.

mod crowd;
mod probe;

use std::fs;
use std::net::Ipv4Addr;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, value_parser};

use self::crowd::{Attack, Crowd};
use self::probe::Probe;
use super::build::Build;
use super::process::{forget_peak, machine, peak_kib, resident_kib};
use super::table::ComparisonTable;
use crate::installation::Installation;
use crate::postgres;
use crate::scratch::{ScratchFolder, free_ports};

/// Units: ms. Budget of a fresh client's 99th percentile while the attack runs.
const BUDGET_P99_MS: f64 = 50.0;
/// Units: MiB. Budget of the server's memory growth.
const BUDGET_GROWTH_MIB: f64 = 64.0;
/// Ports that `atoll up` takes in a row.
const PORTS: u16 = 7;

/// Arguments of `bench slow-clients`.
#[derive(Debug, Args)]
pub(crate) struct SlowClientsArgs {
    /// Slow connections for each port
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u32).range(1..=15_000))]
    connections: u32,
    /// Addresses that they come from, all of them loopback
    #[arg(long, default_value_t = 250, value_parser = value_parser!(u32).range(1..=60_000))]
    addresses: u32,
    /// Requests of fresh clients, each on a connection of its own
    #[arg(long, default_value_t = 300, value_parser = value_parser!(u32).range(100..=10_000))]
    requests: u32,
    /// Build of the services
    #[arg(long, value_enum, default_value_t = Build::Shipped)]
    build: Build,
}

/// A public port, and the attacks on it.
struct AttackTarget {
    /// Its process in `atoll.json`.
    service: &'static str,
    /// Its offset in the row of ports.
    offset: u16,
    scheme: &'static str,
    attacks: &'static [Attack],
}

const PLAIN: &[Attack] = &[Attack::Idle, Attack::HalfHead, Attack::HalfBody];
/// With the longest response of an API server without content, also through the web UI.
const OF_API: &[Attack] = &[
    Attack::Idle,
    Attack::HalfHead,
    Attack::HalfBody,
    Attack::Unread("/api/assisted-install/v2/openapi"),
];

/// In the order of `atoll up --ports-from`; the database, first in the row, listens on a private address alone.
const TARGETS: &[AttackTarget] = &[
    AttackTarget {
        service: "registry",
        offset: 1,
        scheme: "https",
        attacks: &[Attack::Idle, Attack::HalfHandshake],
    },
    AttackTarget {
        service: "api-server",
        offset: 2,
        scheme: "http",
        attacks: OF_API,
    },
    AttackTarget {
        service: "image-service",
        offset: 3,
        scheme: "http",
        attacks: PLAIN,
    },
    AttackTarget {
        service: "webui",
        offset: 4,
        scheme: "http",
        attacks: OF_API,
    },
];

/// Attacks one port after the other and prints the results; exceeded budgets are marked and do not fail.
pub(crate) fn run(plan: &SlowClientsArgs) -> Result<ExitCode> {
    postgres::ensure_binaries()?;
    probe::ensure_curl()?;
    let programs = plan.build.services()?;
    let scratch = ScratchFolder::new()?;
    let settings = scratch.path().join("settings.env");
    fs::write(&settings, "")?;
    let first = free_ports(PORTS)?;
    let installation =
        Installation::start(&programs, scratch.path(), Some(first), Some(&settings))?;
    println!("{}", machine());
    println!(
        "{} slow connections from {} addresses, {} requests of fresh clients; ms are medians / 99th percentiles",
        plan.connections, plan.addresses, plan.requests
    );
    let columns = [
        "held", "before", "during", "after", "refused", "MiB", "growth",
    ];
    let mut table = ComparisonTable::new(columns.into_iter());
    for target in TARGETS {
        let pid = *(installation.state()?.pids)
            .get(target.service)
            .with_context(|| format!("{} does not run", target.service))?;
        let port = first + target.offset;
        for attack in target.attacks {
            let label = format!("{} {attack}", target.service);
            let attacks = std::slice::from_ref(attack);
            table.row(label, row(plan, target, port, pid, attacks)?);
        }
        let label = format!("{} all at once", target.service);
        table.row(label, row(plan, target, port, pid, target.attacks)?);
    }
    print!("{table}");
    println!("Budgets: 99th percentile {BUDGET_P99_MS} ms, growth {BUDGET_GROWTH_MIB} MiB");
    installation.stop()?;
    Ok(ExitCode::SUCCESS)
}

fn row(
    plan: &SlowClientsArgs,
    target: &AttackTarget,
    port: u16,
    pid: u32,
    attacks: &[Attack],
) -> Result<Vec<String>> {
    let probe = Probe::new(target.scheme, port, plan.requests);
    let before = probe.measure()?;
    let memory = resident_kib(pid).unwrap_or(0);
    forget_peak(pid);
    let crowd = Crowd::gather(
        (Ipv4Addr::LOCALHOST, port).into(),
        plan.connections,
        plan.addresses,
        attacks,
    )?;
    let held = crowd.size();
    let during = probe.measure()?;
    drop(crowd);
    let peak = peak_kib(pid).unwrap_or(0);
    let after = probe.measure()?;
    let mib = |kib: u32| f64::from(kib) / 1024.0;
    Ok(vec![
        held.to_string(),
        before.to_string(),
        mark(&during.to_string(), during.p99_ms > BUDGET_P99_MS),
        after.to_string(),
        (before.failed + during.failed + after.failed).to_string(),
        format!("{:.1}", mib(memory)),
        mark(
            &format!("{:.1}", mib(peak.saturating_sub(memory))),
            mib(peak.saturating_sub(memory)) > BUDGET_GROWTH_MIB,
        ),
    ])
}

/// Marks a figure over its budget.
fn mark(text: &str, is_over: bool) -> String {
    let mark = if is_over { "!" } else { "" };
    format!("{text}{mark}")
}
