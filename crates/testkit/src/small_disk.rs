//! A small disk: a tmpfs that may be full.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// A tmpfs in the mount namespace of a child, which ends with it.
#[derive(Debug)]
pub struct SmallDisk {
    holder: Child,
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk over `folder`, in a namespace of its own. Units: bytes.
    ///
    /// Panics: `unshare` or `mount` is missing.
    pub async fn mount(folder: &Path, size: usize) -> Self {
        let script = "mount -t tmpfs -o size=\"$2\" none \"$1\" && exec sleep 3600";
        let holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount"])
            .args(["sh", "-c", script, "sh"])
            .args([folder.as_os_str(), size.to_string().as_ref()])
            .spawn()
            .expect("unshare starts");
        let process = PathBuf::from(format!("/proc/{}", holder.id()));
        let path = folder.to_str().expect("the folder's path is UTF-8");
        while !std::fs::read_to_string(process.join("mountinfo")).is_ok_and(|it| it.contains(path))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let path = process.join("root").join(path.trim_start_matches('/'));
        Self { holder, path }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills the disk, as another program would.
    ///
    /// Panics: the file cannot be made.
    pub fn fill(&self) {
        let file = File::create(self.path.join("filler"));
        let mut file = file.expect("the file is made");
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    /// Removes the file of [`Self::fill`].
    ///
    /// Panics: the disk was not filled.
    pub fn free_space(&self) {
        std::fs::remove_file(self.path.join("filler")).expect("the disk was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}
