//! Descendants of the guard.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

/// Resource usage of all descendants.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// Processes and threads.
    pub(super) tasks: u64,
    /// Resident memory. Units: bytes.
    pub(super) memory_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    parent: i32,
    tasks: u64,
    pages: u64,
}

/// Current resource usage of the descendants.
pub(super) fn usage() -> Usage {
    let processes = all();
    let page_bytes = rustix::param::page_size() as u64;
    let mut usage = Usage::default();
    for pid in descendants(&processes) {
        if let Some(process) = processes.get(&pid) {
            usage.tasks += process.tasks;
            usage.memory_bytes += process.pages * page_bytes;
        }
    }
    usage
}

/// Kills all descendants and returns when none is left.
///
/// In a PID namespace the kernel kills all processes with its init. Without one, orphans are reparented to the
/// subreaper, so that each round finds those missed before; the process limit ends the race with a forking program.
pub(super) fn kill_all() {
    loop {
        for pid in descendants(&all()) {
            if let Some(pid) = Pid::from_raw(pid) {
                // It may have exited meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Pause between two rounds, for the kernel to end processes.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

fn descendants(processes: &HashMap<i32, Process>) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, process) in processes {
        children.entry(process.parent).or_default().push(*pid);
    }
    let mut found = Vec::new();
    let mut open = vec![getpid().as_raw_nonzero().get()];
    while let Some(pid) = open.pop() {
        // Removed, so that pids reused between two reads cannot form a cycle.
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(child);
            open.push(child);
        }
    }
    found
}

fn all() -> HashMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse(&stat)?))
    })
    .collect()
}

/// Parses `/proc/PID/stat`. The name in parentheses may contain any character, so fields are counted after the last
/// parenthesis. Source: proc_pid_stat(5).
fn parse(stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // The first of these is field 3.
    let field = |number: usize| fields.get(number - 3);
    Some(Process {
        parent: field(4)?.parse().ok()?,
        tasks: field(20)?.parse().ok()?,
        pages: field(24)?.parse().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_names_cannot_forge_fields() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let stat = format!("7 (a) R 1 (b)) S {}", numbers.join(" "));
        let process = parse(&stat).unwrap();
        assert_eq!((process.parent, process.tasks, process.pages), (4, 20, 24));
        assert!(parse("").is_none());
    }
}
