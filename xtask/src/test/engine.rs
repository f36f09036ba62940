//! Podman for the tests of the pod: installed where it is missing, served on a private socket.
//!
//! The user's own configuration is neither changed nor read: a private file configures how containers run,
//! and a probe container verifies it before any test relies on it. Images are in the user's storage, where
//! `cargo xtask images` puts them.

mod probe;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::apt;
use crate::scratch::ScratchFolder;

/// Path of podman's configuration; replaces all other configuration files.
const CONFIGURATION: &str = "CONTAINERS_CONF";
/// Until the service listens.
const START_LIMIT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);
/// Podman, its dependencies, another client of registries, and a name server with its client, by package: possible paths of their programs.
const NEEDED: [(&str, &[&str]); 9] = [
    ("skopeo", &["skopeo"]),
    ("podman", &["podman"]),
    ("catatonit", &["catatonit", "/usr/libexec/podman/catatonit"]),
    (
        "netavark",
        &[
            "netavark",
            "/usr/lib/podman/netavark",
            "/usr/libexec/podman/netavark",
        ],
    ),
    (
        "aardvark-dns",
        &[
            "aardvark-dns",
            "/usr/lib/podman/aardvark-dns",
            "/usr/libexec/podman/aardvark-dns",
        ],
    ),
    ("iptables", &["iptables", "/usr/sbin/iptables"]),
    ("dnsmasq-base", &["dnsmasq", "/usr/sbin/dnsmasq"]),
    ("curl", &["curl"]),
    ("crun", &["crun", "runc"]),
];
/// OCI runtimes; crun refuses cgroups of both versions side by side, which runc accepts.
const RUNTIMES: [&str; 2] = ["crun", "runc"];
/// Limits that the engine sets by default, and that not every machine grants.
const LIMITS: [(&str, &str, u64); 2] = [
    ("nofile", "Max open files", 1 << 20),
    ("nproc", "Max processes", 1 << 15),
];

/// A running service of podman; killed on drop, and when this process ends for any reason.
#[derive(Debug)]
pub(super) struct PodmanService {
    service: Child,
    scratch: ScratchFolder,
}

impl PodmanService {
    /// Installs missing packages, finds settings with which containers really run here, and starts the service.
    ///
    /// Errors: the reason why no container can run here.
    pub(super) fn start() -> Result<Self> {
        install()?;
        let scratch = ScratchFolder::new()?;
        let configuration = scratch.path().join("containers.conf");
        configure(&configuration, scratch.path())?;
        let socket = socket(&scratch);
        let log = scratch.path().join("podman.log");
        let output = File::create(&log)?;
        let service = dying_with_us("podman")
            .args(["system", "service", "--time=0"])
            .arg(format!("unix://{}", socket.display()))
            .env(CONFIGURATION, &configuration)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("starting podman system service")?;
        let mut engine = Self { service, scratch };
        let deadline = Instant::now() + START_LIMIT;
        while UnixStream::connect(&socket).is_err() {
            let ended = engine.service.try_wait()?;
            if ended.is_some() || Instant::now() >= deadline {
                let printed = fs::read_to_string(&log).unwrap_or_default();
                bail!("podman system service does not listen: {}", printed.trim());
            }
            std::thread::sleep(POLL);
        }
        Ok(engine)
    }

    /// Points a command and its children to this engine.
    pub(super) fn lend<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env(
                "DOCKER_HOST",
                format!("unix://{}", socket(&self.scratch).display()),
            )
            .env(CONFIGURATION, self.scratch.path().join("containers.conf"))
    }
}

impl Drop for PodmanService {
    fn drop(&mut self) {
        // It has no state: containers are processes of their own, and their state is on disk.
        self.service.kill().ok();
        self.service.wait().ok();
    }
}

/// Short: the system allows 108 bytes.
fn socket(scratch: &ScratchFolder) -> PathBuf {
    scratch.path().join("podman.sock")
}

