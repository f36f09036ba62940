//! The workloads, and the measurement of each.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;

use super::RegistryBenchArgs;
use super::content::{self, BenchImage, LARGE, SMALL, TAG};
use super::server::{
    ACCEPT, AUTHORIZATION, BenchServer, GRACE, ServerKind, ServerProgram, ServerSecrets,
    collect_stopped,
};
use crate::bench::blob::{BenchBlob, MANIFEST_TYPE};
use crate::bench::client::{LoadClient, load, path_of};
use crate::bench::process::cores;
use crate::command::{output, run};

/// Connections of a load.
const CLIENTS: u32 = 16;
/// Long enough for caches to fill.
const WARM_UP: Duration = Duration::from_secs(1);
const PULLS: u32 = 5;
const PUSHES: u32 = 3;
const MEGABYTE: f64 = 1e6;
const OCTETS: &str = "Content-Type: application/octet-stream";

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    ManifestByTag,
    ManifestByDigest,
    ManifestByTagTls,
    ManifestByDigestTls,
    HeadBlob,
    SmallBlob,
    Pull,
    PullTls,
    Push,
    /// Two small blobs and a manifest, by sixteen clients
    SmallPush,
    /// Start and catalog with many of them
    Repositories,
    /// Garbage of as many, collected during pulls and pushes
    Garbage,
}

/// The context of all workloads.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    pub(super) plan: &'a RegistryBenchArgs,
    pub(super) scratch: &'a Path,
    pub(super) image: BenchImage,
}

/// A server without and with TLS, with the image.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) program: ServerProgram,
    pub(super) plain: BenchServer,
    /// With TLS and, where it is a registry, basic auth.
    pub(super) tls: BenchServer,
}

impl Contender {
    /// Writes the image into its folder, and starts it.
    pub(super) fn start(
        bench: &Bench<'_>,
        program: ServerProgram,
        secrets: &ServerSecrets,
    ) -> Result<Self> {
        let server = |form, secrets| {
            let name = program.kind.name();
            let folder = bench.scratch.join(format!("{name}-{form}"));
            bench.image.write(&folder, program.kind.layout())?;
            BenchServer::start(&program, &folder, secrets, &BenchImage::by_tag())
        };
        let (plain, tls) = (server("plain", None)?, server("tls", Some(secrets))?);
        Ok(Self {
            program,
            plain,
            tls,
        })
    }

    fn name(&self) -> &'static str {
        self.program.kind.name()
    }
}

impl Workload {
    /// Labels of its numbers.
    pub(super) fn labels(self, plan: &RegistryBenchArgs) -> Vec<String> {
        let label = match self {
            Self::ManifestByTag => "manifest GET by tag, /s (CPU ms)",
            Self::ManifestByDigest => "manifest GET by digest, /s (CPU ms)",
            Self::ManifestByTagTls => "manifest GET by tag, TLS + auth, /s (CPU ms)",
            Self::ManifestByDigestTls => "manifest GET by digest, TLS + auth, /s (CPU ms)",
            Self::HeadBlob => "HEAD blob, /s (CPU ms)",
            Self::SmallBlob => "4 KiB blob GET, /s (CPU ms)",
            Self::Pull => "100 MB pull, MB/s (CPU ms per MB)",
            Self::PullTls => "100 MB pull, TLS + auth, MB/s (CPU ms per MB)",
            Self::Push => "100 MB push, MB/s (CPU ms per MB)",
            Self::SmallPush => "small image push, /s (CPU ms; peak MiB)",
            Self::Garbage => {
                let count = plan.repositories;
                let parts = [
                    "collected in, s",
                    "slowest pull beside, ms",
                    "slowest image push beside, ms",
                ];
                return parts
                    .map(|part| format!("garbage of {} repositories: {part}", count.div_ceil(5)))
                    .into();
            }
            Self::Repositories => {
                let count = plan.repositories;
                let parts = ["first start, ms", "start again, ms", "whole _catalog, ms"];
                return parts
                    .map(|part| format!("{count} repositories: {part}"))
                    .into();
            }
        };
        vec![label.to_owned()]
    }

