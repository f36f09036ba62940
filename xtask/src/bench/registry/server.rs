//! The compared servers. Each runs on its own folder, and is killed when this process ends, for any reason.

use std::cell::Cell;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use super::content::StorageLayout;
use crate::apt::find_program;
use crate::bench::client::LoadClient;
use crate::bench::process;
use crate::command::{output, run};
use crate::scratch::free_ports;

/// `htpasswd -nbB bench bench`, at htpasswd's default cost.
const HTPASSWD: &str = "bench:$2y$05$JDJFqAHkzJGWB7tJyTZvq.d1hea1CFEZtcsbZbxCgTF13pty8d0jC\n";
/// `bench:bench`.
pub(super) const AUTHORIZATION: &str = "Authorization: Basic YmVuY2g6YmVuY2g=";
pub(super) const ACCEPT: &str = "Accept: application/vnd.oci.image.manifest.v1+json";
/// A first start may have to read the whole folder.
const START_TIMEOUT: Duration = Duration::from_mins(10);
/// Grace period of unreferenced content: longer than a push takes.
pub(super) const GRACE: Duration = Duration::from_secs(3);
/// Short, because starts are measured.
const POLL: Duration = Duration::from_millis(1);

/// The compared servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    Ours,
    DockerRegistry,
    Zot,
    /// A file server without a registry's work: the upper limit.
    Nginx,
}

/// An installed server.
#[derive(Debug)]
pub(super) struct ServerProgram {
    pub(super) kind: ServerKind,
    path: PathBuf,
}

impl ServerKind {
    pub(super) const PEERS: [Self; 3] = [Self::DockerRegistry, Self::Zot, Self::Nginx];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "registry",
            Self::DockerRegistry => "docker-registry",
            Self::Zot => "zot",
            Self::Nginx => "nginx",
        }
    }

    /// Installation instructions.
    pub(super) fn install(self) -> &'static str {
        match self {
            Self::Ours => "it is built here",
            Self::DockerRegistry => "apt install docker-registry",
            Self::Zot => "its releases are at https://github.com/project-zot/zot",
            Self::Nginx => "apt install nginx-light",
        }
    }

    pub(super) fn layout(self) -> StorageLayout {
        match self {
            Self::Ours | Self::DockerRegistry => StorageLayout::Distribution,
            Self::Zot => StorageLayout::Oci,
            Self::Nginx => StorageLayout::Files,
        }
    }
}

impl ServerProgram {
    /// Our registry, from the folder with the built programs.
    pub(super) fn ours(programs: &Path) -> Self {
        let path = programs.join("registry");
        Self {
            kind: ServerKind::Ours,
            path,
        }
    }

    /// A peer, when it is installed.
    pub(super) fn find(kind: ServerKind) -> Option<Self> {
        // Debian installs nginx in /usr/sbin.
        let sbin = Path::new("/usr/sbin").join(kind.name());
        let path = find_program(kind.name()).or_else(|| sbin.is_file().then_some(sbin))?;
        Some(Self { kind, path })
    }

    /// Its version output.
    pub(super) fn version(&self) -> Result<String> {
        let flag = if self.kind == ServerKind::Nginx {
            "-v"
        } else {
            "--version"
        };
        let printed = Command::new(&self.path).arg(flag).output()?;
        // nginx prints it to stderr.
        let printed = [printed.stdout, printed.stderr].concat();
        Ok(String::from_utf8_lossy(&printed).trim().to_owned())
    }

    /// The command that serves `folder`, with TLS and a password file when `secrets` has them.
    fn command(
        &self,
        folder: &Path,
        port: u16,
        secrets: Option<&ServerSecrets>,
    ) -> Result<Command> {
        // setpriv signals it when this process ends, for any reason.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(&self.path);
        command.env_clear();
        let address = format!("127.0.0.1:{port}");
        let config = folder.with_extension("conf");
        match self.kind {
            ServerKind::Ours => {
                command
                    .env("REGISTRY_HTTP_ADDR", address)
                    // No scheduled collection within a day.
                    .env(
                        "REGISTRY_STORAGE_MAINTENANCE_GC_GRACE",
                        format!("{}s", GRACE.as_secs()),
                    )
                    .env("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", folder);
                if let Some(secrets) = secrets {
                    command
                        .env("REGISTRY_HTTP_TLS_CERTIFICATE", &secrets.certificate)
                        .env("REGISTRY_HTTP_TLS_KEY", &secrets.key)
                        .env("REGISTRY_AUTH_HTPASSWD_PATH", &secrets.htpasswd);
                }
            }
            ServerKind::DockerRegistry => {
                fs::write(&config, docker_registry_config(folder, &address, secrets))?;
                command.arg("serve").arg(&config);
            }
            ServerKind::Zot => {
                let settings = zot_config(folder, port, secrets);
                fs::write(&config, settings.to_string())?;
                command.arg("serve").arg(&config);
            }
            ServerKind::Nginx => {
                fs::write(&config, nginx_config(folder, &address, secrets))?;
                command.arg("-c").arg(&config);
            }
        }
        Ok(command)
    }
}

