//! The tasks, as the command line names them.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::{
    advisories, api_coverage, bench, bundle, codegen, db, ignition_corpus, images, test, tidy, up,
};

/// The tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) enum Task {
    /// Build and start everything on this machine; `--demo` shows the main job and ends
    Up(up::Arguments),
    /// Everything that must hold; the last line counts it
    Test(test::Arguments),
    /// Check the house's own rules
    Tidy(tidy::TidyArgs),
    /// Writes the generated files that are checked in: messages and descriptors of `proto/`, `docs/limits.md`
    Codegen,
    /// Asks Ignition's validator about the recorded configurations, and records its verdicts
    IgnitionCorpus,
    /// Which operations of the API are there
    ApiCoverage,
    /// Which dependencies have known vulnerabilities, by a committed snapshot of the RustSec database
    Advisories(advisories::Arguments),
    /// Container images of the services, small and the same for the same source
    Images(images::Arguments),
    /// What is carried to the disconnected host: the images, and the program that prepares it
    Bundle(bundle::Arguments),
    /// Measure
    #[command(subcommand)]
    Bench(bench::What),
    /// Data about the database that builds need
    #[command(subcommand)]
    Db(db::What),
}

impl Task {
    /// Does it.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self {
            Self::Up(arguments) => up::run(&arguments),
            Self::Test(arguments) => Ok(test::run(&arguments)),
            Self::Tidy(args) => tidy::run(&args),
            Self::Codegen => codegen::run(),
            Self::IgnitionCorpus => ignition_corpus::run(),
            Self::ApiCoverage => api_coverage::run(),
            Self::Advisories(arguments) => advisories::run(&arguments),
            Self::Images(arguments) => images::run(&arguments),
            Self::Bundle(arguments) => bundle::run(&arguments),
            Self::Bench(what) => bench::run(&what),
            Self::Db(what) => db::run(&what),
        }
    }
}
