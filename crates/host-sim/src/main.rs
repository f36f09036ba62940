//! `host-sim`: simulated hosts on the command line.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use host_sim::args::{Cli, Mode, Simulate};
use host_sim::{Error, Stats, image, load};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let level = if cli.mode.is_some() { "warn" } else { "info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let result = match (cli.mode, cli.simulate) {
        (Some(Mode::Load(load)), _) => load::run(&load).await.map(|report| print(&report)),
        (Some(Mode::Ignition { iso }), _) => {
            image::embedded_ignition(&iso).map(|config| print(&config))
        }
        (None, Some(simulate)) => run(simulate).await,
        (None, None) => Cli::command()
            .error(
                clap::error::ErrorKind::MissingRequiredArgument,
                "--iso is needed",
            )
            .exit(),
    };
    result.unwrap_or_else(|error| {
        tracing::error!("{}", error.chain());
        ExitCode::FAILURE
    })
}

async fn run(simulate: Simulate) -> Result<ExitCode, Error> {
    let plan = simulate.plan()?;
    tracing::info!(url = plan.boot.url, infra_env = %plan.boot.infra_env_id, "booting the image");
    let outcome = host_sim::run(&plan, Arc::new(Stats::default())).await?;
    outcome.log();
    Ok(ExitCode::from(outcome.exit_code()))
}

#[expect(clippy::print_stdout, reason = "the answer of a command")]
fn print(value: &serde_json::Value) -> ExitCode {
    println!("{value:#}");
    ExitCode::SUCCESS
}
