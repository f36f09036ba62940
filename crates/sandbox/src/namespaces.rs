//! Namespaces, each entered separately: a missing one does not disable the others.

use std::fs;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use crate::mechanisms::{ConfinementReport, Mechanism};

/// Available namespaces that later steps depend on.
pub(crate) struct Namespaces {
    pub(crate) mounts: bool,
    pub(crate) processes: bool,
}

impl Namespaces {
    /// Enters new namespaces; children are in the PID namespace.
    pub(crate) fn enter(report: &mut ConfinementReport) -> Self {
        // With CAP_SYS_ADMIN no user namespace is needed, and a user can be chosen later. Root without capabilities must
        // not map itself into a user namespace: it could not create files in new mounts.
        let user = if has_sys_admin() { Ok(()) } else { user() };
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

fn has_sys_admin() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Enters a user namespace in which this process is root. Its user outside stays the same.
fn user() -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    // Mapping the own group requires setgroups to be denied: CVE-2014-8989.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only FILES is unsafe, for threads that share descriptors; no caller passes it, and the process has one
    // thread.
    #[expect(unsafe_code, reason = "proof above")]
    unsafe {
        rustix::thread::unshare_unsafe(flags)?;
    }
    Ok(())
}
