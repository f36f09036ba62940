//! Servers of files as processes: nginx, the upper limit, and others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::client::LoadClient;
use super::process::{TICKS_PER_SECOND, cpu_ticks, family, forget_peak, peak_kib, resident_kib};
use crate::apt::find_program;
use crate::scratch::free_ports;

const START_TIMEOUT: Duration = Duration::from_mins(2);

/// A running server.
pub(super) struct BenchServer {
    pub(super) name: &'static str,
    pid: u32,
    pub(super) port: u16,
    /// Killed on drop; none where another process owns it.
    _child: Option<KilledChild>,
}

/// Result of some work, and its cost to the server.
pub(super) struct WorkCost<T> {
    pub(super) result: T,
    /// Units: seconds.
    pub(super) cpu: f64,
    /// Units: MiB.
    pub(super) peak: f64,
}

struct KilledChild(Child);

impl Drop for KilledChild {
    fn drop(&mut self) {
        // The workers of nginx survive a kill of their parent.
        for process in family(self.0.id()) {
            let process = i32::try_from(process).ok().and_then(Pid::from_raw);
            if let Some(process) = process {
                kill_process(process, Signal::KILL).ok();
            }
        }
        self.0.wait().ok();
    }
}

impl BenchServer {
    /// A server that runs already.
    pub(super) fn running(name: &'static str, pid: u32, port: u16) -> Self {
        Self {
            name,
            pid,
            port,
            _child: None,
        }
    }

    /// Starts a server and waits until it sends the first byte of the file at `path`.
    pub(super) fn start(
        name: &'static str,
        command: Command,
        port: u16,
        path: &str,
    ) -> Result<Self> {
        Self::start_expecting(name, command, port, (path, 206))
    }

    /// Starts a server and waits until a request for the first byte of a path gets the status.
    pub(super) fn start_expecting(
        name: &'static str,
        mut command: Command,
        port: u16,
        (path, status): (&str, u16),
    ) -> Result<Self> {
        let output = Stdio::null;
        command.stdin(output()).stdout(output()).stderr(output());
        let mut child = KilledChild(
            command
                .spawn()
                .with_context(|| format!("starting {name}"))?,
        );
        let started = Instant::now();
        loop {
            let ended = child.0.try_wait()?;
            ensure!(ended.is_none(), "{name} ended before it was ready");
            let asked = LoadClient::connect(port)
                .and_then(|mut client| client.ask("GET", path, &["Range: bytes=0-0"], b"", status));
            match asked {
                Ok(_) => {
                    return Ok(Self {
                        name,
                        pid: child.0.id(),
                        port,
                        _child: Some(child),
                    });
                }
                Err(error) if started.elapsed() > START_TIMEOUT => {
                    return Err(error.context(format!("{name} is not ready")));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// nginx with the files and listings of `root`, if it is installed; `path` is one of the files.
    pub(super) fn nginx(folder: &Path, root: &Path, path: &str) -> Result<Option<Self>> {
        let program = match nginx_program() {
            Ok(program) => program,
            Err(missing) => {
                println!("{missing}");
                return Ok(None);
            }
        };
        let port = free_ports(1)?;
        let config = folder.join("nginx.conf");
        let text = format!(
            "daemon off; worker_processes auto; user root; pid {0}/nginx.pid; error_log stderr;\n\
             events {{}}\n\
             http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;\n  \
             autoindex on; autoindex_exact_size off; autoindex_localtime on; index mirror-index.html;\n  \
             server {{ listen 127.0.0.1:{port}; root {1}; }}\n}}\n",
            folder.display(),
            root.display()
        );
        fs::write(&config, text)?;
        let mut command = Command::new(program);
        command.arg("-c").arg(&config);
        Self::start("nginx", command, port, path).map(Some)
    }

    /// Cost of `work` to the server and its workers.
    pub(super) fn cost<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<WorkCost<T>> {
        let processes = family(self.pid);
        processes.iter().copied().for_each(forget_peak);
        let before = self.ticks()?;
        let result = work()?;
        let ticks = u32::try_from(self.ticks()? - before).context("CPU time")?;
        let peak: u32 = processes.iter().filter_map(|pid| peak_kib(*pid)).sum();
        Ok(WorkCost {
            result,
            cpu: f64::from(ticks) / TICKS_PER_SECOND,
            peak: f64::from(peak) / 1024.0,
        })
    }

    /// Memory of the server and its workers. Units: MiB.
    pub(super) fn resident_mib(&self) -> f64 {
        let kib: u32 = family(self.pid).into_iter().filter_map(resident_kib).sum();
        f64::from(kib) / 1024.0
    }

    fn ticks(&self) -> Result<u64> {
        family(self.pid).into_iter().map(cpu_ticks).sum()
    }
}

/// The program nginx.
///
/// Errors: it is not installed.
pub(super) fn nginx_program() -> Result<PathBuf> {
    // Debian installs it in /usr/sbin.
    let sbin = PathBuf::from("/usr/sbin/nginx");
    find_program("nginx")
        .or_else(|| sbin.is_file().then_some(sbin))
        .context("nginx is not installed: apt install nginx-light")
}
