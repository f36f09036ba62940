//! `host-sim`: simulated hosts on the command line.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use host_sim::args::{Cli, Mode, Simulate};
use host_sim::{Error, image, load};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let level = if cli.mode.is_some() {
        LevelFilter::WARN
    } else {
        LevelFilter::INFO
    };
    #[expect(clippy::disallowed_methods, reason = "there are no settings here")]
    let wanted = std::env::var("RUST_LOG").ok();
    let filter = wanted.and_then(|text| text.parse().ok());
    tracing_subscriber::registry()
        .with(fmt::layer().with_writer(std::io::stderr))
        .with(filter.unwrap_or_else(|| Targets::new().with_default(level)))
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
                "--iso or --bmcs is needed",
            )
            .exit(),
    };
    result.unwrap_or_else(|error| {
        tracing::error!("{}", error.chain());
        ExitCode::FAILURE
    })
}

async fn run(mut simulate: Simulate) -> Result<ExitCode, Error> {
    // The BMCs end with the machines.
    let (boot, _bmcs) = simulate.boot().await?;
    let plan = simulate.plan(boot)?;
    tracing::info!(url = plan.boot.url, infra_env = %plan.boot.infra_env_id, "booting the image");
    let outcome = host_sim::run(&plan, Arc::default()).await?;
    outcome.log();
    Ok(ExitCode::from(outcome.exit_code()))
}

#[expect(clippy::print_stdout, reason = "the answer of a command")]
fn print(value: &serde_json::Value) -> ExitCode {
    println!("{value:#}");
    ExitCode::SUCCESS
}
