//! What the API server costs while hosts poll.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::json;

use super::process::{TICKS_PER_SECOND, cpu_ticks, resident_kib};
use crate::cargo::{Profile, build};
use crate::demo::{self, PACKAGES};
use crate::installation::{Installation, State};
use crate::scratch::{Scratch, free_ports};
use crate::{http, postgres};

const API_SERVER: &str = "api-server";
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// The budget of the API server, of one core.
const BUDGET_PERCENT: f64 = 5.0;

/// The load.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// How many hosts
    #[arg(long, default_value_t = 500)]
    hosts: u32,
    /// Seconds between two polls of a host
    #[arg(long, default_value_t = 60)]
    interval: u32,
    /// Seconds of polling that are measured
    #[arg(long, default_value_t = 120)]
    duration: u32,
}

/// Measures and prints.
pub(crate) fn run(load: &Load) -> Result<ExitCode> {
    postgres::ensure_binaries()?;
    let programs = build(&PACKAGES, Profile::Dist)?;
    let scratch = Scratch::new()?;
    let settings = scratch.path().join("settings.env");
    fs::write(&settings, "")?;
    let installation = Installation::start(
        &programs,
        scratch.path(),
        Some(free_ports(6)?),
        Some(&settings),
    )?;
    println!("Resident memory, idle:");
    print_memory(&installation.state()?);
    prepare_content(&programs, &installation, &settings)?;
    let infra_env = register_infra_env(&installation.state()?)?;
    let share = measure(&programs, &installation, &infra_env, load)?;
    println!("Resident memory, after the load:");
    print_memory(&installation.state()?);
    let (hosts, interval) = (load.hosts, load.interval);
    println!(
        "{hosts} hosts that poll every {interval} s cost the API server {share:.2} % of one core (budget {BUDGET_PERCENT} %)"
    );
    installation.stop()?;
    Ok(if share < BUDGET_PERCENT {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// An infra-env needs an OS image to be of a version of.
fn prepare_content(programs: &Path, installation: &Installation, settings: &Path) -> Result<()> {
    let before = installation.state()?.pids.get(API_SERVER).copied();
    let data = settings.with_file_name("");
    ensure!(
        demo::content(programs, &data)? == 0,
        "the content could not be made"
    );
    let made = settings.with_file_name("demo").join("settings.env");
    fs::copy(&made, settings).with_context(|| format!("copying {}", made.display()))?;
    // The services are started anew with the content.
    let deadline = Instant::now() + Duration::from_mins(2);
    while installation.state()?.pids.get(API_SERVER).copied() == before {
        ensure!(
            Instant::now() < deadline,
            "the API server was not started anew with the content"
        );
        std::thread::sleep(SAMPLE_INTERVAL / 10);
    }
    Ok(())
}

fn register_infra_env(state: &State) -> Result<String> {
    let url = format!("{}/api/assisted-install/v2/infra-envs", state.api_url);
    let pull_secret = r#"{"auths":{"registry.example:5000":{"auth":"YmVuY2g6YmVuY2g="}}}"#;
    let body = json!({ "name": "bench", "pull_secret": pull_secret, "cpu_architecture": "x86_64" });
    let deadline = Instant::now() + Duration::from_mins(1);
    let answer = loop {
        match http::post(&url, &body) {
            Ok(answer) => break answer,
            // It may still be starting.
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => std::thread::sleep(SAMPLE_INTERVAL / 10),
        }
    };
    let id = answer["id"].as_str().context("the infra-env has no id")?;
    Ok(id.to_owned())
}

/// The API server's share of one core over the last `duration` of the load, in percent.
fn measure(
    programs: &Path,
    installation: &Installation,
    infra_env: &str,
    load: &Load,
) -> Result<f64> {
    let state = installation.state()?;
    let pid = *state
        .pids
        .get(API_SERVER)
        .context("the API server does not run")?;
    let mut simulation = Command::new(programs.join("host-sim"))
        .args(["load", "--api", &state.api_url, "--infra-env", infra_env])
        .args([
            "--hosts",
            &load.hosts.to_string(),
            "--interval",
            &load.interval.to_string(),
        ])
        .args(["--duration", &load.duration.to_string()])
        .spawn()
        .context("starting host-sim")?;
    let mut samples = vec![(Instant::now(), cpu_ticks(pid)?)];
    let status = loop {
        std::thread::sleep(SAMPLE_INTERVAL);
        samples.push((Instant::now(), cpu_ticks(pid)?));
        if let Some(status) = simulation.try_wait()? {
            break status;
        }
    };
    ensure!(status.success(), "host-sim load: {status}");
    // The registration of all hosts comes first and is not what is asked.
    let window = Duration::from_secs(load.duration.into());
    share(&samples, window).context("the load ended before it could be measured")
}

/// Percent of one core over the last `window` of the samples.
fn share(samples: &[(Instant, u64)], window: Duration) -> Option<f64> {
    let (end, ticks_end) = samples.last()?;
    let (start, ticks_start) = samples
        .iter()
        .find(|(at, _)| end.duration_since(*at) <= window)?;
    let seconds = end.duration_since(*start).as_secs_f64();
    let ticks = u32::try_from(ticks_end.checked_sub(*ticks_start)?).ok()?;
    (seconds > 0.0).then(|| f64::from(ticks) / TICKS_PER_SECOND / seconds * 100.0)
}

fn print_memory(state: &State) {
    let mut ours = 0;
    let sizes: BTreeMap<_, _> = state
        .pids
        .iter()
        .map(|(name, pid)| (name, resident_kib(*pid)))
        .collect();
    for (name, size) in &sizes {
        match size {
            Some(kib) => println!("  {name:<14} {:>7.1} MiB", f64::from(*kib) / 1024.0),
            None => println!("  {name:<14} gone"),
        }
        if name.as_str() != "postgres" {
            ours += size.unwrap_or(0);
        }
    }
    println!("  without postgres {:>5.1} MiB", f64::from(ours) / 1024.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_window_counts() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let samples = [(at(0), 0), (at(10), 900), (at(20), 950)];
        let percent = share(&samples, Duration::from_secs(10)).unwrap();
        assert!((percent - 5.0).abs() < 1e-9, "{percent}");
        assert_eq!(share(&samples[..1], Duration::from_secs(10)), None);
    }
}
