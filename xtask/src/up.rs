//! `cargo xtask up`.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, anyhow};
use clap::Args;

use crate::cargo::{Profile, build};
use crate::demo::{self, Break};
use crate::images;
use crate::postgres;
use crate::web::{self, STATIC_ROOT};

/// Arguments of `up`.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Data directory; the demo uses a temporary one
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Use seven ports from N; the demo finds free ones
    #[arg(long, value_name = "N")]
    ports_from: Option<u16>,
    /// File with NAME=value lines for the services
    #[arg(long, value_name = "FILE", conflicts_with = "demo")]
    env_file: Option<PathBuf>,
    /// Install a cluster on simulated hosts, and exit
    #[arg(long)]
    demo: bool,
    /// Inject a fault into the demo
    #[arg(long = "break", value_name = "WHAT", requires = "demo")]
    broken: Option<Break>,
    /// Build the discovery agent, too: infra-envs may have `embedded_agent`
    #[arg(long, conflicts_with = "demo")]
    agent: bool,
    /// Build optimised programs
    #[arg(long)]
    release: bool,
}

/// Builds and starts everything; does not return without `--demo`.
pub(crate) fn run(arguments: &UpArgs) -> Result<ExitCode> {
    let profile = if arguments.release {
        Profile::Release
    } else {
        Profile::Dev
    };
    if arguments.demo {
        return demo::run(
            arguments.data.as_deref(),
            arguments.ports_from,
            arguments.broken,
            profile,
        );
    }
    postgres::ensure_binaries()?;
    let programs = build(&["atoll"], profile)?;
    if arguments.agent {
        // Static and small, as shipped: it runs on hosts.
        let shipped = images::shipped_agent()?;
        let target = programs.join(images::agent_name());
        std::fs::copy(shipped, &target)?;
    }
    let mut command = Command::new(programs.join("atoll"));
    command.arg("up");
    if std::env::var_os(STATIC_ROOT).is_none() {
        match web::build() {
            Ok(pages) => {
                command.env(STATIC_ROOT, pages);
            }
            Err(error) => {
                println!("The web UI cannot be built, its status page remains: {error:#}");
            }
        }
    }
    if let Some(data) = &arguments.data {
        command.arg("--data").arg(data);
    }
    if let Some(port) = arguments.ports_from {
        command.args(["--ports-from", &port.to_string()]);
    }
    if let Some(path) = &arguments.env_file {
        command.arg("--env-file").arg(path);
    }
    // The terminal, its signals and the exit code belong to atoll from here on.
    Err(anyhow!(command.exec()).context("starting atoll up"))
}
