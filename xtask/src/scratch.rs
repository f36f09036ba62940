//! Folders and ports for one run.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};

const PREFIX: &str = "atoll-run-";
/// Below the ephemeral ports of outgoing connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A folder that is removed on drop. Those of killed runs are removed by the next one.
#[derive(Debug)]
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// A new folder that every user may enter: under root, Postgres runs as another one.
    pub(crate) fn new() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let temp = std::env::temp_dir();
        sweep(&temp);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = temp.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Self(path))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}

/// Removes folders of dead processes.
fn sweep(temp: &Path) {
    for entry in fs::read_dir(temp).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if let Some(pid) = pid
            && !Path::new("/proc").join(pid).exists()
        {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// The first of `count` free ports in a row on loopback.
pub(crate) fn free_ports(count: u16) -> Result<u16> {
    let span = u32::from(PORTS.end - PORTS.start - count);
    // Concurrent runs start at different ports.
    let start = std::process::id().wrapping_mul(97) % span;
    (0..span)
        .map(|step| {
            PORTS.start + u16::try_from((start + step * u32::from(count)) % span).unwrap_or(0)
        })
        .find(|first| (*first..first + count).all(is_free))
        .with_context(|| format!("no {count} ports in a row are free"))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_on_drop() {
        let scratch = ScratchFolder::new().unwrap();
        let other = ScratchFolder::new().unwrap();
        assert_ne!(scratch.path(), other.path());
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn threads_get_folders_of_their_own() {
        let made = || {
            (0..50)
                .map(|_| ScratchFolder::new().unwrap())
                .collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(made)).collect();
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }

    #[test]
    fn ports_in_use_are_skipped() {
        let first = free_ports(6).unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 2)).unwrap();
        let next = free_ports(6).unwrap();
        assert!(!(next..next + 6).contains(&(first + 2)));
    }
}
