//! Cost of the API server while hosts of clusters register, reply to their steps and poll.

mod changes;
mod requests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::build::{self, Build};
use super::disk::allocated;
use super::process::{TICKS_PER_SECOND, cpu_ticks, machine, resident_kib};
use crate::demo::{self, PORTS};
use crate::installation::{Installation, InstallationState};
use crate::scratch::{ScratchFolder, free_ports};
use crate::{http, postgres};

const API_SERVER: &str = "api-server";
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// The budget of the API server, of one core.
const BUDGET_PERCENT: f64 = 5.0;
/// Hosts that the budget is for.
const BUDGET_HOSTS: u32 = 500;
/// Maximum cost of the last registration relative to the first.
const REGISTRATION_RATIO: f64 = 1.5;

/// The load.
#[derive(Debug, Args)]
pub(crate) struct ApiBenchArgs {
    /// Numbers of hosts, each measured with an installation of its own
    #[arg(long, value_delimiter = ',', default_value = "10,100,500,1000,5000")]
    hosts: Vec<u32>,
    /// Hosts of one cluster at most
    #[arg(long, default_value_t = 100)]
    per_cluster: u32,
    /// Seconds between two polls of a host
    #[arg(long, default_value_t = 60)]
    interval: u32,
    /// Seconds of polling that are measured
    #[arg(long, default_value_t = 120)]
    duration: u32,
    /// Hosts that register to one cluster one after the other; 0 leaves that out
    #[arg(long, default_value_t = 5000)]
    registrations: u32,
    /// Build of the services
    #[arg(long, value_enum, default_value_t = Build::Shipped)]
    build: Build,
}

/// Cost of one number of hosts.
struct ApiCost {
    hosts: u32,
    clusters: u32,
    /// CPU time from the first registration until the first steps are answered. Units: seconds.
    arrival_s: f64,
    /// Percent of one core, while hosts poll and reply.
    share_percent: f64,
    resident_mib: f64,
    /// Growth of the database's files, without its log. Units: KiB per host.
    stored_kib: f64,
}

/// Runs the benchmark and prints its results.
pub(crate) fn run(load: &ApiBenchArgs) -> Result<ExitCode> {
    ensure!(load.per_cluster > 0, "--per-cluster has to be above 0");
    postgres::ensure_binaries()?;
    let (services, tools) = (load.build.services()?, build::tools()?);
    let host_sim = build::load_generator()?;
    let scratch = ScratchFolder::new()?;
    println!("{}", machine());
    let bench = Bench {
        services: &services,
        host_sim: &host_sim,
        folder: scratch.path(),
        settings: content(&tools, scratch.path())?,
        load,
    };
    let mut costs = Vec::new();
    for hosts in &load.hosts {
        costs.push(bench.measure(*hosts)?);
        // After each: an interrupted run has printed its measurements.
        print_costs(&costs, load);
    }
    if load.registrations > 0 {
        bench.registrations()?;
    }
    // The budget is of 500 hosts in clusters; smaller and larger numbers are printed beside it.
    let within = |cost: &ApiCost| cost.hosts > BUDGET_HOSTS || cost.share_percent < BUDGET_PERCENT;
    Ok(if costs.iter().all(within) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Makes an OS image and a release for clusters and infra-envs; returns the settings that name them.
///
/// The release goes to the registry of an installation that runs only for this: nothing that is measured reads it.
pub(super) fn content(tools: &Path, folder: &Path) -> Result<PathBuf> {
    let installation = Installation::start(tools, folder, Some(free_ports(PORTS)?), None)?;
    ensure!(
        demo::content(tools, folder)? == 0,
        "the content could not be made"
    );
    installation.stop()?;
    let settings = folder.join("demo").join("settings.env");
    let content = fs::read_to_string(folder.join("demo").join("content.json"))?;
    let content: Value = serde_json::from_str(&content)?;
    fs::write(&settings, lists(&content))?;
    // The hosts share one address: bounds per client would hit them together.
    let mut text = fs::read_to_string(&settings)?;
    for limit in [
        "MAX_CONNECTIONS",
        "MAX_CONNECTIONS_PER_CLIENT",
        "MAX_REQUESTS_PER_CLIENT",
    ] {
        writeln!(text, "{limit}=0")?;
    }
    fs::write(&settings, text)?;
    Ok(settings)
}

/// Settings that name the content, for services without its registry.
fn lists(content: &Value) -> String {
    let (release, live_iso) = (&content["releases"][0], &content["live_iso"]);
    let os_images = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94",
        "url": format!("file://{}", live_iso.as_str().unwrap_or_default()),
    }]);
    let releases = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "cpu_architectures": ["x86_64"],
        "url": release["image"], "version": release["version"], "default": true,
    }]);
    let image = release["image"].as_str().unwrap_or_default();
    let components = ["AGENT_DOCKER_IMAGE", "INSTALLER_IMAGE", "CONTROLLER_IMAGE"];
    let components = components.map(|name| format!("{name}={image}\n")).concat();
    format!("DUMMY_IGNITION=False\nOS_IMAGES={os_images}\nRELEASE_IMAGES={releases}\n{components}")
}

