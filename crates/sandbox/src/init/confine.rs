//! Steps of confinement, in an order in which each is still permitted.

use std::io;
use std::path::Path;

use rustix::fs::Gid;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{
    DumpableBehavior, Signal, chdir, pivot_root, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::{files, limits, syscalls};
use crate::init_request::InitRequest;
use crate::mechanisms::{ConfinementReport, Mechanism};
use crate::namespaces::unshare;

/// Upper bound of capability numbers.
const CAPABILITIES: u32 = 64;

/// Confines this process and its descendants.
///
/// Errors: an indispensable step failed.
pub(super) fn confine(order: &InitRequest) -> io::Result<ConfinementReport> {
    let mut report = order.report.clone();
    close_others()?;
    let has_proc = match &order.root {
        Some(root) => enter(root)?,
        None => false,
    };
    report.note(
        Mechanism::Limits,
        limits::set(&order.spec.limits, order.own_processes),
    );
    drop_bounding_set();
    match order.user {
        Some(user) => {
            report.note(Mechanism::OwnUser, become_user(user));
        }
        None if order.is_root => {
            let reason = "root, and no user can be chosen";
            report.note(Mechanism::OwnUser, Err::<(), _>(reason));
        }
        // Keeps the unprivileged user of the service.
        None => {}
    }
    report.note(
        Mechanism::NoCapabilities,
        set_capabilities(None, NO_CAPABILITIES),
    );
    // The program must not read or change its init. After the change of user, which resets both.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Required by Landlock and seccomp.
    report.note(Mechanism::NoNewPrivileges, set_no_new_privs(true));
    files::restrict(&order.spec, has_proc, &mut report);
    // Last: the filter forbids system calls of the other steps.
    report.note(Mechanism::Seccomp, syscalls::filter());
    Ok(report)
}

const NO_CAPABILITIES: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// Pivots to `root` and unmounts the old root; true if a new `/proc` is mounted.
fn enter(root: &Path) -> io::Result<bool> {
    // A namespace of its own: the guard still needs the old root to copy the working folder.
    unshare(UnshareFlags::NEWNS)?;
    chdir(root)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    // Shows only this PID namespace. Fails in containers that mask parts of /proc.
    let has_proc = mount("proc", "proc", "proc", flags, None).is_ok();
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    Ok(has_proc)
}

fn become_user(user: u32) -> io::Result<()> {
    let group = Gid::from_raw(user);
    let user = rustix::fs::Uid::from_raw(user);
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    Ok(set_thread_res_uid(user, user, user)?)
}

/// Drops the bounding set, so that `exec` as root regains no capabilities. Without CAP_SETPCAP nothing is dropped.
fn drop_bounding_set() {
    for number in 0..CAPABILITIES {
        let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number));
    }
}

/// Closes inherited descriptors of the service on `exec`.
fn close_others() -> io::Result<()> {
    // SAFETY: the range is above the standard descriptors; they stay open in this process, which owns the only one that
    // it uses.
    #[expect(unsafe_code, reason = "proof above")]
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3_u32,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}
