//! What people and CI run: `cargo xtask up`, `cargo xtask test` and the smaller tasks.
//!
//! No production code is here, and nothing of the services is linked: they are built and run as programs.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for the terminal"
)]

mod api_coverage;
mod apt;
mod bench;
mod bundle;
mod cargo;
mod codegen;
mod command;
mod db;
mod demo;
mod http;
mod images;
mod installation;
mod libtest;
mod postgres;
mod scratch;
mod test;
mod tidy;
mod up;

use std::process::ExitCode;

use clap::Parser;

/// The tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Build and start everything on this machine; `--demo` shows the main job and ends
    Up(up::Arguments),
    /// Everything that must hold; the last line counts it
    Test(test::Arguments),
    /// The house's own rules
    Tidy,
    /// Writes anew what is generated and checked in: messages and descriptors of `proto/`
    Codegen,
    /// Which operations of the API are there
    ApiCoverage,
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

fn main() -> ExitCode {
    let done = cargo::check_version().and_then(|()| match Task::parse() {
        Task::Up(arguments) => up::run(&arguments),
        Task::Test(arguments) => Ok(test::run(&arguments)),
        Task::Tidy => tidy::run(),
        Task::Codegen => codegen::run(),
        Task::ApiCoverage => api_coverage::run(),
        Task::Images(arguments) => images::run(&arguments),
        Task::Bundle(arguments) => bundle::run(&arguments),
        Task::Bench(what) => bench::run(&what),
        Task::Db(what) => db::run(&what),
    });
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
