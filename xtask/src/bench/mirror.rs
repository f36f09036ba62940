//! Cost of mirroring, compared with the other tools that are installed.

mod content;
mod registry;
mod run;
mod tool;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use clap::{Args, value_parser};

use crate::apt;
use crate::scratch::ScratchFolder;
use content::MirrorContent;
use registry::BenchRegistry;
use run::CommandCost;
use tool::{MirrorStep, Tool};

use super::build::{self, Build};
use super::disk::allocated;
use super::process::machine;
use super::table::ComparisonTable;

/// Cells of a step that a tool does not support, and of one that failed.
const NONE: &str = "-";
const FAILED: &str = "failed";

/// Arguments of `bench mirror`.
#[derive(Debug, Args)]
pub(crate) struct MirrorBenchArgs {
    /// Packages of the catalog, each with images of its own
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=1000))]
    packages: u32,
    /// Bundles of each package
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=100))]
    bundles: u32,
    /// Units: KiB. Of each bundle's own layer; those that bundles share are a third larger
    #[arg(long, default_value_t = 6 << 10, value_parser = value_parser!(u32).range(1..=1 << 20))]
    layer: u32,
}

/// The environment of a run of a tool.
#[derive(Debug)]
struct RunEnvironment<'a> {
    content: &'a MirrorContent,
    /// Folder that the tool may write to; empty at first.
    folder: &'a Path,
    /// The port of an empty registry.
    target: u16,
}

/// Runs the benchmark and prints its results. Errors: a failed step of our own tool; those of peers are printed.
pub(crate) fn run(plan: &MirrorBenchArgs) -> Result<ExitCode> {
    ensure_skopeo()?;
    let server = build::of_images()?.join("registry");
    let programs = Build::Shipped.services()?;
    let scratch = ScratchFolder::new()?;
    let ports = BenchRegistry::ports()?;
    let folder = scratch.path().join("source");
    let content = MirrorContent::write(plan, &folder, &format!("127.0.0.1:{}", ports.api))?;
    let source = BenchRegistry::start(&server, &folder, ports)?;
    println!("Machine: {}", machine());
    println!("To be mirrored: {content}");
    let mut copy = Command::new("cp");
    copy.arg("-r")
        .arg(folder)
        .arg(scratch.path().join("copied"));
    let limit = CommandCost::of(copy, &scratch.path().join("cp.log"))?;
    fs::remove_dir_all(scratch.path().join("copied"))?;
    println!("cp, which reads and writes each byte once: {limit}");
    let mut tools = vec![Tool::ours(&programs)];
    for tool in Tool::peers() {
        match tool {
            Ok(tool) => tools.push(tool),
            Err(reason) => println!("left out: {reason}"),
        }
    }
    let mut columns = Vec::new();
    for tool in &tools {
        println!("{}: {}", tool.kind.name(), tool.version()?);
        columns.push(column(tool, &content, &source, &server)?);
    }
    let mut table = ComparisonTable::new(tools.iter().map(|tool| tool.kind.name()));
    for step in MirrorStep::ALL {
        let cells = columns.iter().map(|column| {
            let row = column.iter().find(|(done, _)| *done == step);
            row.map_or(NONE.to_owned(), |(_, cell)| cell.clone())
        });
        table.row(step.label().to_owned(), cells.collect());
    }
    println!("\nwall s / CPU s / peak MiB / requests to the source, to the target\n{table}");
    let is_whole = columns[0].iter().all(|(_, cell)| cell != FAILED);
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn ensure_skopeo() -> Result<()> {
    if apt::is_program("skopeo") {
        return Ok(());
    }
    apt::install(&["skopeo"], "it is compared with")
}

/// Cost of each step that a tool supports.
fn column(
    tool: &Tool,
    content: &MirrorContent,
    source: &BenchRegistry,
    server: &Path,
) -> Result<Vec<(MirrorStep, String)>> {
    let scratch = ScratchFolder::new()?;
    let mut column = Vec::new();
    let mut target = None;
    for (number, step) in MirrorStep::ALL.into_iter().enumerate() {
        let folder = scratch.path().join(format!("target-{number}"));
        if step.is_to_new_target() {
            target = Some(BenchRegistry::start(
                server,
                &folder,
                BenchRegistry::ports()?,
            )?);
        }
        let place = RunEnvironment {
            content,
            folder: scratch.path(),
            target: target.as_ref().map_or(0, |target| target.ports.api),
        };
        let Some(command) = tool.command(step, &place)? else {
            continue;
        };
        let before = request_counts(source, target.as_ref())?;
        let cost = CommandCost::of(command, &scratch.path().join("tool.log"));
        let after = request_counts(source, target.as_ref())?;
        if step.is_to_new_target() {
            let megabytes = allocated(&folder)? / 1_000_000;
            let label = step.label();
            println!("{label}: the target's folder has {megabytes} MB");
        }
        let cell = match cost {
            Ok(cost) => format!("{cost} / {}, {}", after.0 - before.0, after.1 - before.1),
            Err(error) => {
                eprintln!("{}: {}: {error:#}", tool.kind.name(), step.label());
                FAILED.to_owned()
            }
        };
        column.push((step, cell));
    }
    Ok(column)
}

/// Request counts of both registries.
fn request_counts(source: &BenchRegistry, target: Option<&BenchRegistry>) -> Result<(u64, u64)> {
    let target = target.map_or(Ok(0), BenchRegistry::requests);
    let source = source.requests().context("asking the source")?;
    Ok((source, target.context("asking the target")?))
}
