//! What processes cost, as /proc tells.

use std::fs;

use anyhow::{Context as _, Result};

/// Units: ticks a second, of /proc. Linux has shown this number to programs on every architecture for decades.
pub(super) const TICKS_PER_SECOND: f64 = 100.0;

/// User and system time that a process has taken.
pub(super) fn cpu_ticks(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    ticks_of(&text).with_context(|| format!("{path} has another shape"))
}

/// User and system time that ended children of this process have taken, and theirs.
pub(super) fn children_ticks() -> Result<u64> {
    let path = "/proc/self/stat";
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    ticks_at(&text, 13).with_context(|| format!("{path} has another shape"))
}

/// User and system time of a line of /proc/PID/stat; the program's name may hold blanks and brackets.
fn ticks_of(stat: &str) -> Option<u64> {
    ticks_at(stat, 11)
}

/// Two numbers of such a line, the first behind so many others after the name.
fn ticks_at(stat: &str, place: usize) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(place);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Memory that a process has now.
pub(super) fn resident_kib(pid: u32) -> Option<u32> {
    kib_of("VmRSS:", &format!("/proc/{pid}/status"))
}

/// What of that is not of files.
pub(super) fn private_kib(pid: u32) -> Option<u32> {
    kib_of("RssAnon:", &format!("/proc/{pid}/status"))
}

/// The most memory that a process has had, since [`forget_peak`] or its start.
pub(super) fn peak_kib(pid: u32) -> Option<u32> {
    kib_of("VmHWM:", &format!("/proc/{pid}/status"))
}

/// Lets the peak begin anew; where that is forbidden, it stays the one since the start.
pub(super) fn forget_peak(pid: u32) {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").ok();
}

/// A process and those that it has started.
pub(super) fn family(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|id| id.parse().ok());
    std::iter::once(pid).chain(children).collect()
}

/// What stands between numbers to be compared: processors, memory, kernel, and how busy others keep it.
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

/// How many threads run at once.
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
    fn ticks_are_found_behind_any_name() {
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
    fn a_family_has_its_children() {
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
