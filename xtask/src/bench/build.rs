//! The measured build of the services.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::cargo::{self, Profile};
use crate::{bundle, demo, images};

/// Names a folder of shipped programs that are measured as they are, such as those of a release; unset: they are built.
const PROGRAMS: &str = "BENCH_PROGRAMS";

/// A build of the program that runs all services.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Build {
    Dev,
    /// Static, with its own allocator: its memory differs from that of a program of the machine's libraries
    Shipped,
}

impl Build {
    /// The folder with the program.
    pub(super) fn services(self) -> Result<PathBuf> {
        match self {
            Self::Dev => tools(),
            Self::Shipped => shipped(&[bundle::PROGRAM]),
        }
    }
}

/// The folder with the services, each under its name, as images carry them.
pub(super) fn of_images() -> Result<PathBuf> {
    match given()? {
        Some(folder) => Ok(folder),
        None => images::shipped_services(),
    }
}

/// The folder with these programs, as they are shipped.
fn shipped(packages: &[&str]) -> Result<PathBuf> {
    match given()? {
        Some(folder) => Ok(folder),
        None => images::programs::build(packages, Profile::Dist),
    }
}

fn given() -> Result<Option<PathBuf>> {
    let folder = std::env::var_os(PROGRAMS).map(std::path::absolute);
    folder.transpose().context("the folder of shipped programs")
}

/// The simulator of hosts, quick to run: it shares the cores with the services whose durations it measures.
pub(super) fn load_generator() -> Result<PathBuf> {
    Ok(cargo::build(&["host-sim"], Profile::Release)?.join("host-sim"))
}

/// The folder with the programs that make content, which are not measured.
pub(super) fn tools() -> Result<PathBuf> {
    cargo::build(&demo::PACKAGES, Profile::Dev)
}
