//! The root folder of a program: a tmpfs as large as it may write, with what it may read mounted into it.
//!
//! A tmpfs bounds what is written for certain, deleted files that are still open included; sampling would not see those.

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
use crate::spec::Spec;

/// Files that programs expect and that are harmless.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];
/// Files in the tmpfs.
const INODES: u32 = 100_000;
/// The first of the users that nothing else has. Source: systemd, UIDS-GIDS: 1879048192 and above are unused.
const FIRST_USER: u32 = 0x7000_0000;

/// A root folder, mounted where the temporary folder of the spec is.
pub(super) struct Root {
    path: PathBuf,
    user: Option<u32>,
}

impl Root {
    /// Mounts it; to be called in a mount namespace.
    pub(super) fn build(spec: &SandboxSpec) -> io::Result<Self> {
        // Otherwise the mounts would appear in the service's namespace.
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

    /// The user that the program gets, where the guard may choose one.
    pub(super) fn user(&self) -> Option<u32> {
        self.user
    }

    /// Puts what is in the program's working folder into the service's.
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
            // Flags of the source may be locked, and have to be named again then.
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

/// A user that nothing else has, while this process lives; none where it may not choose.
fn user() -> Option<u32> {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::CHOWN;
    let sets = capabilities(None).ok()?;
    if !getuid().is_root() || !sets.effective.contains(needed) || !has_all_users() {
        return None;
    }
    let pid = u32::try_from(getpid().as_raw_nonzero().get()).ok()?;
    Some(FIRST_USER + pid)
}

/// Whether this is no user namespace that knows a few users only.
fn has_all_users() -> bool {
    fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]))
}
