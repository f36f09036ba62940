//! Cost of processes, from /proc.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Units: ticks a second, of /proc. Linux has reported this number on every architecture for decades.
pub(super) const TICKS_PER_SECOND: f64 = 100.0;

/// User and system time of a process.
pub(super) fn cpu_ticks(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    ticks_of(&text).with_context(|| format!("{path} is malformed"))
}

/// User and system time of this process's exited children and their descendants.
pub(super) fn children_ticks() -> Result<u64> {
    let path = "/proc/self/stat";
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    ticks_at(&text, 13).with_context(|| format!("{path} is malformed"))
}

/// User and system time of a line of /proc/PID/stat; the program's name may hold blanks and brackets.
fn ticks_of(stat: &str) -> Option<u64> {
    ticks_at(stat, 11)
}

/// The sum of two fields of such a line; `place` is the index of the first after the name.
fn ticks_at(stat: &str, place: usize) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(place);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Resident memory of a process.
pub(super) fn resident_kib(pid: u32) -> Option<u32> {
    kib_of("VmRSS:", &format!("/proc/{pid}/status"))
}

/// Resident memory that no file backs.
pub(super) fn private_kib(pid: u32) -> Option<u32> {
    kib_of("RssAnon:", &format!("/proc/{pid}/status"))
}

/// Peak resident memory of a process, since [`forget_peak`] or its start.
pub(super) fn peak_kib(pid: u32) -> Option<u32> {
    kib_of("VmHWM:", &format!("/proc/{pid}/status"))
}

/// Resets the peak; where that is forbidden, it stays the one since the start.
pub(super) fn forget_peak(pid: u32) {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").ok();
}

/// A percentile of sorted durations. Units: milliseconds.
pub(super) fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(0.0, Duration::as_secs_f64) * 1000.0
}

/// A process and its children.
pub(super) fn family(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|id| id.parse().ok());
    std::iter::once(pid).chain(children).collect()
}

/// The machine of the numbers: processors, memory, kernel, and the load of other processes.
pub(super) fn machine() -> String {
    let cores = cores();
    let kib = kib_of("MemTotal:", "/proc/meminfo").unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let gib = f64::from(kib) / f64::from(1 << 20);
    let kernel = kernel.trim();
    format!("{cores} cores, {gib:.1} GiB, Linux {kernel}, load {load} before")
}

/// Number of hardware threads.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn kib_of(name: &str, path: &str) -> Option<u32> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;
    use crate::command::run;

    #[test]
    fn ticks_are_found_after_any_name() {
        let stat = "42 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 700 50 0 0 20 0 5 0 1 2 3";
        assert_eq!(ticks_of(stat), Some(750));
        assert_eq!(ticks_at(stat, 13), Some(0));
        assert!(cpu_ticks(std::process::id()).is_ok());
    }

    #[test]
    fn memory_and_machine_are_read() {
        let own = std::process::id();
        assert!(resident_kib(own).unwrap() > 0);
        assert!(peak_kib(own).unwrap() > 0);
        assert!(private_kib(own).unwrap() > 0);
        assert!(machine().contains(" cores, "));
    }

    #[test]
    fn a_family_includes_children() {
        let mut shell = Command::new("sh");
        let mut shell = shell.args(["-c", "sleep 600 & wait"]).spawn().unwrap();
        let child = loop {
            match family(shell.id())[..] {
                [_, child] => break child,
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        run(Command::new("kill").arg(child.to_string())).unwrap();
        shell.wait().unwrap();
    }
}
