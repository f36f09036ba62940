//! The operating system is written by coreos-installer, which the live system has with the image.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use model::host::HostStage;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::Error;
use crate::steps::context::StepContext;

const PROGRAM: &str = "coreos-installer";
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Reports are as far apart. Units: percent.
const REPORT_STEP: u32 = 5;
/// Kept output, for the error. Units: bytes.
const MAX_OUTPUT: usize = 4096;

/// Writes image and ignition to a disk; its progress is reported.
///
/// Errors: the last failure of three.
pub(super) async fn write(
    context: &StepContext,
    ignition: &Path,
    device: &Path,
    arguments: &[String],
) -> Result<(), Error> {
    let mut attempt = 1;
    loop {
        match once(context, ignition, device, arguments).await {
            Err(error) if attempt < ATTEMPTS => {
                tracing::warn!(
                    attempt,
                    error = error.chain(),
                    "image not written, trying again"
                );
            }
            result => return result,
        }
        tokio::time::sleep(PAUSE).await;
        attempt += 1;
    }
}

async fn once(
    context: &StepContext,
    ignition: &Path,
    device: &Path,
    arguments: &[String],
) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::io(format!("running {PROGRAM}"), error);
    let mut child = Command::new(PROGRAM)
        .args(["install", "--insecure", "--ignition-file"])
        .arg(ignition)
        .args(arguments)
        .arg(device)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let mut output = String::new();
    if let Some(stream) = child.stderr.take() {
        let mut last = 0;
        let mut lines = Lines::new(stream);
        while let Some(line) = lines.next().await.map_err(failed)? {
            if let Some(percent) = percent(&line) {
                if percent >= last + REPORT_STEP || (percent == 100 && last != 100) {
                    last = percent;
                    let text = format!("{percent}%");
                    let stage = HostStage::WritingImageToDisk;
                    if let Err(error) = context.api.progress(context.host_id, stage, &text).await {
                        tracing::warn!(error = error.chain(), "progress not reported");
                    }
                    let shown = format!("{stage} {text}");
                    context
                        .status
                        .change(|status| status.installation = Some(shown));
                }
            } else if output.len() + line.len() < MAX_OUTPUT {
                output.push_str(&line);
                output.push('\n');
            }
        }
    }
    let status = child.wait().await.map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    Err(Error::message(format!(
        "{PROGRAM} ended with {status}: {}",
        output.trim()
    )))
}

/// The percentage in a line of progress: `> Read disk 1.2 GiB/4 GiB (30%)`.
fn percent(line: &str) -> Option<u32> {
    let (_, end) = line.rsplit_once('(')?;
    end.split_once("%)")?.0.parse().ok()
}

/// Lines that end with a line feed or a carriage return, at most 1 KiB long.
struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    const MAX: usize = 1024;

    fn new(stream: R) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    async fn next(&mut self) -> std::io::Result<Option<String>> {
        loop {
            let end = self
                .buffer
                .iter()
                .position(|byte| matches!(byte, b'\n' | b'\r'));
            let cut = end.or_else(|| (self.buffer.len() >= Self::MAX).then_some(Self::MAX - 1));
            if let Some(end) = cut {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if line.is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.buffer))
                    .trim()
                    .to_owned();
                return Ok((!line.is_empty()).then_some(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read() {
        assert_eq!(percent("> Read disk 1.2 GiB/4 GiB (30%)"), Some(30));
        assert_eq!(percent("Installing Red Hat CoreOS (418)"), None);
    }

    #[tokio::test]
    async fn carriage_returns_end_lines() {
        let long = "x".repeat(3000);
        let text = format!("a (1%)\rb (2%)\r\n\nlast{long}");
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("a (1%)"));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("b (2%)"));
        let mut rest = 0;
        while let Some(line) = lines.next().await.unwrap() {
            assert!(line.len() <= 1024);
            rest += line.len();
        }
        assert_eq!(rest, 3004);
    }
}
