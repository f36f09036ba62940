//! Speed and memory of the static files, beside nginx where it is installed.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, value_parser};

use super::build;
use super::client::load;
use super::file_server::BenchServer;
use super::process::machine;
use super::table::ComparisonTable;
use crate::scratch::{ScratchFolder, free_ports};

const OURS: &str = "proxy";
const SMALL: &str = "/small.yaml";
const LARGE: &str = "/large.iso";
/// Units: bytes.
const SMALL_LENGTH: usize = 1024;
/// Clients of small requests: enough to keep each processor busy.
const SMALL_CLIENTS: u32 = 8;
/// Written at once. Units: bytes.
const BLOCK: usize = 1 << 20;

/// Arguments of `bench files`.
#[derive(Debug, Args)]
pub(crate) struct FilesBenchArgs {
    /// Numbers of clients that read the large file at once
    #[arg(long, value_delimiter = ',', default_value = "1,8")]
    clients: Vec<u32>,
    /// Entries of each listing
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000")]
    entries: Vec<u32>,
    /// Size of the large file
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = value_parser!(u32).range(1..))]
    size: u32,
    /// Seconds of each load
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u32).range(1..))]
    seconds: u32,
    /// Runs of each load, of which the best counts: other programs use the processors, too
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
}

/// Runs the benchmark and prints its results.
pub(crate) fn run(plan: &FilesBenchArgs) -> Result<ExitCode> {
    let programs = build::of_images()?;
    let scratch = ScratchFolder::new()?;
    let root = scratch.path().join("files");
    content(plan, &root)?;
    println!("{}", machine());
    let mut servers = vec![ours(&programs.join(OURS), &root)?];
    servers.extend(BenchServer::nginx(scratch.path(), &root, SMALL)?);
    let mut table = ComparisonTable::new(servers.iter().map(|server| server.name));
    let small = format!("file of {SMALL_LENGTH} bytes, {SMALL_CLIENTS} clients");
    rows(
        plan,
        &servers,
        &small,
        "requests/s",
        &mut table,
        &|server| requests(plan, server, SMALL),
    )?;
    for entries in &plan.entries {
        let label = format!("listing of {entries} entries, {SMALL_CLIENTS} clients");
        let path = format!("/{entries}/");
        rows(
            plan,
            &servers,
            &label,
            "requests/s",
            &mut table,
            &|server| requests(plan, server, &path),
        )?;
    }
    for clients in &plan.clients {
        let label = format!("file of {} MiB, {clients} clients", plan.size);
        rows(plan, &servers, &label, "MB/s", &mut table, &|server| {
            whole_reads(plan, server, *clients)
        })?;
    }
    print!("{table}");
    Ok(ExitCode::SUCCESS)
}

fn content(plan: &FilesBenchArgs, root: &Path) -> Result<()> {
    fs::create_dir_all(root)?;
    fs::write(root.join(&SMALL[1..]), vec![b'x'; SMALL_LENGTH])?;
    for entries in &plan.entries {
        let folder = root.join(entries.to_string());
        fs::create_dir(&folder)?;
        for number in 0..*entries {
            let name = format!("mirror_seq1_{number:06}.tar");
            fs::write(folder.join(name), vec![b'x'; number as usize])?;
        }
    }
    let mut large = File::create(root.join(&LARGE[1..]))?;
    let block = vec![7; BLOCK];
    for _ in 0..plan.size {
        large.write_all(&block).context("writing the large file")?;
    }
    Ok(())
}

fn ours(program: &Path, root: &Path) -> Result<BenchServer> {
    let ports = free_ports(3)?;
    let mut command = Command::new(program);
    command
        .env("LISTEN_ADDRESS", "127.0.0.1")
        .env("FORWARDS", format!("{}=http://127.0.0.1:9", ports + 1))
        .env("PROXY_STATUS_PORT", (ports + 2).to_string())
        .env("FILES_PORT", ports.to_string())
        .env("FILES_ROOT", root)
        .env("TZ", "UTC");
    BenchServer::start(OURS, command, ports, SMALL)
}

/// Work a second of each server, and its processor time and memory.
fn rows(
    plan: &FilesBenchArgs,
    servers: &[BenchServer],
    label: &str,
    unit: &str,
    table: &mut ComparisonTable,
    work: &dyn Fn(&BenchServer) -> Result<(f64, f64)>,
) -> Result<()> {
    let mut best: Vec<Option<(f64, f64, f64)>> = vec![None; servers.len()];
    // Alternating: a load of the machine by others hits all servers.
    for _ in 0..plan.rounds {
        for (server, best) in servers.iter().zip(&mut best) {
            let cost = server.cost(|| work(server))?;
            let (done, seconds) = cost.result;
            let measured = (done / seconds, cost.cpu / done * 1000.0, cost.peak);
            let is_better = best.is_none_or(|(rate, ..)| rate < measured.0);
            if is_better {
                *best = Some(measured);
            }
        }
    }
    let cells = |cell: fn((f64, f64, f64)) -> String| -> Vec<String> {
        best.iter()
            .map(|best| best.map_or_else(String::new, cell))
            .collect()
    };
    let cpu = if unit == "MB/s" {
        "CPU s a GB"
    } else {
        "CPU ms a request"
    };
    table.row(
        format!("{label}, {unit}"),
        cells(|(rate, ..)| format!("{rate:.0}")),
    );
    table.row(format!("  {cpu}"), cells(|(_, cpu, _)| format!("{cpu:.3}")));
    table.row(
        "  peak MiB".to_owned(),
        cells(|(.., peak)| format!("{peak:.1}")),
    );
    Ok(())
}

/// Requests, and seconds.
fn requests(plan: &FilesBenchArgs, server: &BenchServer, path: &str) -> Result<(f64, f64)> {
    let duration = Duration::from_secs(plan.seconds.into());
    let (requests, seconds) = load(server.port, SMALL_CLIENTS, duration, |client, _, _| {
        client.ask("GET", path, &[], b"", 200).map(drop)
    })?;
    Ok((requests.into(), seconds))
}

/// Megabytes, and seconds.
fn whole_reads(plan: &FilesBenchArgs, server: &BenchServer, clients: u32) -> Result<(f64, f64)> {
    let duration = Duration::from_secs(plan.seconds.into());
    let bytes = AtomicU64::new(0);
    let (_, seconds) = load(server.port, clients, duration, |client, _, _| {
        bytes.fetch_add(client.drain(LARGE)?, Relaxed);
        Ok(())
    })?;
    let megabytes = u32::try_from(bytes.into_inner() / 1_000_000)?;
    Ok((megabytes.into(), seconds))
}
