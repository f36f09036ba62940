//! The registries at both ends: always our own.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::bench::client::LoadClient;
use crate::scratch::free_ports;

const START_TIMEOUT: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(10);
const REQUESTS: &str = "registry_http_requests_total{";

/// A running registry.
#[derive(Debug)]
pub(super) struct BenchRegistry {
    process: Child,
    pub(super) ports: RegistryPorts,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RegistryPorts {
    pub(super) api: u16,
    metrics: u16,
}

impl BenchRegistry {
    /// Free ports.
    pub(super) fn ports() -> Result<RegistryPorts> {
        let api = free_ports(2)?;
        let metrics = api + 1;
        Ok(RegistryPorts { api, metrics })
    }

    /// Starts `program` on `folder` and waits until it listens.
    pub(super) fn start(program: &Path, folder: &Path, ports: RegistryPorts) -> Result<Self> {
        let address = |port: u16| format!("127.0.0.1:{port}");
        // setpriv signals it when this process ends, for any reason.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "TERM"])
            .arg(program)
            .env_clear()
            .env("REGISTRY_AUTH", "none")
            .env("REGISTRY_HTTP_ADDR", address(ports.api))
            .env("REGISTRY_HTTP_DEBUG_ADDR", address(ports.metrics))
            .env("REGISTRY_HTTP_DEBUG_PROMETHEUS_ENABLED", "true")
            .env("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("running setpriv, which is of util-linux")?;
        let mut registry = Self { process, ports };
        let began = Instant::now();
        while [ports.api, ports.metrics]
            .iter()
            .any(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err())
        {
            let ended = registry.process.try_wait()?;
            ensure!(ended.is_none(), "the registry has ended");
            ensure!(
                began.elapsed() < START_TIMEOUT,
                "the registry does not listen"
            );
            std::thread::sleep(POLL);
        }
        Ok(registry)
    }

    /// Requests that it has answered.
    pub(super) fn requests(&self) -> Result<u64> {
        let mut client = LoadClient::connect(self.ports.metrics)?;
        let answer = client.ask("GET", "/metrics", &[], b"", 200)?;
        total(&String::from_utf8(answer.body)?)
    }
}

impl Drop for BenchRegistry {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn total(metrics: &str) -> Result<u64> {
    let lines = metrics.lines().filter(|line| line.starts_with(REQUESTS));
    let counts = lines.map(|line| {
        let count = line.rsplit(' ').next().unwrap_or_default();
        count
            .parse::<u64>()
            .with_context(|| format!("{line:?} has no number"))
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_all_kinds_count() {
        let metrics = "# HELP x\nregistry_http_requests_total{code=\"200\"} 3\n\
                       registry_http_requests_total{code=\"404\"} 4\nother{} 9\n";
        assert_eq!(total(metrics).unwrap(), 7);
        assert_eq!(total("").unwrap(), 0);
        assert!(total("registry_http_requests_total{} x\n").is_err());
    }
}