/// The context of every measurement.
struct Bench<'a> {
    /// Folder of the measured program.
    services: &'a Path,
    /// The load generator.
    host_sim: &'a Path,
    folder: &'a Path,
    settings: PathBuf,
    load: &'a ApiBenchArgs,
}

impl Bench<'_> {
    /// The data directory of a measurement.
    fn data(&self, hosts: u32) -> PathBuf {
        self.folder.join(format!("hosts-{hosts}"))
    }

    fn start(&self, data: &Path) -> Result<(Installation, InstallationState, u32)> {
        fs::create_dir_all(data).with_context(|| format!("making {}", data.display()))?;
        let ports = Some(free_ports(PORTS)?);
        let installation = Installation::start(self.services, data, ports, Some(&self.settings))?;
        let state = installation.state()?;
        let pid = state.pids.get(API_SERVER).copied();
        Ok((
            installation,
            state,
            pid.context("the API server does not run")?,
        ))
    }

    fn measure(&self, hosts: u32) -> Result<ApiCost> {
        let (installation, state, pid) = self.start(&self.data(hosts))?;
        println!("Resident memory before {hosts} hosts:");
        print_memory(&state);
        let stored = database_bytes(&self.data(hosts))?;
        let clusters = hosts.div_ceil(self.load.per_cluster);
        let infra_envs = (0..clusters)
            .map(|number| register(&state, number))
            .collect::<Result<Vec<_>>>()?;
        let before = cpu_ticks(pid)?;
        let samples = self.simulate(&state, pid, &infra_envs, hosts)?;
        let window = Duration::from_secs(self.load.duration.into());
        let share_percent =
            share(&samples, window).context("the load ended before it could be measured")?;
        let arrival = ticks_before(&samples, window).saturating_sub(before);
        println!("Resident memory after {hosts} hosts:");
        print_memory(&state);
        let resident_mib = f64::from(resident_kib(pid).unwrap_or(0)) / 1024.0;
        let stored = database_bytes(&self.data(hosts))?.saturating_sub(stored) >> 10;
        requests::print(&state)?;
        installation.stop()?;
        Ok(ApiCost {
            hosts,
            clusters,
            arrival_s: f64::from(u32::try_from(arrival)?) / TICKS_PER_SECOND,
            share_percent,
            resident_mib,
            stored_kib: f64::from(u32::try_from(stored)?) / f64::from(hosts.max(1)),
        })
    }

    /// CPU time of the API server, sampled while hosts register, reply and poll.
    fn simulate(
        &self,
        state: &InstallationState,
        pid: u32,
        infra_envs: &[String],
        hosts: u32,
    ) -> Result<Vec<(Instant, u64)>> {
        let mut command = Command::new(self.host_sim);
        command.args(["load", "--api", &state.api_url]);
        for infra_env in infra_envs {
            command.args(["--infra-env", infra_env]);
        }
        let mut simulation = command
            .args(["--hosts", &hosts.to_string()])
            .args(["--interval", &self.load.interval.to_string()])
            .args(["--duration", &self.load.duration.to_string()])
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
        Ok(samples)
    }

    /// Registers hosts one after the other to one cluster, and compares the cost of the first and the last.
    fn registrations(&self) -> Result<()> {
        let (installation, state, _) = self.start(&self.folder.join("registrations"))?;
        let infra_env = register(&state, 0)?;
        let url = format!(
            "{}/api/assisted-install/v2/infra-envs/{infra_env}/hosts",
            state.api_url
        );
        let mut durations = Vec::new();
        for number in 1..=self.load.registrations {
            let id = format!("00000000-0000-4000-8000-{number:012}");
            let started = Instant::now();
            http::post(
                &url,
                &json!({ "host_id": id, "discovery_agent_version": "bench" }),
            )?;
            durations.push(started.elapsed());
        }
        installation.stop()?;
        let count = durations.len();
        let (first, last) = (
            median(&durations[..count.min(50)]),
            median(&durations[count.saturating_sub(50)..]),
        );
        println!(
            "Registration to one cluster: hosts 1 to 50 take {:.2} ms, the last 50 of {count} {:.2} ms (medians), ratio {:.2} (bound {REGISTRATION_RATIO})",
            first.as_secs_f64() * 1000.0,
            last.as_secs_f64() * 1000.0,
            last.as_secs_f64() / first.as_secs_f64(),
        );
        Ok(())
    }
}