    /// Whether it applies to such a server.
    pub(super) fn is_for(self, kind: ServerKind) -> bool {
        match self {
            Self::Push | Self::SmallPush | Self::Repositories => kind != ServerKind::Nginx,
            // zot collects on a schedule alone.
            Self::Garbage => matches!(kind, ServerKind::Ours | ServerKind::DockerRegistry),
            _ => true,
        }
    }

    /// Its numbers, one per label.
    pub(super) fn measure(self, bench: &Bench<'_>, contender: &Contender) -> Result<Vec<String>> {
        let image = &bench.image;
        let cell = match self {
            Self::ManifestByTag => wrk(bench, contender, false, &BenchImage::by_tag()),
            Self::ManifestByDigest => wrk(bench, contender, false, &image.by_digest()),
            Self::ManifestByTagTls => wrk(bench, contender, true, &BenchImage::by_tag()),
            Self::ManifestByDigestTls => wrk(bench, contender, true, &image.by_digest()),
            Self::SmallBlob => wrk(bench, contender, false, &image.small()),
            Self::HeadBlob => head(bench, contender),
            Self::Pull => pull(bench, contender, false),
            Self::PullTls => pull(bench, contender, true),
            Self::Push => push(bench, contender),
            Self::SmallPush => small_push(bench, contender),
            Self::Repositories => return repositories(bench, contender),
            Self::Garbage => return garbage(bench, contender),
        };
        Ok(vec![cell?])
    }
}

/// Prints the command line of a workload.
fn announce(contender: &Contender, what: &str) {
    println!("  {:<16}{what}", contender.name());
}

/// A command in shell syntax.
fn typed(command: &Command) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    let parts = std::iter::once(command.get_program()).chain(command.get_args());
    let parts = parts.map(|part| match part.to_string_lossy() {
        part if part.chars().all(is_plain) => part.into_owned(),
        part => format!("'{part}'"),
    });
    parts.collect::<Vec<_>>().join(" ")
}

fn face(contender: &Contender, is_tls: bool) -> (&BenchServer, String) {
    let (server, scheme) = if is_tls {
        (&contender.tls, "https")
    } else {
        (&contender.plain, "http")
    };
    (server, format!("{scheme}://127.0.0.1:{}", server.port))
}

fn wrk(bench: &Bench<'_>, contender: &Contender, is_tls: bool, path: &str) -> Result<String> {
    let (server, url) = face(contender, is_tls);
    // The server gets the other half.
    let threads = (cores() / 2).clamp(1, 8);
    let command = |duration: Duration| {
        let mut command = Command::new("wrk");
        command
            .arg(format!("-t{threads}"))
            .arg(format!("-c{CLIENTS}"))
            .arg(format!("-d{}s", duration.as_secs()))
            .args(["-H", ACCEPT]);
        if is_tls {
            command.args(["-H", AUTHORIZATION]);
        }
        command.arg(format!("{url}{path}"));
        command
    };
    output(&mut command(WARM_UP))?;
    let mut command = command(bench.plan.duration());
    announce(contender, &typed(&command));
    let (report, cost) = server.observe(|| output(&mut command))?;
    let (requests, rate) = read_wrk(&String::from_utf8_lossy(&report))?;
    Ok(format!("{rate:.0} ({:.3})", cost.cpu_ms / requests))
}

/// Total requests and requests per second of a wrk report.
fn read_wrk(report: &str) -> Result<(f64, f64)> {
    let wrong = ["Non-2xx", "Socket errors"];
    let line = |part: &str| report.lines().find(|line| line.contains(part));
    if let Some(line) = wrong.into_iter().find_map(line) {
        bail!("wrk: {}", line.trim());
    }
    let first = |line: &str| line.split_whitespace().next()?.parse().ok();
    let requests = line(" requests in ").and_then(first);
    let rate = line("Requests/sec:").and_then(|line| first(line.split_once(':')?.1));
    match (requests, rate) {
        (Some(requests), Some(rate)) if requests > 0.0 => Ok((requests, rate)),
        _ => bail!("malformed report of wrk: {report}"),
    }
}

