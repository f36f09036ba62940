//! Speed and memory of the image service: clients that read whole images at once, and first bytes; beside
//! assisted-image-service, and nginx with the same file as the upper limit, where they are installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;

use super::api;
use super::build::{self, Build};
use super::client::{LoadClient, load};
use super::file_server::BenchServer;
use super::process::{machine, percentile};
use super::table::ComparisonTable;
use crate::apt::find_program;
use crate::demo::PORTS;
use crate::installation::Installation;
use crate::postgres;
use crate::scratch::{ScratchFolder, free_ports};

const OURS: &str = "image-service";
const PEER: &str = "assisted-image-service";
/// Version and architecture that the peer offers the image under. Of others it unpacks the root file system first, and the
/// image has none that is genuine; full images are sent in the same way.
const PEER_VERSION: &str = "4.17";
const PEER_ARCHITECTURE: &str = "s390x";
/// Requests of each latency.
const REQUESTS: usize = 200;
/// Parts of an image: where reading begins, and a later one, as BMCs read.
const PARTS: [(&str, &str); 2] = [
    ("first part", "Range: bytes=0-524287"),
    ("later part", "Range: bytes=8388608-8912895"),
];

/// The load.
#[derive(Debug, Args)]
pub(crate) struct ImageBenchArgs {
    /// Numbers of clients that read at once
    #[arg(long, value_delimiter = ',', default_value = "1,8,50")]
    clients: Vec<u32>,
    /// Seconds of each number of clients
    #[arg(long, default_value_t = 5)]
    duration: u32,
    /// Build of the services
    #[arg(long, value_enum, default_value_t = Build::Shipped)]
    build: Build,
}

/// A running server with an image.
struct ImageServer {
    server: BenchServer,
    /// Path of the image.
    path: String,
}

/// Runs the benchmark and prints its results.
pub(crate) fn run(load: &ImageBenchArgs) -> Result<ExitCode> {
    postgres::ensure_binaries()?;
    let (services, tools) = (load.build.services()?, build::tools()?);
    let scratch = ScratchFolder::new()?;
    println!("{}", machine());
    let settings = api::content(&tools, scratch.path())?;
    let image = live_image(&settings)?;
    let ports = free_ports(PORTS)?;
    let data = scratch.path().join("installation");
    fs::create_dir_all(&data)?;
    let installation = Installation::start(&services, &data, Some(ports), Some(&settings))?;
    let state = installation.state()?;
    let infra_env = api::register(&state, 0)?;
    let pid = state.pids.get(OURS).copied();
    let mut servers = vec![ImageServer {
        server: BenchServer::running(
            OURS,
            pid.context("the image service does not run")?,
            ports + 3,
        ),
        path: format!("/byid/{infra_env}/4.18/x86_64/full.iso"),
    }];
    servers.extend(peer(scratch.path(), &image, &state.api_url, &infra_env)?);
    servers.extend(nginx(scratch.path(), &image)?);
    let length = fs::metadata(&image)?.len();
    println!("An image of {} MiB, read whole:", length >> 20);
    let mut table = ComparisonTable::new(servers.iter().map(|one| one.server.name));
    for clients in &load.clients {
        let costs = servers
            .iter()
            .map(|server| server.read(*clients, Duration::from_secs(load.duration.into())))
            .collect::<Result<Vec<_>>>()?;
        let cells = |cell: fn(&ReadCost) -> String| costs.iter().map(cell).collect();
        table.row(
            format!("{clients} clients, MB/s"),
            cells(|cost| format!("{:.0}", cost.rate)),
        );
        table.row(
            format!("{clients} clients, CPU s a GB"),
            cells(|cost| format!("{:.2}", cost.cpu)),
        );
        table.row(
            format!("{clients} clients, peak MiB"),
            cells(|cost| format!("{:.1}", cost.peak)),
        );
    }
    for (name, range) in PARTS {
        let cells = servers
            .iter()
            .map(|server| server.latency(range))
            .collect::<Result<_>>()?;
        table.row(format!("{name} of 512 KiB, p50 ms"), cells);
    }
    print!("{table}");
    drop(servers);
    installation.stop()?;
    Ok(ExitCode::SUCCESS)
}

