//! `cargo xtask bench`: benchmarks of the services.

mod api;
mod blob;
mod build;
mod catalog;
mod client;
mod disk;
mod file_server;
mod image;
mod mirror;
mod process;
mod proxy;
mod registry;
mod slow_clients;
mod static_files;
mod table;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchTask {
    /// CPU of the API server while simulated hosts poll as real agents do, and memory of all services
    Api(api::ApiBenchArgs),
    /// Speed and memory of the image service, beside others that are installed
    Image(image::ImageBenchArgs),
    /// Speed and memory of the static files, beside nginx where it is installed
    Files(static_files::FilesBenchArgs),
    /// Speed and memory of the reverse proxy, beside haproxy and nginx where they are installed
    Proxy(proxy::ProxyBenchArgs),
    /// Speed and memory of the registry, beside other servers that are installed
    Registry(registry::RegistryBenchArgs),
    /// Speed and memory of the catalog server, beside `opm serve` where it is installed
    Catalog(catalog::CatalogBenchArgs),
    /// Speed and memory of the mirroring tool, beside others that are installed
    Mirror(mirror::MirrorBenchArgs),
    /// Latency of fresh clients and memory while thousands of slow connections are held open to each public port
    SlowClients(slow_clients::SlowClientsArgs),
}

/// Runs a benchmark and prints its results.
pub(crate) fn run(what: &BenchTask) -> Result<ExitCode> {
    match what {
        BenchTask::Api(load) => api::run(load),
        BenchTask::Image(load) => image::run(load),
        BenchTask::Files(plan) => static_files::run(plan),
        BenchTask::Proxy(plan) => proxy::run(plan),
        BenchTask::Registry(plan) => registry::run(plan),
        BenchTask::Catalog(plan) => catalog::run(plan),
        BenchTask::Mirror(plan) => mirror::run(plan),
        BenchTask::SlowClients(plan) => slow_clients::run(plan),
    }
}