/// Seconds of a garbage collection of `folder` by docker-registry, which has to be stopped for it.
pub(super) fn collect_stopped(program: &ServerProgram, folder: &Path) -> Result<f64> {
    let config = folder.with_extension("conf");
    fs::write(&config, docker_registry_config(folder, "127.0.0.1:0", None))?;
    let start = Instant::now();
    let mut command = Command::new(&program.path);
    let printed = output(command.arg("garbage-collect").arg(config))?;
    let seconds = start.elapsed().as_secs_f64();
    // It also exits with success when it does not understand its arguments.
    let printed = String::from_utf8_lossy(&printed);
    ensure!(
        printed.contains("eligible for deletion"),
        "it found no garbage"
    );
    Ok(seconds)
}

/// Debian's configuration, with our folder and address.
fn docker_registry_config(folder: &Path, address: &str, secrets: Option<&ServerSecrets>) -> String {
    let folder = folder.display();
    let (auth, tls) = secrets.map_or_else(Default::default, |secrets| {
        let (certificate, key) = (secrets.certificate.display(), secrets.key.display());
        let htpasswd = secrets.htpasswd.display();
        (
            format!("auth:\n  htpasswd:\n    realm: bench\n    path: {htpasswd}\n"),
            format!("  tls:\n    certificate: {certificate}\n    key: {key}\n"),
        )
    });
    format!(
        "version: 0.1\n\
         storage:\n  cache:\n    blobdescriptor: inmemory\n  filesystem:\n    rootdirectory: {folder}\n  \
         delete:\n    enabled: true\n\
         health:\n  storagedriver:\n    enabled: true\n    interval: 10s\n    threshold: 3\n\
         {auth}http:\n  addr: {address}\n{tls}"
    )
}

/// The minimal configuration, which logs less than the usual one.
fn zot_config(folder: &Path, port: u16, secrets: Option<&ServerSecrets>) -> serde_json::Value {
    let mut http = json!({ "address": "127.0.0.1", "port": port.to_string() });
    if let Some(secrets) = secrets {
        http["tls"] = json!({ "cert": secrets.certificate, "key": secrets.key });
        http["auth"] = json!({ "htpasswd": { "path": secrets.htpasswd } });
    }
    json!({
        "distSpecVersion": "1.1.1",
        "storage": { "rootDirectory": folder },
        "http": http,
        "log": { "level": "warn" },
    })
}

fn nginx_config(folder: &Path, address: &str, secrets: Option<&ServerSecrets>) -> String {
    let (root, pid) = (folder.display(), folder.with_extension("pid"));
    let pid = pid.display();
    let (ssl, files) = secrets.map_or_else(Default::default, |secrets| {
        let (certificate, key) = (secrets.certificate.display(), secrets.key.display());
        let files = format!("ssl_certificate {certificate}; ssl_certificate_key {key};");
        (" ssl", files)
    });
    format!(
        "daemon off; worker_processes auto; pid {pid}; error_log stderr;\n\
         events {{}}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;\n  \
         server {{ listen {address}{ssl}; root {root}; {files} }}\n}}\n"
    )
}

/// Files for TLS and basic auth.
#[derive(Debug)]
pub(super) struct ServerSecrets {
    certificate: PathBuf,
    key: PathBuf,
    htpasswd: PathBuf,
}

impl ServerSecrets {
    /// Generates them in `folder`.
    pub(super) fn make(folder: &Path) -> Result<Self> {
        let made = Self {
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
            htpasswd: folder.join("htpasswd"),
        };
        fs::write(&made.htpasswd, HTPASSWD)?;
        run(Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-newkey", "ec"])
            .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-keyout"])
            .arg(&made.key)
            .arg("-out")
            .arg(&made.certificate)
            .stderr(Stdio::null()))?;
        Ok(made)
    }
}

/// Cost of a workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkloadCost {
    pub(super) seconds: f64,
    pub(super) cpu_ms: f64,
    pub(super) peak_mib: f64,
}

/// A running server.
#[derive(Debug)]
pub(super) struct BenchServer {
    child: Child,
    pub(super) port: u16,
    /// From its start to its first correct response.
    pub(super) start_seconds: f64,
    /// Before the first load.
    idle_mib: f64,
    /// In anything observed.
    peak_mib: Cell<Option<f64>>,
}