fn install() -> Result<()> {
    let is_there = |program: &&str| {
        if program.starts_with('/') {
            Path::new(program).exists()
        } else {
            apt::is_program(program)
        }
    };
    let mut missing: Vec<_> = NEEDED
        .iter()
        .filter(|(_, programs)| !programs.iter().any(is_there))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !apt::is_root() {
        missing.extend(["uidmap", "slirp4netns"]);
    }
    apt::install(&missing, "tests run containers, and clients of registries")
}

/// Writes the first configuration with which a container runs.
fn configure(path: &Path, scratch: &Path) -> Result<()> {
    let mut reasons = String::new();
    // The installed ones first: another one is installed when they do not work.
    let mut runtimes = RUNTIMES;
    runtimes.sort_by_key(|runtime| !apt::is_program(runtime));
    for runtime in runtimes {
        if !apt::is_program(runtime)
            && let Err(error) = apt::install(&[runtime], "the other runtime refuses this machine")
        {
            writeln!(reasons, "{runtime}: {error:#}").ok();
            continue;
        }
        for cgroups in cgroup_managers() {
            fs::write(path, configuration(runtime, cgroups, &limits()?))
                .with_context(|| format!("writing {}", path.display()))?;
            match probe::run(path, &scratch.join("probe")) {
                Ok(()) => return Ok(()),
                Err(error) => writeln!(reasons, "{runtime} with {cgroups}: {error:#}").ok(),
            };
        }
    }
    bail!("{}", reasons.trim_end())
}

/// The manager of cgroups: podman itself, or systemd where that runs.
fn cgroup_managers() -> impl Iterator<Item = &'static str> {
    let has_systemd = Path::new("/run/systemd/system").exists();
    ["cgroupfs"]
        .into_iter()
        .chain(has_systemd.then_some("systemd"))
}

fn configuration(runtime: &str, cgroups: &str, limits: &[String]) -> String {
    let limits = limits.iter().map(|limit| format!("{limit:?}"));
    let limits = limits.collect::<Vec<_>>().join(", ");
    format!(
        "# Written by `cargo xtask test`; the only configuration that its podman reads.\n\
         [engine]\nruntime = {runtime:?}\ncgroup_manager = {cgroups:?}\nevents_logger = \"file\"\n\
         [containers]\nlog_driver = \"k8s-file\"\ndefault_ulimits = [{limits}]\n"
    )
}

/// Podman's default limits, lowered to the hard limits of this process.
fn limits() -> Result<Vec<String>> {
    let own = fs::read_to_string("/proc/self/limits").context("reading /proc/self/limits")?;
    Ok(LIMITS
        .iter()
        .map(|(name, title, usual)| {
            let limit = hard_limit(&own, title).map_or(*usual, |own| own.min(*usual));
            format!("{name}={limit}:{limit}")
        })
        .collect())
}

/// The hard limit called `title`; none when it is unlimited.
fn hard_limit(limits: &str, title: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(title))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// A command that is killed when this process is, where setpriv exists.
fn dying_with_us(program: &str) -> Command {
    if !apt::is_program("setpriv") {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_do_not_exceed_those_of_this_process() {
        let own = "Limit                     Soft Limit           Hard Limit           Units     \n\
                   Max processes             unlimited            unlimited            processes \n\
                   Max open files            1024                 20000                files     \n";
        assert_eq!(hard_limit(own, "Max open files"), Some(20_000));
        assert_eq!(hard_limit(own, "Max processes"), None);
        assert_eq!(hard_limit(own, "Max file size"), None);
        assert_eq!(limits().unwrap().len(), 2);
    }

    #[test]
    fn the_configuration_is_toml() {
        let text = configuration("runc", "cgroupfs", &["nofile=1:1".to_owned()]);
        assert!(text.contains("\nruntime = \"runc\"\n"), "{text}");
        assert!(
            text.ends_with("\ndefault_ulimits = [\"nofile=1:1\"]\n"),
            "{text}"
        );
    }
}
