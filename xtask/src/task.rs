//! The command line of the tasks.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::{
    advisories, bench, bundle, butane_corpus, codegen, db, ignition_corpus, images, test, tidy, up,
    web,
};

/// The tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) enum Task {
    /// Build and start everything on this machine; `--demo` shows the main job and ends
    Up(up::UpArgs),
    /// Run all checks; the last line counts them
    Test(test::TestArgs),
    /// Check the house's own rules
    Tidy(tidy::TidyArgs),
    /// Write the generated files that are checked in: messages and descriptors of `proto/`, `docs/limits.md`
    Codegen,
    /// Run Ignition's validator on the recorded configurations, and record its verdicts
    IgnitionCorpus,
    /// Run the real butane on the inputs of the corpus, and record its answers
    ButaneCorpus,
    /// List dependencies with known vulnerabilities, by a committed snapshot of the RustSec database
    Advisories(advisories::AdvisoriesArgs),
    /// Build the pages of the web UI
    Web,
    /// Build container images of the services, small and reproducible
    Images(images::ImagesArgs),
    /// Write the bundle for the disconnected host: the images, and the program that prepares it
    Bundle(bundle::BundleArgs),
    /// Run a benchmark
    #[command(subcommand)]
    Bench(bench::BenchTask),
    /// Maintain data about the database that builds need
    #[command(subcommand)]
    Db(db::DbTask),
}

impl Task {
    /// Runs it.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self {
            Self::Up(arguments) => up::run(&arguments),
            Self::Test(arguments) => Ok(test::run(&arguments)),
            Self::Tidy(args) => tidy::run(&args),
            Self::Codegen => codegen::run(),
            Self::IgnitionCorpus => ignition_corpus::run(),
            Self::ButaneCorpus => butane_corpus::run(),
            Self::Advisories(arguments) => advisories::run(&arguments),
            Self::Web => web::run(),
            Self::Images(arguments) => images::run(&arguments),
            Self::Bundle(arguments) => bundle::run(&arguments),
            Self::Bench(what) => bench::run(&what),
            Self::Db(what) => db::run(&what),
        }
    }
}
