//! Root folder of a program: a tmpfs of the disk limit, with bind mounts of readable files.
//!
//! A tmpfs limits all writes, including deleted files that are still open, which sampling would miss.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, mount_remount,
};
use rustix::process::{getpid, getuid};
use rustix::thread::{CapabilitySet, capabilities};

use super::folder;
use crate::spec::SandboxSpec;

/// Harmless device files that programs expect.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];
/// Inode limit of the tmpfs.
const INODES: u32 = 100_000;
/// First uid of an unused range. Source: systemd, UIDS-GIDS: 1879048192 and above are unused.
const FIRST_USER: u32 = 0x7000_0000;

/// A root folder, mounted on the temporary folder of the spec.
pub(super) struct Root {
    path: PathBuf,
    user: Option<u32>,
}

impl Root {
    /// Mounts the root folder; call it in a mount namespace.
    pub(super) fn build(spec: &SandboxSpec) -> io::Result<Self> {
        // Otherwise mounts would propagate to the service's namespace.
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )?;
        let root = Self {
            path: spec.scratch.clone(),
            user: user(),
        };
        let data = format!(
            "size={},nr_inodes={INODES},mode=755",
            spec.limits.disk_bytes
        );
        let data = std::ffi::CString::new(data)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("tmpfs", &root.path, "tmpfs", flags, data.as_c_str())?;
        for readable in &spec.readable {
            root.bind(readable, true)?;
        }
        for device in DEVICES {
            root.bind(Path::new(device), false)?;
        }
        fs::create_dir_all(root.inside(Path::new("/proc")))?;
        for folder in [&spec.work, &spec.scratch] {
            let inside = root.inside(folder);
            fs::create_dir_all(&inside)?;
            if let Some(user) = root.user {
                std::os::unix::fs::chown(&inside, Some(user), Some(user))?;
            }
        }
        let work = root.inside(&spec.work);
        folder::copy(&spec.work, &work, root.user, spec.limits.disk_bytes)?;
        Ok(root)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// User of the program, if the guard may choose one.
    pub(super) fn user(&self) -> Option<u32> {
        self.user
    }

    /// Copies the program's working folder back to the service's.
    pub(super) fn keep(&self, spec: &SandboxSpec) -> io::Result<()> {
        folder::empty(&spec.work)?;
        let inside = self.inside(&spec.work);
        folder::copy(&inside, &spec.work, None, spec.limits.disk_bytes)
    }

    fn inside(&self, path: &Path) -> PathBuf {
        self.path.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn bind(&self, path: &Path, is_read_only: bool) -> io::Result<()> {
        let inside = self.inside(path);
        if path.is_dir() {
            fs::create_dir_all(&inside)?;
        } else {
            fs::create_dir_all(inside.parent().unwrap_or(&inside))?;
            fs::write(&inside, "")?;
        }
        mount_bind(path, &inside)?;
        if is_read_only {
            // Locked flags of the source have to be repeated.
            let flags = MountFlags::BIND
                | MountFlags::RDONLY
                | MountFlags::NOSUID
                | MountFlags::NODEV
                | kept_flags(path)?;
            mount_remount(&inside, flags, "")?;
        }
        Ok(())
    }
}

fn kept_flags(path: &Path) -> io::Result<MountFlags> {
    let has = statvfs(path)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = pairs.into_iter().filter(|(found, _)| has.contains(*found));
    Ok(kept.fold(MountFlags::empty(), |all, (_, flag)| all | flag))
}

/// A uid unique to this process; none if it may not choose one.
fn user() -> Option<u32> {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::CHOWN;
    let sets = capabilities(None).ok()?;
    if !getuid().is_root() || !sets.effective.contains(needed) || !has_all_users() {
        return None;
    }
    let pid = u32::try_from(getpid().as_raw_nonzero().get()).ok()?;
    Some(FIRST_USER + pid)
}

/// Whether all uids are mapped: this is no restricted user namespace.
fn has_all_users() -> bool {
    fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]))
}