/// The live image that the settings name.
fn live_image(settings: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(settings)?;
    let (_, url) = text
        .split_once("file://")
        .context("the settings name no live image")?;
    let path = url.split('"').next().context("a URL has an end")?;
    Ok(PathBuf::from(path))
}

/// The real service, if it is installed.
fn peer(
    folder: &Path,
    image: &Path,
    api_url: &str,
    infra_env: &str,
) -> Result<Option<ImageServer>> {
    let Some(program) = find_program(PEER) else {
        println!("{PEER} is not installed: its sources are at github.com/openshift/{PEER}");
        return Ok(None);
    };
    let [data, scratch] = ["peer", "peer-temp"].map(|name| folder.join(name));
    fs::create_dir_all(&data)?;
    fs::create_dir_all(&scratch)?;
    fs::copy(
        image,
        data.join(format!("rhcos-full-iso-417.94.1-0-{PEER_ARCHITECTURE}.iso")),
    )?;
    let port = free_ports(1)?;
    let os_images = serde_json::json!([{
        "openshift_version": PEER_VERSION, "cpu_architecture": PEER_ARCHITECTURE, "version": "417.94.1-0",
        "url": "http://127.0.0.1:1/unused",
    }]);
    let api = api_url.strip_prefix("http://").unwrap_or(api_url);
    let mut command = Command::new(program);
    command
        .env("LISTEN_PORT", port.to_string())
        .env("ASSISTED_SERVICE_SCHEME", "http")
        .env("ASSISTED_SERVICE_HOST", api.trim_end_matches('/'))
        .env("IMAGE_SERVICE_BASE_URL", format!("http://127.0.0.1:{port}"))
        .env("OS_IMAGES", os_images.to_string())
        .env("DATA_DIR", data)
        .env("DATA_TEMP_DIR", scratch);
    let path = format!("/byid/{infra_env}/{PEER_VERSION}/{PEER_ARCHITECTURE}/full.iso");
    let started = BenchServer::start(PEER, command, port, &path);
    let started = started.inspect_err(|error| println!("left out: {error:#}"));
    Ok(started.ok().map(|server| ImageServer { server, path }))
}

/// A file server without the work of an image service, if it is installed.
fn nginx(folder: &Path, image: &Path) -> Result<Option<ImageServer>> {
    let root = image.parent().context("an image is in a folder")?;
    let name = image.file_name().context("an image has a name")?;
    let path = format!("/{}", name.display());
    let server = BenchServer::nginx(folder, root, &path)?;
    Ok(server.map(|server| ImageServer { server, path }))
}

/// Cost of whole reads.
struct ReadCost {
    /// Units: MB a second.
    rate: f64,
    /// Units: seconds a GB.
    cpu: f64,
    /// Units: MiB.
    peak: f64,
}

impl ImageServer {
    fn read(&self, clients: u32, duration: Duration) -> Result<ReadCost> {
        let cost = self.server.cost(|| {
            let bytes = AtomicU64::new(0);
            let (_, seconds) = load(self.server.port, clients, duration, |client, _, _| {
                bytes.fetch_add(client.drain(&self.path)?, Relaxed);
                Ok(())
            })?;
            Ok((bytes.into_inner(), seconds))
        })?;
        let (bytes, seconds) = cost.result;
        let megabytes = f64::from(u32::try_from(bytes / 1_000_000)?);
        Ok(ReadCost {
            rate: megabytes / seconds,
            cpu: cost.cpu / (megabytes / 1000.0),
            peak: cost.peak,
        })
    }

    /// Milliseconds of a part of the image at the median, as text.
    fn latency(&self, range: &str) -> Result<String> {
        let mut client = LoadClient::connect(self.server.port)?;
        let mut durations = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let started = Instant::now();
            client.ask("GET", &self.path, &[range], b"", 206)?;
            durations.push(started.elapsed());
        }
        durations.sort_unstable();
        Ok(format!("{:.2}", percentile(&durations, 50)))
    }
}
