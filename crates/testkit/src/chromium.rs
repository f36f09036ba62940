//! Opens a page in a headless Chromium, and records its requests to other hosts.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;

const NAMES: [&str; 5] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// Flags that keep the browser from requests of its own.
const QUIET: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
];
/// Hosts that the browser itself sends requests to. By name, as pages may use other hosts of the same domains.
const OF_THE_BROWSER: [&str; 9] = [
    "accounts.google.com",
    "clients1.google.com",
    "clients2.google.com",
    "clientservices.googleapis.com",
    "content-autofill.googleapis.com",
    "edgedl.me.gvt1.com",
    "optimizationguide-pa.googleapis.com",
    "redirector.gvt1.com",
    "update.googleapis.com",
];
const EMPTY_PAGE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// Long enough for a busy machine; a test that reaches it has failed.
const DEADLINE: Duration = Duration::from_mins(2);

/// Result of a visit.
#[derive(Debug)]
pub struct Visit {
    /// The page at its end, as HTML.
    pub dom: String,
    /// Console of the page: refusals of its security policy, errors.
    pub console: Vec<String>,
    /// First lines of requests to other hosts.
    pub outside: Vec<String>,
}

/// The browser; none, and a skipped test, where there is none.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        crate::skipped(&format!("none of {} is in PATH", NAMES.join(", ")));
    }
    found
}

/// Opens `url` and lets `seconds` of virtual time pass.
///
/// Errors: as [`visit_with`].
pub async fn visit(browser: &Path, url: &str, seconds: u32) -> Result<Visit> {
    visit_with(browser, url, seconds, &[]).await
}

/// [`visit`] with more flags of the browser.
///
/// Errors: the browser does not start, fails, or takes too long.
pub async fn visit_with(browser: &Path, url: &str, seconds: u32, flags: &[&str]) -> Result<Visit> {
    let profile = tempfile::tempdir()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let proxy = listener.local_addr()?;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let recorder = tokio::spawn(record(listener, Arc::clone(&asked)));
    let child = Command::new(browser)
        .args(QUIET)
        .args(flags)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        // Requests to this computer go past a proxy, all others come to it.
        .arg(format!("--proxy-server=http://{proxy}"))
        .arg(format!("--virtual-time-budget={}", seconds * 1000))
        .args(["--enable-logging=stderr", "--dump-dom", url])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(DEADLINE, child).await;
    let output = output.context("the browser takes too long")??;
    recorder.abort();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let console = errors.lines().filter(|line| line.contains("CONSOLE"));
    let outside = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Visit {
        dom: String::from_utf8(output.stdout)?,
        console: console.map(str::to_owned).collect(),
        outside,
    })
}

async fn record(listener: TcpListener, asked: Arc<Mutex<Vec<String>>>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut line = String::new();
        let read = BufReader::new(&mut stream).read_line(&mut line).await;
        // Browsers open connections in advance: one that ends without a line asked for nothing.
        if read.is_ok_and(|bytes| bytes > 0) && !OF_THE_BROWSER.contains(&host_of(&line)) {
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.push(line.trim().to_owned());
        }
        // A page that cannot be loaded is a failure of a browser without windows. The browser may be away by now.
        stream.write_all(EMPTY_PAGE).await.ok();
    }
}

/// The host of `CONNECT host:443 HTTP/1.1` or `GET http://host/path HTTP/1.1`.
fn host_of(line: &str) -> &str {
    let target = line.split(' ').nth(1).unwrap_or_default();
    let authority = target.split_once("://").map_or(target, |(_, rest)| rest);
    authority.split(['/', ':']).next().unwrap_or_default()
}
