//! The main job on real input: services start, content is made, a cluster is installed.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::cargo::{Profile, root};
use crate::command::shown;
use crate::installation::Installation;
use crate::postgres;
use crate::scratch::{ScratchFolder, free_ports};

/// Ports of an `atoll up`.
pub(crate) const PORTS: u16 = 7;
/// Programs of the demo, by package.
pub(crate) const PACKAGES: [&str; 3] = ["atoll", "host-sim", "testkit"];

/// Injected faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Break {
    /// A host has too little memory
    Ram,
    /// The registry is stopped before the installation
    Registry,
}

impl Break {
    /// The demo's spelling of it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ram => "ram",
            Self::Registry => "registry",
        }
    }
}

/// Builds the programs and runs the demo on `data`, or on a temporary folder; returns the demo's exit code.
pub(crate) fn run(
    data: Option<&Path>,
    ports_from: Option<u16>,
    broken: Option<Break>,
    profile: Profile,
) -> Result<ExitCode> {
    postgres::ensure_binaries()?;
    let programs = crate::cargo::build(&PACKAGES, profile)?;
    let scratch = data.is_none().then(ScratchFolder::new).transpose()?;
    let data = match (data, &scratch) {
        (Some(data), _) => std::path::absolute(data)?,
        (None, Some(scratch)) => scratch.path().to_owned(),
        (None, None) => bail!("there is no data directory"),
    };
    let ports = match ports_from {
        Some(port) => port,
        None => free_ports(PORTS)?,
    };
    // The services start before there is content, and watch this file.
    let settings = data.join("demo/settings.env");
    fs::create_dir_all(data.join("demo"))
        .with_context(|| format!("making {}/demo", data.display()))?;
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&settings)?;
    let installation = Installation::start(&programs, &data, Some(ports), Some(&settings))?;
    let mut code = content(&programs, &data)?;
    if code == 0 {
        code = journey(&programs, &installation, broken)?;
    }
    installation.stop()?;
    Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Makes the live image and the release, and the settings that name them; returns the exit code.
pub(crate) fn content(programs: &Path, data: &Path) -> Result<i32> {
    finish(
        Command::new(programs.join("demo"))
            .arg("content")
            .arg("--data")
            .arg(data),
    )
}

/// Installs a new cluster; returns the exit code.
fn journey(programs: &Path, installation: &Installation, broken: Option<Break>) -> Result<i32> {
    let mut command = Command::new(programs.join("demo"));
    command
        .args(["run", "--state"])
        .arg(installation.state_file());
    if let Some(broken) = broken {
        command.args(["--break", broken.as_str()]);
    }
    finish(&mut command)
}

fn finish(command: &mut Command) -> Result<i32> {
    let shown = shown(command);
    // Cached tools are searched for below the workspace.
    let status = command
        .current_dir(root())
        .status()
        .with_context(|| format!("running {shown}"))?;
    status
        .code()
        .with_context(|| format!("{shown} was ended ({status})"))
}
