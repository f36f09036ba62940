//! The descendants of the guard.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

/// What descendants use together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// Processes and their threads.
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

/// What the descendants of this process use now.
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

/// Kills all descendants, and returns when none is left.
///
/// In a PID namespace the kernel kills all with its init. Without one, orphans become children of the subreaper, so
/// that each round finds what the one before has missed; the limit of processes ends the race with one that forks.
pub(super) fn kill_all() {
    loop {
        for pid in descendants(&all()) {
            if let Some(pid) = Pid::from_raw(pid) {
                // It may have ended meanwhile.
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

/// Between two rounds: the kernel takes a moment to end a process.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

fn descendants(processes: &HashMap<i32, Process>) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, process) in processes {
        children.entry(process.parent).or_default().push(*pid);
    }
    let mut found = Vec::new();
    let mut open = vec![getpid().as_raw_nonzero().get()];
    while let Some(pid) = open.pop() {
        // Taken out, so that pids that were used again between two reads make no circle.
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

/// Source: proc_pid_stat(5). The name in parentheses may hold anything, so fields are counted behind the last one.
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
    fn names_cannot_pretend_to_be_fields() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let stat = format!("7 (a) R 1 (b)) S {}", numbers.join(" "));
        let process = parse(&stat).unwrap();
        assert_eq!((process.parent, process.tasks, process.pages), (4, 20, 24));
        assert!(parse("").is_none());
    }
}
