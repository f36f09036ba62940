//! Folders of one test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};

use crate::process;

const PREFIX: &str = "atoll-system-test-";

/// A folder that is removed on drop. Those of killed test programs are removed by the next run.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder that every user may enter: under root, Postgres runs as another one.
    ///
    /// Errors: it cannot be made.
    pub fn new() -> Result<Self> {
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
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    #[expect(clippy::print_stderr, reason = "shown with the failure of a test")]
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
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        if pid.is_some_and(|pid| !process::lives(pid)) {
            process::end_postgres_of(&entry.path().join("data"));
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
