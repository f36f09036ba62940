//! Resource limits per process.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::spec::SandboxLimits;

/// Units: bytes.
const STACK_BYTES: u64 = 64 << 20;
/// Open files per process.
const OPEN_FILES: u64 = 4096;

/// Sets the limits, except of address space: runtimes like Go's reserve much more of it than they use.
///
/// Errors: those of the kernel.
pub(super) fn set(limits: &SandboxLimits, own_processes: bool) -> io::Result<()> {
    // CPU time of one process with threads on up to 64 processors.
    let seconds = limits.time.as_secs().saturating_mul(64).max(1);
    let mut table = vec![
        (Resource::Core, 0),
        (Resource::Data, limits.memory_bytes),
        (Resource::Stack, STACK_BYTES.min(limits.memory_bytes)),
        (Resource::Fsize, limits.disk_bytes),
        (Resource::Nofile, OPEN_FILES),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Nice, 0),
        (Resource::Rtprio, 0),
        (Resource::Cpu, seconds),
    ];
    // Counted per user: a user shared with the service would count its threads, too. One more for init.
    if own_processes {
        table.push((Resource::Nproc, u64::from(limits.processes) + 1));
    }
    for (resource, value) in table {
        let hard = getrlimit(resource).maximum;
        let value = Some(hard.map_or(value, |hard| hard.min(value)));
        let limit = Rlimit {
            current: value,
            maximum: value,
        };
        setrlimit(resource, limit)?;
    }
    Ok(())
}
