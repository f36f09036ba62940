//! Speed and memory of the reverse proxy, beside haproxy and nginx where they are installed.

mod front;

use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, value_parser};

use super::build;
use super::process::machine;
use super::table::ComparisonTable;
use crate::apt::find_program;
use crate::scratch::ScratchFolder;
use front::{Backend, Front, HOST, REGISTRY_HOST};

const OURS: &str = "proxy";
const SMALL: &str = "/small";
const LARGE: &str = "/large";
/// Units: bytes.
const SMALL_LENGTH: usize = 128;
/// Written at once. Units: bytes.
const BLOCK: usize = 1 << 20;

/// Arguments of `bench proxy`.
#[derive(Debug, Args)]
pub(crate) struct ProxyBenchArgs {
    /// Size of the large file
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = value_parser!(u32).range(1..))]
    size: u32,
    /// Seconds of each load
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u32).range(1..))]
    seconds: u32,
    /// Runs of each load, of which the best counts: other programs use the processors, too
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
}

/// A load of a front: the done units, and its result for people, if it is not the cost.
type Work = fn(&ProxyBenchArgs, &Front) -> Result<Done>;

/// Work that was done.
struct Done {
    /// Requests, or gigabytes.
    units: f64,
    /// Latency, where that is the result. Units: microseconds.
    latency: Option<f64>,
}

/// Loads, with their units: microseconds of CPU a request, or seconds a gigabyte.
const LOADS: [(&str, f64, Work); 8] = [
    ("HTTPS, 64 connections: CPU µs a request", 1e6, https),
    ("HTTPS, 1 connection: p50 µs", 1e6, one_connection),
    ("HTTP/2, 16 × 10 streams: CPU µs a request", 1e6, http2),
    (
        "TLS 1.3 handshakes, not resumed: CPU µs each",
        1e6,
        handshakes,
    ),
    (
        "redirects, 64 connections: CPU µs a request",
        1e6,
        redirects,
    ),
    ("large file, HTTPS: CPU s a GB", 1.0, large),
    (
        "large file, passed to the registry: CPU s a GB",
        1.0,
        passed,
    ),
    ("backend down: CPU µs a 503", 1e6, unreachable),
];

/// Runs the benchmark and prints its results.
pub(crate) fn run(plan: &ProxyBenchArgs) -> Result<ExitCode> {
    for (tool, package) in [
        ("wrk", "wrk"),
        ("h2load", "nghttp2-client"),
        ("curl", "curl"),
        ("openssl", "openssl"),
    ] {
        ensure!(
            find_program(tool).is_some(),
            "{tool} is not installed: apt install {package}"
        );
    }
    let programs = build::of_images()?;
    let scratch = ScratchFolder::new()?;
    let root = scratch.path().join("files");
    fs::create_dir_all(&root)?;
    fs::write(root.join(&SMALL[1..]), vec![b'x'; SMALL_LENGTH])?;
    let mut file = File::create(root.join(&LARGE[1..]))?;
    let block = vec![7; BLOCK];
    for _ in 0..plan.size {
        file.write_all(&block).context("writing the large file")?;
    }
    println!("{}", machine());
    let backend = Backend::start(scratch.path(), &root)?;
    let mut fronts = vec![Front::ours(&programs.join(OURS), scratch.path(), &backend)?];
    fronts.extend(Front::haproxy(scratch.path(), &backend)?);
    fronts.extend(Front::nginx(scratch.path(), &backend)?);
    let mut table = ComparisonTable::new(fronts.iter().map(|front| front.server.name));
    let memory = |front: &Front| format!("{:.1}", front.server.resident_mib());
    table.row(
        "memory at start: MiB".to_owned(),
        fronts.iter().map(memory).collect(),
    );
    for (label, unit, work) in LOADS {
        let mut best: Vec<Option<f64>> = vec![None; fronts.len()];
        // Alternating: a load of the machine by others hits all.
        for _ in 0..plan.rounds {
            for (front, best) in fronts.iter().zip(&mut best) {
                let cost = front.server.cost(|| work(plan, front))?;
                let done = cost.result;
                if done.units == 0.0 {
                    continue;
                }
                let result = done.latency.unwrap_or(cost.cpu / done.units * unit);
                *best = Some(best.map_or(result, |best| best.min(result)));
            }
        }
        let cells = best.into_iter();
        let cells =
            cells.map(|best| best.map_or_else(|| "-".to_owned(), |best| format!("{best:.2}")));
        table.row(label.to_owned(), cells.collect());
    }
    let memory = |front: &Front| format!("{:.1}", front.server.resident_mib());
    table.row(
        "memory afterwards: MiB".to_owned(),
        fronts.iter().map(memory).collect(),
    );
    print!("{table}");
    Ok(ExitCode::SUCCESS)
}

