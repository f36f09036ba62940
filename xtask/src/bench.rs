//! `cargo xtask bench`: benchmarks of the services.

mod api;
mod blob;
mod build;
mod catalog;
mod client;
mod mirror;
mod process;
mod registry;
mod slow_clients;
mod table;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// CPU of the API server while simulated hosts poll as real agents do, and memory of all services
    Api(api::Load),
    /// Speed and memory of the registry, beside other servers that are installed
    Registry(registry::Plan),
    /// Speed and memory of the catalog server, beside `opm serve` where it is installed
    Catalog(catalog::Plan),
    /// Speed and memory of the mirroring tool, beside others that are installed
    Mirror(mirror::Plan),
    /// Latency of fresh clients and memory while thousands of slow connections are held open to each public port
    SlowClients(slow_clients::Plan),
}

/// Runs a benchmark and prints its results.
pub(crate) fn run(what: &What) -> Result<ExitCode> {
    match what {
        What::Api(load) => api::run(load),
        What::Registry(plan) => registry::run(plan),
        What::Catalog(plan) => catalog::run(plan),
        What::Mirror(plan) => mirror::run(plan),
        What::SlowClients(plan) => slow_clients::run(plan),
    }
}
