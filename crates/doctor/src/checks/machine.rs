//! Disks and memory of this machine.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::findings::SubjectFinding;
use crate::site::{DataFolder, SiteFacts};

const MIB: u64 = 1024 * 1024;
/// Below this part of the size, the free space of a disk is a warning.
const FREE_PART: u64 = 10;
/// Source: proc(5).
const MEMINFO: &str = "/proc/meminfo";

pub(super) async fn disks(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    // A hanging network file system hangs in the kernel: not on the runtime.
    let found = tokio::task::spawn_blocking(move || {
        let mut known = BTreeSet::new();
        let folders = site.folders.iter();
        // One finding for each file system; folders with another demand have their own.
        let folders = folders.filter(|one| {
            let device = existing(&one.path).metadata().map(|it| it.dev());
            device.map_or(true, |device| known.insert((device, one.required_bytes)))
        });
        folders.map(disk).collect()
    });
    found.await.unwrap_or_default()
}

fn disk(folder: &DataFolder) -> SubjectFinding {
    let shown = folder.path.display().to_string();
    let remedy = format!("free or add space for {shown}");
    let found = match rustix::fs::statvfs(existing(&folder.path)) {
        Ok(found) => found,
        Err(error) => {
            let remedy = format!("make {shown} readable");
            return SubjectFinding::failed(shown, format!("cannot be examined: {error}"), remedy);
        }
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let size = found.f_blocks.saturating_mul(found.f_frsize);
    let finding = format!("{} MiB free of {} MiB", free / MIB, size / MIB);
    if free < folder.required_bytes {
        let required = folder.required_bytes.div_ceil(MIB);
        SubjectFinding::failed(shown, format!("{finding}, {required} MiB required"), remedy)
    } else if found.f_files > 0 && found.f_favail == 0 {
        SubjectFinding::failed(shown, "no file can be created: all inodes are used", remedy)
    } else if free < size / FREE_PART {
        SubjectFinding::warning(shown, format!("{finding}, less than a tenth"), remedy)
    } else {
        SubjectFinding::passed(shown, finding)
    }
}

/// The path, or the nearest folder above it that exists.
fn existing(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = path.ancestors().find(|one| one.exists());
    found.unwrap_or(Path::new("/")).to_owned()
}

pub(super) async fn memory(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let Some(required) = site.memory_bytes else {
        return Vec::new();
    };
    let text = tokio::fs::read_to_string(MEMINFO).await.unwrap_or_default();
    vec![memory_in(&text, required)]
}

fn memory_in(meminfo: &str, required: u64) -> SubjectFinding {
    let value = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim_end_matches("kB").trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    let Some((total, available)) = value("MemTotal:").zip(value("MemAvailable:")) else {
        let remedy = "check that /proc is mounted";
        return SubjectFinding::warning("", format!("{MEMINFO} cannot be read"), remedy);
    };
    let finding = format!("{} MiB available of {} MiB", available / MIB, total / MIB);
    let need = required / MIB;
    if total < required {
        let remedy = format!("give this machine {need} MiB");
        SubjectFinding::failed("", format!("{finding}, {need} MiB required"), remedy)
    } else if available < required / FREE_PART {
        let remedy = "end other programs on this machine, or give it more memory";
        SubjectFinding::warning("", finding, remedy)
    } else {
        SubjectFinding::passed("", finding)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::CheckStatus;

    fn folder(path: &Path, required_bytes: u64) -> DataFolder {
        DataFolder {
            path: path.to_owned(),
            required_bytes,
        }
    }

    #[test]
    fn too_little_space_fails() {
        let dir = tempfile::tempdir().unwrap();
        // Not yet made: the place counts.
        let path = dir.path().join("a/b");
        assert_ne!(disk(&folder(&path, 0)).status, CheckStatus::Failed);
        let found = disk(&folder(&path, u64::MAX));
        assert_eq!(found.status, CheckStatus::Failed);
        assert!(found.remedy.contains(path.to_str().unwrap()), "{found:?}");
    }

    #[tokio::test]
    async fn each_file_system_has_one_finding() {
        let dir = tempfile::tempdir().unwrap();
        let found = async |folders: [(&str, u64); 2]| {
            let folders = folders.map(|(name, required)| folder(&dir.path().join(name), required));
            let site = SiteFacts {
                folders: folders.into(),
                ..SiteFacts::default()
            };
            disks(Arc::new(site)).await.len()
        };
        assert_eq!(found([("a", 1), ("b/c", 1)]).await, 1);
        assert_eq!(found([("a", 1), ("b/c", 2)]).await, 2);
        assert_eq!(found([(".", 1), ("/proc", 1)]).await, 2);
    }

    #[test]
    fn a_full_disk_fails() {
        let dir = tempfile::tempdir().unwrap();
        let mut mounting = Command::new("mount");
        mounting
            .args(["-t", "tmpfs", "-o", "size=1m", "none"])
            .arg(dir.path());
        if !mounting
            .output()
            .is_ok_and(|output| output.status.success())
        {
            // Only root may mount.
            return;
        }
        let before = disk(&folder(dir.path(), 4096)).status;
        let written = std::fs::write(dir.path().join("file"), vec![0; 2 << 20]);
        let after = disk(&folder(dir.path(), 4096));
        Command::new("umount").arg(dir.path()).status().unwrap();
        assert!(written.is_err());
        assert_eq!(
            (before, after.status),
            (CheckStatus::Passed, CheckStatus::Failed)
        );
        assert!(
            after.finding.starts_with("0 MiB free of 1 MiB"),
            "{after:?}"
        );
    }

    #[test]
    fn too_little_memory_fails() {
        let text = |available: u64| {
            format!("MemTotal:        4096000 kB\nMemFree: 1 kB\nMemAvailable:    {available} kB\n")
        };
        let status = |text: &str, required: u64| memory_in(text, required * MIB).status;
        assert_eq!(status(&text(2_048_000), 4000), CheckStatus::Passed);
        assert_eq!(status(&text(2_048_000), 4001), CheckStatus::Failed);
        assert_eq!(status(&text(100_000), 4000), CheckStatus::Warning);
        assert_eq!(status("", 1), CheckStatus::Warning);
    }
}