fn https(plan: &ProxyBenchArgs, front: &Front) -> Result<Done> {
    wrk(
        plan,
        &format!("https://127.0.0.1:{}{SMALL}", front.https),
        64,
        &[],
    )
}

fn one_connection(plan: &ProxyBenchArgs, front: &Front) -> Result<Done> {
    let url = format!("https://127.0.0.1:{}{SMALL}", front.https);
    wrk(plan, &url, 1, &["--latency"])
}

/// Connections with a handshake and no request. Not by wrk: it resumes the session of its last connection.
fn handshakes(plan: &ProxyBenchArgs, front: &Front) -> Result<Done> {
    let mut command = Command::new("openssl");
    command.args(["s_time", "-new", "-tls1_3"]);
    command.args(["-time", &plan.seconds.to_string()]);
    command.args(["-connect", &format!("127.0.0.1:{}", front.https)]);
    let text = printed(&mut command)?;
    let line = text.lines().find(|line| line.contains(" real seconds"));
    let connections = line.and_then(|line| line.split(' ').next());
    Ok(Done {
        units: connections
            .with_context(|| format!("openssl printed {text}"))?
            .parse()?,
        latency: None,
    })
}

fn redirects(plan: &ProxyBenchArgs, front: &Front) -> Result<Done> {
    wrk(
        plan,
        &format!("http://127.0.0.1:{}{SMALL}", front.http),
        64,
        &[],
    )
}

fn unreachable(plan: &ProxyBenchArgs, front: &Front) -> Result<Done> {
    let url = format!("https://127.0.0.1:{}{SMALL}", front.https);
    let host = format!("Host: {}", front::DOWN_HOST);
    wrk(plan, &url, 8, &["-H", &host])
}

/// Requests of wrk; the latency only with `--latency`.
fn wrk(plan: &ProxyBenchArgs, url: &str, connections: u32, more: &[&str]) -> Result<Done> {
    let threads = connections.min(2);
    let mut command = Command::new("wrk");
    command.args([
        format!("-c{connections}"),
        format!("-t{threads}"),
        format!("-d{}s", plan.seconds),
    ]);
    let host = format!("Host: {HOST}");
    // A second one would be the first that is sent.
    if !more.iter().any(|one| one.starts_with("Host:")) {
        command.args(["-H", &host]);
    }
    let text = printed(command.args(more).arg(url))?;
    let requests = text
        .lines()
        .find_map(|line| line.split_once(" requests in "));
    let (requests, _) = requests.with_context(|| format!("wrk printed {text}"))?;
    let latency = more.contains(&"--latency").then(|| {
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("50%"));
        line.and_then(|text| microseconds(text.trim()))
    });
    Ok(Done {
        units: requests.trim().parse()?,
        latency: latency.flatten(),
    })
}

fn printed(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8(crate::command::output(command)?)?)
}

/// A duration of wrk, as in `71.00us`.
fn microseconds(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    units.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?;
        number.parse::<f64>().ok().map(|number| number * factor)
    })
}

fn http2(plan: &ProxyBenchArgs, front: &Front) -> Result<Done> {
    let mut command = Command::new("h2load");
    command.args(["-c16", "-m10", "-t2", &format!("-D{}", plan.seconds)]);
    command.arg(format!("--connect-to=127.0.0.1:{}", front.https));
    let text = printed(command.arg(format!("https://{HOST}{SMALL}")))?;
    let line = text.lines().find(|line| line.starts_with("requests: "));
    let done = line.and_then(|line| {
        line.split(", ")
            .find_map(|part| part.strip_suffix(" succeeded"))
    });
    Ok(Done {
        units: done
            .with_context(|| format!("h2load printed {text}"))?
            .parse()?,
        latency: None,
    })
}

fn large(plan: &ProxyBenchArgs, front: &Front) -> Result<Done> {
    download(plan, front, HOST)
}

fn passed(plan: &ProxyBenchArgs, front: &Front) -> Result<Done> {
    if !front.passes {
        return Ok(Done {
            units: 0.0,
            latency: None,
        });
    }
    download(plan, front, REGISTRY_HOST)
}

fn download(plan: &ProxyBenchArgs, front: &Front, host: &str) -> Result<Done> {
    let mut command = Command::new("curl");
    command.args(["-sSfk", "--http1.1", "-o", "/dev/null", "--resolve"]);
    command.arg(format!("{host}:{}:127.0.0.1", front.https));
    crate::command::run(command.arg(format!("https://{host}:{}{LARGE}", front.https)))?;
    Ok(Done {
        units: f64::from(plan.size) * f64::from(1 << 20) / 1e9,
        latency: None,
    })
}
