//! Limits of each process.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::spec::Limits;

/// Units: bytes.
const STACK_BYTES: u64 = 64 << 20;
/// Files that a process may have open.
const OPEN_FILES: u64 = 4096;

/// Sets them. Address space is not among them: runtimes like Go's reserve much more of it than they use.
///
/// Errors: a hard limit is lower than 0, which no kernel has; those of the kernel.
pub(super) fn set(limits: &SandboxLimits, own_processes: bool) -> io::Result<()> {
    // Processor time of one process with a thread on each of many processors.
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
    // Counted per user: one that the service shares would count its threads, too. Init is one more.
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
