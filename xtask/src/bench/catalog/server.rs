//! The compared servers; both take the same command line.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::apt::find_program;
use crate::bench::process::{TICKS_PER_SECOND, cpu_ticks, peak_kib, private_kib, resident_kib};
use crate::scratch::free_ports;

/// The largest catalogs take the peer minutes on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(10);
/// Short, because starts are measured.
const POLL: Duration = Duration::from_millis(1);

/// An installed server.
#[derive(Debug)]
pub(super) struct CatalogProgram {
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
}

impl CatalogProgram {
    /// Our server, from the folder with the built programs.
    pub(super) fn ours(programs: &Path) -> Self {
        let name = "catalog-server";
        let path = programs.join(name);
        Self { name, path }
    }

    /// The peer, when it is installed.
    pub(super) fn peer() -> Option<Self> {
        let name = "opm";
        let path = find_program(name)?;
        Some(Self { name, path })
    }
}

/// A running server.
#[derive(Debug)]
pub(super) struct CatalogServer {
    process: Child,
    pub(super) port: u16,
    started: Duration,
}

impl CatalogServer {
    /// Starts it on `folder` with a cache, made when it is missing, and waits until it listens; neither server listens
    /// before it has read everything.
    pub(super) fn start(program: &CatalogProgram, folder: &Path, cache: &Path) -> Result<Self> {
        let port = free_ports(1)?;
        // setpriv signals it when this process ends, for any reason.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(&program.path);
        command
            .arg("serve")
            .arg(folder)
            .arg("--cache-dir")
            .arg(cache);
        command.args(["--cache-enforce-integrity=false", "--pprof-addr", ""]);
        command.args([
            "--termination-log",
            "/dev/null",
            "--port",
            &port.to_string(),
        ]);
        let began = Instant::now();
        let process = command
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let mut server = Self {
            process,
            port,
            started: Duration::ZERO,
        };
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = server.process.try_wait()?;
            ensure!(ended.is_none(), "{} has ended", program.name);
            ensure!(
                began.elapsed() < START_TIMEOUT,
                "{} does not listen",
                program.name
            );
            std::thread::sleep(POLL);
        }
        server.started = began.elapsed();
        Ok(server)
    }

    /// CPU time since its start. Units: seconds.
    pub(super) fn cpu(&self) -> Result<f64> {
        let ticks = u32::try_from(cpu_ticks(self.process.id())?)?;
        Ok(f64::from(ticks) / TICKS_PER_SECOND)
    }

    /// Cost of its start.
    pub(super) fn costs(&self) -> Result<String> {
        let peak = peak_kib(self.process.id()).context("it has ended")?;
        let wall = self.started.as_secs_f64();
        Ok(format!("{wall:.3} / {:.2} / {:.0}", self.cpu()?, mib(peak)))
    }

    /// Resident memory, and the part of it that no file backs.
    pub(super) fn memory(&self) -> String {
        let all = resident_kib(self.process.id()).unwrap_or_default();
        let private = private_kib(self.process.id()).unwrap_or_default();
        format!("{:.0} / {:.0}", mib(all), mib(private))
    }

    /// Stops it; returns the cost of its start.
    pub(super) fn stop(self) -> Result<String> {
        self.costs()
    }
}

impl Drop for CatalogServer {
    fn drop(&mut self) {
        let pid = self.process.id().to_string();
        // SIGTERM, so that it closes its cache cleanly.
        Command::new("kill").arg(pid).status().ok();
        self.process.wait().ok();
    }
}

fn mib(kib: u32) -> f64 {
    f64::from(kib) / 1024.0
}