impl BenchServer {
    /// Starts `program` on `folder` and waits until it serves the manifest at `path`; with TLS, until it listens.
    pub(super) fn start(
        program: &ServerProgram,
        folder: &Path,
        secrets: Option<&ServerSecrets>,
        path: &str,
    ) -> Result<Self> {
        let port = free_ports(1)?;
        let log = folder.with_extension("log");
        let file = File::create(&log)?;
        let mut command = program.command(folder, port, secrets)?;
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        let start = Instant::now();
        let child = command
            .spawn()
            .context("running setpriv, which is of util-linux")?;
        let mut server = Self {
            child,
            port,
            start_seconds: 0.0,
            idle_mib: 0.0,
            peak_mib: Cell::new(None),
        };
        while !is_ready(port, secrets.is_some(), path) {
            if let Some(status) = server.child.try_wait()? {
                let printed = fs::read_to_string(&log).unwrap_or_default();
                bail!("{} ended ({status}): {printed}", program.kind.name());
            }
            ensure!(
                start.elapsed() < START_TIMEOUT,
                "{} does not answer",
                program.kind.name()
            );
            std::thread::sleep(POLL);
        }
        server.start_seconds = start.elapsed().as_secs_f64();
        server.idle_mib = server.memory_mib(process::resident_kib);
        Ok(server)
    }

    /// Runs `work` and measures the server's cost meanwhile.
    pub(super) fn observe<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, WorkloadCost)> {
        let family = process::family(self.child.id());
        family.iter().copied().for_each(process::forget_peak);
        let ticks = || {
            family
                .iter()
                .copied()
                .map(process::cpu_ticks)
                .sum::<Result<u64>>()
        };
        let (before, start) = (ticks()?, Instant::now());
        let done = work()?;
        let seconds = start.elapsed().as_secs_f64();
        let spent = u32::try_from(ticks()? - before).context("more CPU time than there can be")?;
        let cost = WorkloadCost {
            seconds,
            cpu_ms: f64::from(spent) / process::TICKS_PER_SECOND * 1e3,
            peak_mib: self.memory_mib(process::peak_kib),
        };
        let peak = self.peak_mib.get().unwrap_or(0.0).max(cost.peak_mib);
        self.peak_mib.set(Some(peak));
        Ok((done, cost))
    }

    /// Resident memory in MiB: idle, and the peak of anything observed.
    pub(super) fn memory(&self) -> String {
        let peak = self.peak_mib.get();
        let peak = peak.map_or("-".to_owned(), |mib| format!("{mib:.0}"));
        format!("{:.0} / {peak}", self.idle_mib)
    }

    fn memory_mib(&self, kib: impl Fn(u32) -> Option<u32>) -> f64 {
        let family = process::family(self.child.id());
        let whole: u32 = family.into_iter().filter_map(kib).sum();
        f64::from(whole) / 1024.0
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        // After SIGKILL, nginx would leave its workers behind.
        let id = self.child.id().to_string();
        if run(Command::new("kill").arg(id)).is_err() {
            self.child.kill().ok();
        }
        self.child.wait().ok();
    }
}

fn is_ready(port: u16, is_tls: bool, path: &str) -> bool {
    if is_tls {
        return TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    }
    LoadClient::connect(port)
        .and_then(|mut client| client.ask("GET", path, &[ACCEPT], b"", 200))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::blob::MANIFEST_TYPE;

    #[test]
    fn manifests_are_requested_by_their_type() {
        assert!(ACCEPT.ends_with(MANIFEST_TYPE));
    }

    #[test]
    fn secrets_enable_tls_and_passwords() {
        let secrets = ServerSecrets {
            certificate: "/s/tls.crt".into(),
            key: "/s/tls.key".into(),
            htpasswd: "/s/htpasswd".into(),
        };
        let folder = Path::new("/data/one");
        let plain = nginx_config(folder, "127.0.0.1:1", None);
        assert!(plain.contains("pid /data/one.pid;"), "{plain}");
        assert!(
            plain.contains("listen 127.0.0.1:1; root /data/one;"),
            "{plain}"
        );
        let tls = nginx_config(folder, "127.0.0.1:1", Some(&secrets));
        assert!(tls.contains("listen 127.0.0.1:1 ssl;"), "{tls}");
        let plain = docker_registry_config(folder, "127.0.0.1:1", None);
        assert!(!plain.contains("tls") && !plain.contains("auth"), "{plain}");
        let tls = docker_registry_config(folder, "127.0.0.1:1", Some(&secrets));
        assert!(tls.ends_with("  tls:\n    certificate: /s/tls.crt\n    key: /s/tls.key\n"));
        assert!(tls.contains("    path: /s/htpasswd\n"), "{tls}");
        let plain = zot_config(folder, 1, None);
        assert_eq!(
            plain["http"],
            json!({ "address": "127.0.0.1", "port": "1" })
        );
        let tls = zot_config(folder, 1, Some(&secrets));
        assert_eq!(tls["http"]["tls"]["key"], "/s/tls.key");
        assert_eq!(tls["http"]["auth"]["htpasswd"]["path"], "/s/htpasswd");
    }
}
