//! Namespaces, each by itself: where one cannot be had, the others help all the same.

use std::fs;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use crate::mechanisms::{ConfinementReport, Mechanism};

/// What could be had of what the rest depends on.
pub(super) struct Namespaces {
    pub(super) mounts: bool,
    pub(super) processes: bool,
}

impl Namespaces {
    /// Enters new namespaces; children are in the PID namespace.
    pub(super) fn enter(report: &mut ConfinementReport) -> Self {
        // Root enters the others by itself, and can then choose a user. Root without capabilities must not map itself
        // into a user namespace: it has the other namespaces then, but no files could be made in new mounts.
        let user = if is_administrator() { Ok(()) } else { user() };
        report.note(Mechanism::OwnNetwork, unshare(UnshareFlags::NEWNET));
        report.note(
            Mechanism::OwnIpc,
            unshare(UnshareFlags::NEWIPC | UnshareFlags::NEWUTS),
        );
        let processes = report.note(Mechanism::OwnProcesses, unshare(UnshareFlags::NEWPID));
        let mounts = match user.and_then(|()| unshare(UnshareFlags::NEWNS)) {
            Ok(()) => true,
            Err(error) => {
                report.note(Mechanism::OwnRoot, Err::<(), _>(error));
                false
            }
        };
        Self {
            mounts,
            processes: processes.is_some(),
        }
    }
}

fn is_administrator() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// A user namespace in which this process is root. The kernel's user stays the same.
fn user() -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    // Who may not set groups may map its own: CVE-2014-8989.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only FILES can break something, for threads that share descriptors; no flags here hold it, and the
    // process has one thread.
    #[expect(unsafe_code, reason = "proof above")]
    unsafe {
        rustix::thread::unshare_unsafe(flags)?;
    }
    Ok(())
}
