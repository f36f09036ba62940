//! The commands of developers and CI: `cargo xtask up`, `cargo xtask test` and the smaller tasks.
//!
//! It has no production code and links no service: services are built and run as programs.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for the terminal"
)]

mod advisories;
mod apt;
mod bench;
mod bundle;
mod butane_corpus;
mod cargo;
mod codegen;
mod command;
mod db;
mod demo;
mod http;
mod ignition_corpus;
mod images;
mod installation;
mod libtest;
mod postgres;
mod scratch;
mod task;
mod test;
mod tidy;
mod up;
mod web;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let done = cargo::check_version().and_then(|()| task::Task::parse().run());
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
