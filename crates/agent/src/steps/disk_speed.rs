//! Step `installation-disk-speed-check`: how long the disk takes to make a small write durable, which etcd depends on.
//!
//! Source: assisted-installer-agent, src/disk_speed_check: the 99th percentile of fdatasync, of two writers at once.
//! Unlike there, the disk keeps its content: each block is written back as it was read.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use model::steps::{DiskSpeedCheckRequest, DiskSpeedCheckResponse};
use rustix::fs::{Mode, OFlags};

use super::context::StepOutcome;

const WRITERS: u64 = 2;
/// Writes of each writer.
const WRITES: u64 = 5000;
/// Alignment and length of direct writes. Units: bytes.
const BLOCK: usize = 4096;
/// A slower disk has fewer writes: the percentile is known by then.
const TIME: Duration = Duration::from_mins(1);

pub(super) async fn run(arguments: &[String]) -> Result<StepOutcome, String> {
    let [request, timeout] = arguments else {
        return Err(format!("expected two arguments, got {}", arguments.len()));
    };
    let seconds = timeout.parse().unwrap_or(f64::NAN);
    let timeout = Duration::try_from_secs_f64(seconds)
        .map_err(|error| format!("timeout {timeout:?}: {error}"))?;
    let request: DiskSpeedCheckRequest =
        serde_json::from_str(request).map_err(|error| format!("unexpected argument: {error}"))?;
    let path = request.path;
    // Writers cannot be cancelled: those of a disk that hangs stay, and the next check waits for the disk, too.
    let (slowest, problem) = match tokio::time::timeout(timeout, slowest(&path)).await {
        Ok(Ok(slowest)) => (slowest, None),
        Ok(Err(problem)) => (Duration::ZERO, Some(problem)),
        Err(_) => (
            Duration::ZERO,
            Some(format!("{path}: no result within {timeout:?}")),
        ),
    };
    // Below a millisecond is a result, too; none is the peer's for a failure.
    let io_sync_duration = match problem {
        None => i64::try_from(slowest.as_millis())
            .unwrap_or(i64::MAX)
            .max(1),
        Some(_) => 0,
    };
    // The service records a failure by the path.
    let mut outcome = StepOutcome::json(&DiskSpeedCheckResponse {
        io_sync_duration,
        path,
    })?;
    if let Some(problem) = problem {
        (outcome.exit_code, outcome.error) = (-1, problem);
    }
    Ok(outcome)
}

/// The worst of the writers' 99th percentiles.
async fn slowest(path: &str) -> Result<Duration, String> {
    let writers = (0..WRITERS).map(|writer| {
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || latency(Path::new(&path), writer * WRITES))
    });
    let mut slowest = Duration::ZERO;
    for latency in futures_util::future::join_all(writers).await {
        let latency = latency.map_err(|error| error.to_string())?;
        slowest = slowest.max(latency.map_err(|error| format!("{path}: {error}"))?);
    }
    Ok(slowest)
}

/// The 99th percentile of a writer that begins at block `first`.
fn latency(path: &Path, first: u64) -> std::io::Result<Duration> {
    let file = open(path)?;
    let mut memory = vec![0; 2 * BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    let block = &mut memory[start..start + BLOCK];
    let begin = Instant::now();
    let mut durations = Vec::new();
    for number in first..first + WRITES {
        let offset = number * BLOCK as u64;
        if rustix::io::pread(&file, &mut *block, offset)? != BLOCK {
            break;
        }
        let write = Instant::now();
        rustix::io::pwrite(&file, block, offset)?;
        rustix::fs::fdatasync(&file)?;
        durations.push(write.elapsed());
        if begin.elapsed() > TIME {
            break;
        }
    }
    durations.sort_unstable();
    let percentile = durations.get(durations.len() * 99 / 100).copied();
    percentile.ok_or_else(|| std::io::Error::other("the disk is too small"))
}

/// File systems in memory know no direct access; then the cache is flushed, which is the same to fdatasync.
fn open(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags | OFlags::DIRECT, Mode::empty()) {
        Err(rustix::io::Errno::INVAL) => Ok(rustix::fs::open(path, flags, Mode::empty())?),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_disk_keeps_its_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let content: Vec<u8> = (0..=250).cycle().take(200 * BLOCK).collect();
        std::fs::write(file.path(), &content).unwrap();
        let request = serde_json::json!({ "path": file.path() }).to_string();
        // The second writer's blocks are beyond the end.
        let small = run(&[request, "480.00".to_owned()]).await.unwrap();
        assert!(small.error.contains("too small"), "{small:?}");
        assert!(latency(file.path(), 0).unwrap() > Duration::ZERO);
        assert_eq!(std::fs::read(file.path()).unwrap(), content);
    }

    #[tokio::test]
    async fn a_missing_disk_is_named() {
        let request = r#"{"path":"/no/disk"}"#.to_owned();
        let outcome = run(&[request, "480.00".to_owned()]).await.unwrap();
        assert!(outcome.error.contains("/no/disk"), "{outcome:?}");
        assert_eq!(outcome.exit_code, -1);
        assert_eq!(outcome.output, r#"{"path":"/no/disk"}"#);
    }

    #[tokio::test]
    async fn a_disk_that_hangs_is_a_failure() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let length = 800 * BLOCK as u64;
        file.as_file().set_len(length).unwrap();
        let request = serde_json::json!({ "path": file.path() }).to_string();
        let outcome = run(&[request.clone(), "0.000001".to_owned()])
            .await
            .unwrap();
        assert_eq!(outcome.exit_code, -1);
        assert!(
            outcome.error.contains("no result within 1µs"),
            "{outcome:?}"
        );
        for wrong in ["", "x", "-1", "inf", "1e99"] {
            let error = run(&[request.clone(), wrong.to_owned()]).await.unwrap_err();
            assert!(error.contains("timeout"), "{error}");
        }
    }
}
