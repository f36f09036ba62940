//! Fresh clients: each request by curl, on a connection of its own.

use std::fmt;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::apt;

/// Units: seconds. Timeout of a request; it counts as failed.
const GIVE_UP: &str = "60";

/// Requests for the health of one port.
#[derive(Debug)]
pub(super) struct Probe {
    url: String,
    requests: u32,
}

/// Latency of fresh clients.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Latency {
    /// Median.
    pub(super) p50_ms: f64,
    /// 99th percentile.
    pub(super) p99_ms: f64,
    /// Requests without a response of 200.
    pub(super) failed: usize,
}

/// Installs curl where it is missing.
pub(super) fn ensure_curl() -> Result<()> {
    if !apt::is_program("curl") {
        apt::install(&["curl"], "it plays the fresh clients")?;
    }
    Ok(())
}

impl Probe {
    pub(super) fn new(scheme: &str, port: u16, requests: u32) -> Self {
        Self {
            url: format!("{scheme}://127.0.0.1:{port}/health"),
            requests,
        }
    }

    /// Sends the requests one after the other.
    pub(super) fn measure(&self) -> Result<Latency> {
        let mut curl = Command::new("curl")
            .args(["--silent", "--insecure", "--max-time", GIVE_UP])
            .args(["--header", "Connection: close"])
            .args([
                "--write-out",
                "%{http_code} %{time_total}\\n",
                "--config",
                "-",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting curl")?;
        let request = format!("url = \"{}\"\noutput = /dev/null\n", self.url);
        let requests = usize::try_from(self.requests)?;
        let mut stdin = curl.stdin.take().context("curl has no input")?;
        // curl reads all of its configuration before its first request.
        stdin.write_all(request.repeat(requests).as_bytes())?;
        drop(stdin);
        let output = curl.wait_with_output().context("waiting for curl")?;
        Latency::of_lines(&String::from_utf8_lossy(&output.stdout))
    }
}

impl Latency {
    /// Reads lines `STATUS SECONDS`.
    fn of_lines(text: &str) -> Result<Self> {
        let requests: Vec<(bool, f64)> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(code, seconds)| Some((code == "200", seconds.parse().ok()?)))
            .collect();
        ensure!(!requests.is_empty(), "curl printed nothing");
        let mut seconds: Vec<f64> = requests.iter().map(|(_, seconds)| *seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let place = (seconds.len() * percent).div_ceil(100).max(1) - 1;
            seconds[place] * 1e3
        };
        Ok(Self {
            p50_ms: at(50),
            p99_ms: at(99),
            failed: requests.iter().filter(|(is_good, _)| !is_good).count(),
        })
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} / {:.1}", self.p50_ms, self.p99_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_failures_of_lines() {
        let mut lines: Vec<_> = (1..=100).map(|n| format!("200 0.{n:03}")).collect();
        lines[7] = "503 0.008".to_owned();
        lines[8] = "000 0.009".to_owned();
        let latency = Latency::of_lines(&lines.join("\n")).unwrap();
        assert_eq!(latency.failed, 2);
        assert_eq!(latency.to_string(), "50.0 / 99.0");
        assert!(Latency::of_lines("").is_err());
    }
}