fn median(durations: &[Duration]) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Registers a cluster, and the infra-env whose hosts join it.
pub(super) fn register(state: &InstallationState, number: u32) -> Result<String> {
    let base = format!("{}/api/assisted-install/v2", state.api_url);
    let pull_secret = r#"{"auths":{"registry.example:5000":{"auth":"YmVuY2g6YmVuY2g="}}}"#;
    let cluster = json!({
        "name": format!("bench-{number}"), "base_dns_domain": "example.com", "pull_secret": pull_secret,
        "openshift_version": version(&base)?,
    });
    let cluster = post(&format!("{base}/clusters"), &cluster)?;
    let infra_env = json!({
        "name": format!("bench-{number}"), "pull_secret": pull_secret, "cpu_architecture": "x86_64",
        "cluster_id": cluster["id"],
    });
    let infra_env = post(&format!("{base}/infra-envs"), &infra_env)?;
    let id = infra_env["id"]
        .as_str()
        .context("the infra-env has no id")?;
    Ok(id.to_owned())
}

/// The version of the content's release.
fn version(base: &str) -> Result<String> {
    let versions = http::get(&format!("{base}/openshift-versions"))?;
    let versions = versions.as_object().context("the versions are not a map")?;
    let first = versions
        .keys()
        .next()
        .context("no version can be installed")?;
    Ok(first.clone())
}

/// Posts, with retries while the server starts.
fn post(url: &str, body: &Value) -> Result<Value> {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        match http::post(url, body) {
            Err(_) if Instant::now() < deadline => std::thread::sleep(SAMPLE_INTERVAL / 10),
            answer => return answer,
        }
    }
}

fn print_costs(costs: &[ApiCost], load: &ApiBenchArgs) {
    let interval = load.interval;
    println!("CPU of the API server while hosts poll every {interval} s and reply to their steps:");
    println!(
        "  hosts  clusters  arrival CPU s  of one core  CPU ms/host/min  resident MiB  database KiB/host"
    );
    for cost in costs {
        let per_host = cost.share_percent / 100.0 * 60_000.0 / f64::from(cost.hosts.max(1));
        println!(
            "  {:>5}  {:>8}  {:>13.1}  {:>9.2} %  {per_host:>15.2}  {:>12.1}  {:>17.1}",
            cost.hosts,
            cost.clusters,
            cost.arrival_s,
            cost.share_percent,
            cost.resident_mib,
            cost.stored_kib
        );
    }
    println!("  (budget of {BUDGET_HOSTS} hosts and fewer: {BUDGET_PERCENT} % of one core)");
}

/// Size of the files of all tables and indexes in a data directory.
fn database_bytes(data: &Path) -> Result<u64> {
    // Also the template databases, which do not grow.
    allocated(&data.join("postgres/data/base"))
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

/// Ticks at the start of the last `window` of the samples.
fn ticks_before(samples: &[(Instant, u64)], window: Duration) -> u64 {
    let Some((end, _)) = samples.last() else {
        return 0;
    };
    let inside = samples
        .iter()
        .find(|(at, _)| end.duration_since(*at) <= window);
    inside.map_or(0, |(_, ticks)| *ticks)
}

fn print_memory(state: &InstallationState) {
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
        assert_eq!(ticks_before(&samples, Duration::from_secs(10)), 900);
    }
}
