//! Speed and memory of the registry, compared with the other servers that are installed.

mod content;
mod server;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum as _, value_parser};

use crate::apt;
use crate::scratch::ScratchFolder;
use content::BenchImage;
use server::{ServerKind, ServerProgram, ServerSecrets};
use workloads::{Bench, Contender, Workload};

use super::build;
use super::process::machine;
use super::table::ComparisonTable;

/// Load generators, in Debian packages of the same names.
const TOOLS: [&str; 3] = ["curl", "openssl", "wrk"];
const LIMIT: &str = "nginx, the limit, serves the same bytes as files, without passwords; pages that its processes \
                     share count for each.";
/// Cell of a number that has no meaning for a server.
const NONE: &str = "-";

/// Arguments of `bench registry`.
#[derive(Debug, Args)]
pub(crate) struct RegistryBenchArgs {
    /// Only these workloads
    #[arg(long, value_enum, num_args = 1.., value_name = "WORK")]
    only: Vec<Workload>,
    /// Seconds of each load
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    seconds: u32,
    /// How many repositories the workload of that name has, each of ten blobs
    #[arg(long, default_value_t = 2000, value_parser = value_parser!(u32).range(1..=10_000))]
    repositories: u32,
}

impl RegistryBenchArgs {
    fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    fn works(&self) -> impl Iterator<Item = Workload> {
        let all = Workload::value_variants().iter().copied();
        all.filter(|work| self.only.is_empty() || self.only.contains(work))
    }
}

/// Runs the benchmark and prints its results. Errors: a workload of our own registry; those of peers are printed.
pub(crate) fn run(plan: &RegistryBenchArgs) -> Result<ExitCode> {
    ensure_tools()?;
    let ours = ServerProgram::ours(&build::of_images()?);
    let scratch = ScratchFolder::new()?;
    let bench = Bench {
        plan,
        scratch: scratch.path(),
        image: BenchImage::new(),
    };
    let secrets = ServerSecrets::make(scratch.path())?;
    println!("Machine: {}", machine());
    let mut contenders = vec![contender(&bench, ours, &secrets)?];
    for kind in ServerKind::PEERS {
        let name = kind.name();
        match ServerProgram::find(kind).map(|peer| contender(&bench, peer, &secrets)) {
            Some(Ok(peer)) => contenders.push(peer),
            Some(Err(error)) => eprintln!("{name} is left out: {error:#}"),
            None => println!(
                "{name} is left out, as it is not installed: {}",
                kind.install()
            ),
        }
    }
    let mut table = ComparisonTable::new(contenders.iter().map(|one| one.program.kind.name()));
    println!("Works:");
    let mut is_whole = true;
    for work in plan.works() {
        let columns: Vec<_> = contenders
            .iter()
            .map(|contender| cells(work, &bench, contender))
            .collect();
        is_whole &= columns[0].is_some();
        for (index, label) in work.labels(plan).into_iter().enumerate() {
            let row = columns.iter().map(|column| match column {
                Some(cells) => cells[index].clone(),
                None => "failed".to_owned(),
            });
            table.row(label, row.collect());
        }
    }
    let plain = contenders.iter().map(|one| one.plain.memory());
    table.row("resident, idle / peak, MiB".to_owned(), plain.collect());
    let tls = contenders.iter().map(|one| one.tls.memory());
    table.row(
        "resident with TLS + auth, idle / peak, MiB".to_owned(),
        tls.collect(),
    );
    println!("\n{table}");
    if contenders
        .iter()
        .any(|one| one.program.kind == ServerKind::Nginx)
    {
        println!("{LIMIT}");
    }
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn ensure_tools() -> Result<()> {
    let missing: Vec<_> = TOOLS
        .into_iter()
        .filter(|name| !apt::is_program(name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    apt::install(&missing, "they make the load")
}

fn contender(
    bench: &Bench<'_>,
    program: ServerProgram,
    secrets: &ServerSecrets,
) -> Result<Contender> {
    println!("{}: {}", program.kind.name(), program.version()?);
    Contender::start(bench, program, secrets)
}

/// The numbers of a workload; `None` where it failed, with the error printed.
fn cells(work: Workload, bench: &Bench<'_>, contender: &Contender) -> Option<Vec<String>> {
    if !work.is_for(contender.program.kind) {
        let count = work.labels(bench.plan).len();
        return Some(vec![NONE.to_owned(); count]);
    }
    let name = contender.program.kind.name();
    work.measure(bench, contender)
        .inspect_err(|error| eprintln!("{name}: {error:#}"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_selected_by_name() {
        let mut plan = RegistryBenchArgs {
            only: vec![Workload::Push],
            seconds: 1,
            repositories: 1,
        };
        assert!(plan.works().eq([Workload::Push]));
        plan.only.clear();
        assert_eq!(plan.works().count(), Workload::value_variants().len());
    }
}
