//! Progress lines: a line for each host and for the cluster whenever its state changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::Value;

use super::findings::{list, name_of};
use crate::terminal::print;

/// The last printed state of each host.
#[derive(Debug)]
pub(super) struct Progress {
    began: Instant,
    shown: BTreeMap<String, String>,
    /// All states so far.
    seen: BTreeSet<(String, String)>,
    /// Names by host id: hosts without an inventory have none on the server.
    names: BTreeMap<String, String>,
    is_quiet: bool,
}

impl Progress {
    pub(super) fn new(is_quiet: bool, names: BTreeMap<String, String>) -> Self {
        Self {
            began: Instant::now(),
            shown: BTreeMap::new(),
            seen: BTreeSet::new(),
            names,
            is_quiet,
        }
    }

    /// Prints the changes of a cluster's record; true if a state is new. States that alternate are none: two machines
    /// with one identity change a host for ever.
    pub(super) fn show(&mut self, cluster: &Value) -> bool {
        let mut states: Vec<(String, String)> = list(&cluster["hosts"])
            .map(|host| (self.label(host), state(host, "current_stage")))
            .collect();
        let name = cluster["name"].as_str().unwrap_or_default().to_owned();
        states.push((
            format!("cluster {name}"),
            state(cluster, "finalizing_stage"),
        ));
        let mut is_new = false;
        for (name, state) in states {
            if self.shown.get(&name) == Some(&state) {
                continue;
            }
            self.line(&format!("{name:<24} {state}"));
            is_new |= self.seen.insert((name.clone(), state.clone()));
            self.shown.insert(name, state);
        }
        is_new
    }

    fn label(&self, host: &Value) -> String {
        let id = host["id"].as_str().unwrap_or_default();
        let name = self
            .names
            .get(id)
            .map_or_else(|| name_of(host), String::as_str);
        name.to_owned()
    }

    /// Prints a line with the time since the start.
    pub(super) fn line(&self, text: &str) {
        if !self.is_quiet {
            print(&format!(
                "{:>7.1} s  {text}",
                self.began.elapsed().as_secs_f64()
            ));
        }
    }
}

/// Status, and the stage of an installation.
fn state(record: &Value, stage: &str) -> String {
    let status = record["status"].as_str().unwrap_or_default();
    let progress = &record["progress"];
    let stage = progress[stage].as_str().unwrap_or_default();
    let info = progress["progress_info"].as_str().unwrap_or_default();
    [status, stage, info]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changes_are_shown() {
        let mut progress = Progress::new(true, BTreeMap::new());
        let cluster = |stage: &str| {
            json!({ "name": "c", "status": "installing", "hosts": [
                { "requested_hostname": "a", "status": "installing", "progress": { "current_stage": stage } }] })
        };
        assert!(progress.show(&cluster("Installing")));
        assert!(!progress.show(&cluster("Installing")));
        assert!(progress.show(&cluster("Rebooting")));
        assert!(!progress.show(&cluster("Installing")), "seen before");
        assert!(!progress.show(&cluster("Rebooting")), "seen before");
        assert_eq!(progress.shown["a"], "installing, Rebooting");
    }
}
