//! Downloads the discovery image and reads its ignition back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::StatusCode;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::client::DemoClient;
use super::watch::{Deadline, PAUSE};

/// Populating its store takes the image service a while after a start.
const IMAGE_DEADLINE: Duration = Duration::from_mins(5);

/// Streams the image at `url` to a file; gives its size.
pub(super) async fn download(client: &DemoClient, url: &str, path: &Path) -> Result<u64> {
    let deadline = Deadline::new(IMAGE_DEADLINE);
    let mut response = loop {
        let (problem, is_final) = match client.http().get(url).send().await {
            Ok(response) if response.status() == StatusCode::OK => break response,
            Ok(response) => {
                let status = response.status();
                let text = response.text().await.unwrap_or_default();
                (
                    format!("GET {url} answered {status}: {}", text.trim()),
                    status.is_client_error(),
                )
            }
            Err(error) => (format!("GET {url}: {error}"), false),
        };
        if is_final {
            bail!(problem);
        }
        deadline.pause(PAUSE, || problem).await?;
    };
    let length = response
        .content_length()
        .context("the image has no Content-Length")?;
    let mut file = tokio::fs::File::create(path)
        .await
        .with_context(|| format!("{}: cannot be made", path.display()))?;
    let mut size = 0;
    while let Some(chunk) = response
        .chunk()
        .await
        .with_context(|| format!("GET {url} broke off after {size} bytes"))?
    {
        file.write_all(&chunk)
            .await
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        size += chunk.len() as u64;
    }
    file.flush()
        .await
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    ensure!(
        size == length,
        "the image is {size} bytes long, its Content-Length said {length}"
    );
    Ok(size)
}

/// The ignition, and the program that read it.
pub(super) struct IgnitionReading {
    pub(super) reader: String,
    pub(super) config: Value,
}

/// Reads the ignition with the real coreos-installer where there is one, else with the reader of host-sim.
pub(super) async fn ignition(
    path: &Path,
    coreos_installer: Option<&Path>,
    host_sim: &Path,
) -> Result<IgnitionReading> {
    let (program, args): (&Path, &[&str]) = match coreos_installer {
        Some(program) => (program, &["iso", "ignition", "show"]),
        None => (host_sim, &["ignition"]),
    };
    let output = Command::new(program)
        .args(args)
        .arg(path)
        .output()
        .await
        .with_context(|| format!("{}: cannot be run", program.display()))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{} cannot read the image: {}",
        program.display(),
        complaint.trim()
    );
    let config =
        serde_json::from_slice(&output.stdout).context("the embedded ignition is not JSON")?;
    let reader = match coreos_installer {
        Some(program) => format!("the real coreos-installer ({})", program.display()),
        None => "host-sim's own reader (no coreos-installer found)".to_owned(),
    };
    Ok(IgnitionReading { reader, config })
}

/// Finds a coreos-installer: the given one, the cached one below `target`, or one on the search path.
pub fn find_coreos_installer(given: Option<PathBuf>, search_path: &str) -> Option<PathBuf> {
    let cached = PathBuf::from("target/tools/bin/coreos-installer");
    let on_path = search_path
        .split(':')
        .filter(|d| !d.is_empty())
        .map(|d| Path::new(d).join("coreos-installer"));
    given
        .into_iter()
        .chain(on_path)
        .chain([cached])
        .find(|path| path.is_file())
}