/// Without wrk: it waits for bodies of the Content-Length that responses to HEAD declare.
fn head(bench: &Bench<'_>, contender: &Contender) -> Result<String> {
    let path = bench.image.small();
    announce(contender, &format!("{CLIENTS} connections: HEAD {path}"));
    let server = &contender.plain;
    let work = |client: &mut LoadClient, _, _| client.ask("HEAD", &path, &[], b"", 200).map(drop);
    load(server.port, CLIENTS, WARM_UP, work)?;
    let ((requests, seconds), cost) =
        server.observe(|| load(server.port, CLIENTS, bench.plan.duration(), work))?;
    let requests = f64::from(requests);
    Ok(format!(
        "{:.0} ({:.3})",
        requests / seconds,
        cost.cpu_ms / requests
    ))
}

fn pull(bench: &Bench<'_>, contender: &Contender, is_tls: bool) -> Result<String> {
    let (server, url) = face(contender, is_tls);
    let path = bench.image.large();
    let command = |count: u32| {
        let mut command = Command::new("curl");
        command.args(["-sSfk", "--http1.1", "-o", "/dev/null"]);
        if is_tls {
            command.args(["-H", AUTHORIZATION]);
        }
        // One process and one connection for all.
        command.arg(format!("{url}{path}?[1-{count}]"));
        command
    };
    run(&mut command(1))?;
    let mut command = command(PULLS);
    announce(contender, &typed(&command));
    let ((), cost) = server.observe(|| run(&mut command))?;
    Ok(throughput(PULLS, cost.seconds, cost.cpu_ms))
}

fn throughput(times: u32, seconds: f64, cpu_ms: f64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a number for people")]
    let megabytes = f64::from(times) * LARGE as f64 / MEGABYTE;
    format!("{:.0} ({:.3})", megabytes / seconds, cpu_ms / megabytes)
}

/// As podman does it: a chunked stream, then the digest.
fn push(bench: &Bench<'_>, contender: &Contender) -> Result<String> {
    let server = &contender.plain;
    let file = bench.scratch.join("pushed");
    let mut client = LoadClient::connect(server.port)?;
    let (mut seconds, mut cpu_ms) = (0.0, 0.0);
    for number in 0..PUSHES {
        let blob = BenchBlob::noise(1000 + u64::from(number), LARGE);
        fs::write(&file, &blob.bytes)?;
        settle(bench)?;
        let ((), cost) = server.observe(|| {
            let url = upload(&mut client, "bench/push")?;
            let mut curl = Command::new("curl");
            curl.args(["-sSf", "-o", "/dev/null", "-D", "-", "-X", "PATCH"])
                .args(["-H", OCTETS, "-H", "Transfer-Encoding: chunked"])
                .args(["-H", "Expect:", "-T"])
                .arg(&file)
                .arg(format!("http://127.0.0.1:{}{url}", server.port));
            if number == 0 {
                announce(contender, &format!("POST, {}, PUT", typed(&curl)));
            }
            let headers = output(&mut curl)?;
            let headers = String::from_utf8_lossy(&headers);
            finish(&mut client, &location(&headers)?, &blob)
        })?;
        seconds += cost.seconds;
        cpu_ms += cost.cpu_ms;
    }
    fs::remove_file(&file)?;
    Ok(throughput(PUSHES, seconds, cpu_ms))
}

/// Path and query of the Location header in curl's output.
fn location(headers: &str) -> Result<String> {
    let url = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim())
    });
    Ok(path_of(url.context("the answer has no Location")?).to_owned())
}

fn upload(client: &mut LoadClient, repository: &str) -> Result<String> {
    let path = format!("/v2/{repository}/blobs/uploads/");
    client.ask("POST", &path, &[], b"", 202)?.location()
}

fn finish(client: &mut LoadClient, location: &str, blob: &BenchBlob) -> Result<()> {
    let joint = if location.contains('?') { '&' } else { '?' };
    let path = format!("{location}{joint}digest={}", blob.digest);
    client.ask("PUT", &path, &[], b"", 201).map(drop)
}

fn small_push(bench: &Bench<'_>, contender: &Contender) -> Result<String> {
    let server = &contender.plain;
    let steps = "HEAD, POST, PATCH, PUT of 2 blobs, PUT of the manifest";
    announce(contender, &format!("{CLIENTS} connections: {steps}"));
    settle(bench)?;
    let ((pushes, seconds), cost) =
        server.observe(|| load(server.port, CLIENTS, bench.plan.duration(), push_image))?;
    let pushes = f64::from(pushes);
    Ok(format!(
        "{:.0} ({:.1}; {:.0})",
        pushes / seconds,
        cost.cpu_ms / pushes,
        cost.peak_mib
    ))
}

