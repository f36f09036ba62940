//! Speed and memory of the catalog server, compared with `opm serve` where that is installed.

mod content;
mod load;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, value_parser};

use super::build;
use super::disk::allocated;
use super::process::machine;
use super::table::ComparisonTable;
use crate::apt;
use crate::scratch::ScratchFolder;
use content::CatalogSample;
use load::{CALLS, GrpcCall};
use server::{CatalogProgram, CatalogServer};

/// Age of files after which a cache of them is trusted: younger ones may change within the same mtime.
const SETTLED: Duration = Duration::from_secs(4);

/// Arguments of `bench catalog`.
#[derive(Debug, Args)]
pub(crate) struct CatalogBenchArgs {
    /// Folder of a catalog with files in JSON; else one is made of the size of the largest public ones
    #[arg(long, value_name = "FOLDER")]
    catalog: Option<PathBuf>,
    /// Seconds of each load, about
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u64).range(1..))]
    seconds: u64,
}

/// Runs the benchmark and prints its results. Errors: a measurement of our own server; those of peers are printed.
pub(crate) fn run(plan: &CatalogBenchArgs) -> Result<ExitCode> {
    if !apt::is_program(load::TOOL) {
        apt::install(&[load::PACKAGE], "it makes the load")?;
    }
    let ours = CatalogProgram::ours(&build::of_images()?);
    let scratch = ScratchFolder::new()?;
    let folder = if let Some(folder) = &plan.catalog {
        folder.canonicalize()?
    } else {
        let folder = content::write(&scratch.path().join("catalog"))?;
        std::thread::sleep(SETTLED);
        folder
    };
    let sample = CatalogSample::find(&folder)?;
    println!("Machine: {}", machine());
    println!("Asked for: {sample}");
    let mut programs = vec![ours];
    match CatalogProgram::peer() {
        Some(peer) => programs.push(peer),
        None => println!("opm is left out, as it is not installed"),
    }
    let mut table = ComparisonTable::new(programs.iter().map(|program| program.name));
    let measured = programs.iter().map(|program| {
        let cache = scratch.path().join(program.name);
        let measured = measure(plan, &sample, program, &folder, &cache);
        measured.inspect_err(|error| eprintln!("{}: {error:#}", program.name))
    });
    let measured: Vec<_> = measured.map(Result::ok).collect();
    for (index, label) in labels().into_iter().enumerate() {
        let cells = measured.iter().map(|cells| match cells {
            Some(cells) => cells[index].clone(),
            None => "failed".to_owned(),
        });
        table.row(label, cells.collect());
    }
    println!("\n{table}");
    Ok(if measured[0].is_some() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn labels() -> Vec<String> {
    let calls = CALLS.iter().map(GrpcCall::label);
    ["start without a cache", "start with a cache"]
        .map(|start| format!("{start}: wall s / CPU s / peak MiB"))
        .into_iter()
        .chain(["resident / private after that, MiB".to_owned()])
        .chain(calls)
        .chain(["resident / private after all, MiB".to_owned()])
        .collect()
}

fn measure(
    plan: &CatalogBenchArgs,
    sample: &CatalogSample,
    program: &CatalogProgram,
    folder: &std::path::Path,
    cache: &std::path::Path,
) -> Result<Vec<String>> {
    println!("{}: {}", program.name, program.path.display());
    let mut cells = Vec::new();
    cells.push(CatalogServer::start(program, folder, cache)?.stop()?);
    let [files, cached] =
        [folder, cache].map(|folder| allocated(folder).map(|bytes| bytes / 1_000_000));
    println!("A catalog of {} MB has a cache of {} MB", files?, cached?);
    let server = CatalogServer::start(program, folder, cache)?;
    cells.push(server.costs()?);
    cells.push(server.memory());
    for call in CALLS {
        cells.push(call.measure(&server, sample, Duration::from_secs(plan.seconds))?);
    }
    cells.push(server.memory());
    Ok(cells)
}