/// Pushes an image of new blobs, as podman does.
fn push_image(client: &mut LoadClient, number: u32, turn: u32) -> Result<()> {
    let repository = format!("bench/push-{number}");
    let seed = (u64::from(number) + 1) << 32 | u64::from(turn);
    let config =
        BenchBlob::new(format!(r#"{{"architecture":"amd64","os":"linux","seed":{seed}}}"#).into());
    let blobs = [config, BenchBlob::noise(seed, SMALL)];
    for blob in &blobs {
        let path = format!("/v2/{repository}/blobs/{}", blob.digest);
        client.ask("HEAD", &path, &[], b"", 404)?;
        let url = upload(client, &repository)?;
        let url = client.ask("PATCH", &url, &[OCTETS], &blob.bytes, 202)?;
        finish(client, &url.location()?, blob)?;
    }
    let path = format!("/v2/{repository}/manifests/t{turn}");
    let kind = format!("Content-Type: {MANIFEST_TYPE}");
    let manifest = BenchBlob::manifest(&blobs);
    client.ask("PUT", &path, &[&kind], &manifest.bytes, 201)?;
    Ok(())
}

/// Time of a first start that may index all of them, of a second start, and of the whole catalog.
fn repositories(bench: &Bench<'_>, contender: &Contender) -> Result<Vec<String>> {
    let count = bench.plan.repositories;
    let folder = bench.scratch.join(format!("{}-many", contender.name()));
    announce(
        contender,
        &format!("a folder with {count} repositories of 10 blobs"),
    );
    content::fill(&folder, contender.program.kind.layout(), count)?;
    settle(bench)?;
    let path = format!("/v2/{}/manifests/{TAG}", content::many(count - 1));
    let start = || BenchServer::start(&contender.program, &folder, None, &path);
    let first = start()?.start_seconds;
    let server = start()?;
    announce(contender, "GET /v2/_catalog?n=1000 and on by its Link");
    let (found, seconds) = catalog(&mut LoadClient::connect(server.port)?)?;
    ensure!(
        found == count as usize,
        "the catalog has {found} of {count} repositories"
    );
    let times =
        [first, server.start_seconds, seconds].map(|seconds| format!("{:.1}", seconds * 1e3));
    drop(server);
    fs::remove_dir_all(&folder)?;
    Ok(times.into())
}

/// Duration of a collection, and of a pull and a push meanwhile; the peer is stopped for it.
fn garbage(bench: &Bench<'_>, contender: &Contender) -> Result<Vec<String>> {
    let count = bench.plan.repositories;
    let folder = bench.scratch.join(format!("{}-litter", contender.name()));
    content::fill(&folder, contender.program.kind.layout(), count)?;
    let blobs = content::litter(&folder, count)?;
    announce(
        contender,
        &format!("a folder with {count} repositories of 10 blobs, {blobs} of them garbage"),
    );
    settle(bench)?;
    let cells = if contender.program.kind == ServerKind::Ours {
        let path = format!("/v2/{}/manifests/{TAG}", content::many(1));
        let server = BenchServer::start(&contender.program, &folder, None, &path)?;
        // The grace period of content found in the folder starts at its discovery: by adoption, and by this.
        LoadClient::connect(server.port)?.ask("POST", "/v2/_atoll/gc", &[], b"", 200)?;
        std::thread::sleep(GRACE);
        let (seconds, pull, push) = collect_beside(server.port, &path)?;
        [seconds, pull * 1e3, push * 1e3].map(|number| format!("{number:.1}"))
    } else {
        let seconds = collect_stopped(&contender.program, &folder)?;
        [
            format!("{seconds:.1}"),
            "stopped".to_owned(),
            "stopped".to_owned(),
        ]
    };
    fs::remove_dir_all(&folder)?;
    Ok(cells.into())
}

/// Seconds of the collection, of the slowest pull of `path` and of the slowest push of an image meanwhile.
fn collect_beside(port: u16, path: &str) -> Result<(f64, f64, f64)> {
    let has_ended = AtomicBool::new(false);
    let slowest = |work: &dyn Fn(&mut LoadClient, u32) -> Result<()>| {
        let mut client = LoadClient::connect(port)?;
        let (mut slowest, mut turn) = (Duration::ZERO, 0);
        while !has_ended.load(Ordering::Relaxed) {
            let start = Instant::now();
            work(&mut client, turn)?;
            slowest = slowest.max(start.elapsed());
            turn += 1;
        }
        anyhow::Ok(slowest.as_secs_f64())
    };
    let joined = |thread: ScopedJoinHandle<'_, Result<f64>>| {
        thread.join().unwrap_or_else(|_| bail!("a client panicked"))
    };
    std::thread::scope(|scope| {
        let pulls = scope
            .spawn(|| slowest(&|client, _| client.ask("GET", path, &[ACCEPT], b"", 200).map(drop)));
        let pushes = scope.spawn(|| slowest(&|client, turn| push_image(client, 0, turn)));
        let start = Instant::now();
        let collected = LoadClient::connect(port)?.ask("POST", "/v2/_atoll/gc", &[], b"", 200);
        let seconds = start.elapsed().as_secs_f64();
        has_ended.store(true, Ordering::Relaxed);
        let (pull, push) = (joined(pulls)?, joined(pushes)?);
        collected?;
        Ok((seconds, pull, push))
    })
}

/// Number of repositories in the catalog, and the time to read it.
fn catalog(client: &mut LoadClient) -> Result<(usize, f64)> {
    let start = Instant::now();
    let mut found = 0;
    let mut next = Some("/v2/_catalog?n=1000".to_owned());
    while let Some(path) = next {
        let answer = client.ask("GET", &path, &[], b"", 200)?;
        let page: serde_json::Value = serde_json::from_slice(&answer.body)?;
        let names = page["repositories"].as_array();
        found += names.context("a page has no repositories")?.len();
        next = answer.header("link").and_then(|link| {
            let (url, _) = link.strip_prefix('<')?.split_once('>')?;
            Some(path_of(url).to_owned())
        });
    }
    Ok((found, start.elapsed().as_secs_f64()))
}

/// Syncs earlier writes, so that later measurements do not pay for them.
fn settle(bench: &Bench<'_>) -> Result<()> {
    run(Command::new("sync").arg("--file-system").arg(bench.scratch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_wrk_are_read() {
        let good = "  1 threads and 16 connections\n  155221 requests in 2.11s, 642.01MB read\n\
                    Requests/sec:  73675.04\nTransfer/sec:    304.73MB\n";
        let (requests, rate) = read_wrk(good).unwrap();
        assert!((requests - 155_221.0).abs() < 1e-9 && (rate - 73_675.04).abs() < 1e-9);
        let wrong = format!("{good}  Non-2xx or 3xx responses: 12\n");
        assert!(read_wrk(&wrong).unwrap_err().to_string().ends_with("12"));
        assert!(read_wrk("  0 requests in 2.10s, 3.77KB read\nRequests/sec:  0.00").is_err());
    }

    #[test]
    fn printed_commands_can_be_pasted() {
        let mut command = Command::new("curl");
        command.args(["-H", "A: b", "http://127.0.0.1:1/x?[1-5]"]);
        assert_eq!(
            typed(&command),
            "curl -H 'A: b' 'http://127.0.0.1:1/x?[1-5]'"
        );
    }

    #[test]
    fn each_workload_has_a_label() {
        let plan = RegistryBenchArgs {
            only: Vec::new(),
            seconds: 1,
            repositories: 7,
        };
        for work in Workload::value_variants() {
            assert!(!work.labels(&plan).is_empty());
        }
        assert!(Workload::Repositories.labels(&plan)[0].starts_with("7 repositories"));
    }

    #[test]
    fn uploads_continue_at_the_location_of_curl() {
        let head = "HTTP/1.1 202 Accepted\r\nlocation: http://127.0.0.1:5/v2/a/blobs/uploads/1?_state=x\r\n\r\n";
        assert_eq!(location(head).unwrap(), "/v2/a/blobs/uploads/1?_state=x");
        assert!(location("HTTP/1.1 202 Accepted\r\n\r\n").is_err());
    }
}
