//! Progress of a rehearsal: counters that it moves and others read, and the changes behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use host_sim::Pace;
use serde_json::Value;

use crate::findings::{list, name_of};

/// A change of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RehearsalEvent<'a> {
    /// The machines of the installation are switched on.
    Booting {
        /// Their number.
        hosts: usize,
    },
    /// The server accepted the request to install.
    Accepted,
    /// Machines that join the installed cluster are switched on.
    Joining {
        /// Their number.
        hosts: usize,
    },
    /// A cluster has another state.
    Cluster {
        /// Its name.
        name: &'a str,
        /// Status, and the stage of the installation.
        state: &'a str,
    },
    /// A host has another state.
    Host {
        /// Its name.
        name: &'a str,
        /// Status, and the stage of the installation with its details.
        state: &'a str,
    },
    /// The server refused declared settings of a host.
    Refused {
        /// Name of the host.
        host: &'a str,
        /// The server's reason.
        reason: &'a str,
    },
}

/// The state of a rehearsal at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RehearsalState {
    /// Clusters by their status and stage.
    pub clusters: BTreeMap<String, usize>,
    /// Registered hosts by their status and stage.
    pub hosts: BTreeMap<String, usize>,
    /// Machines that are switched on.
    pub machines: usize,
    /// Simulated time since the first machines were switched on, until the end.
    pub simulated: Duration,
}

type Observer = Box<dyn Fn(Duration, &RehearsalEvent<'_>) + Send + Sync>;

/// Progress that a rehearsal moves and others read. Clones share it.
#[derive(Clone, Default)]
pub struct RehearsalProgress(Arc<SharedProgress>);

#[derive(Default)]
struct SharedProgress {
    observer: Option<Observer>,
    clock: Mutex<SimulatedClock>,
    /// By number of the copy.
    installations: Mutex<BTreeMap<usize, InstallationCounters>>,
}

/// Real times between which simulated time passes.
#[derive(Debug, Clone, Copy, Default)]
struct SimulatedClock {
    began: Option<(Instant, Pace)>,
    ended: Option<Instant>,
}

#[derive(Debug, Clone, Default)]
struct InstallationCounters {
    machines: usize,
    cluster: String,
    hosts: BTreeMap<String, usize>,
}

impl fmt::Debug for RehearsalProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RehearsalProgress")
            .field(&self.now())
            .finish()
    }
}

impl RehearsalProgress {
    /// Progress whose changes are passed to `observer`, which must not block, with the real time since the machines of the
    /// installation were switched on.
    pub fn observed(
        observer: impl Fn(Duration, &RehearsalEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(SharedProgress {
            observer: Some(Box::new(observer)),
            ..SharedProgress::default()
        }))
    }

    /// The state now.
    pub fn now(&self) -> RehearsalState {
        let mut state = RehearsalState {
            simulated: self.simulated(),
            ..RehearsalState::default()
        };
        let installations = self.0.installations.lock();
        for one in installations
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            state.machines += one.machines;
            if !one.cluster.is_empty() {
                *state.clusters.entry(one.cluster.clone()).or_default() += 1;
            }
            for (name, count) in &one.hosts {
                *state.hosts.entry(name.clone()).or_default() += count;
            }
        }
        state
    }

    fn simulated(&self) -> Duration {
        let clock = *self.clock();
        clock.began.map_or(Duration::ZERO, |(began, pace)| {
            let end = clock.ended.unwrap_or_else(Instant::now);
            pace.simulated(end.duration_since(began))
        })
    }

    /// Stops simulated time when the guard is dropped.
    pub(crate) fn stop_on_drop(&self) -> ClockGuard {
        ClockGuard(self.clone())
    }

    fn start(&self, pace: Pace) {
        self.clock()
            .began
            .get_or_insert_with(|| (Instant::now(), pace));
    }

    fn clock(&self) -> std::sync::MutexGuard<'_, SimulatedClock> {
        self.0.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, installation: usize, change: impl FnOnce(&mut InstallationCounters)) {
        let installations = self.0.installations.lock();
        let mut installations = installations.unwrap_or_else(PoisonError::into_inner);
        change(installations.entry(installation).or_default());
    }
}

/// Stops the simulated time of a progress when it is dropped.
pub(crate) struct ClockGuard(RehearsalProgress);

impl Drop for ClockGuard {
    fn drop(&mut self) {
        self.0.clock().ended.get_or_insert_with(Instant::now);
    }
}

/// The states of one installation, the last and all before: only changes are events.
pub(crate) struct StateTracker {
    progress: RehearsalProgress,
    installation: usize,
    began: Instant,
    shown: BTreeMap<String, String>,
    /// All states so far.
    seen: BTreeSet<(String, String)>,
    /// Names by host id: hosts without an inventory have none on the server.
    names: BTreeMap<String, String>,
}

impl StateTracker {
    /// The states of the installation with this number.
    pub(crate) fn new(
        progress: &RehearsalProgress,
        installation: usize,
        names: BTreeMap<String, String>,
    ) -> Self {
        Self {
            progress: progress.clone(),
            installation,
            began: Instant::now(),
            shown: BTreeMap::new(),
            seen: BTreeSet::new(),
            names,
        }
    }

    /// The machines are switched on.
    pub(crate) fn start(&mut self, pace: Pace) {
        self.began = Instant::now();
        self.progress.start(pace);
    }

    /// Passes the changes of a cluster's record on; true if a state is new. States that alternate are none: two machines
    /// with one identity change a host for ever.
    pub(crate) fn show(&mut self, cluster: &Value) -> bool {
        self.count(cluster);
        let mut is_new = false;
        for host in list(&cluster["hosts"]) {
            let (name, state) = (self.label(host).to_owned(), state(host, "current_stage"));
            if let Some(is_first) = self.changed(&name, &state) {
                self.event(&RehearsalEvent::Host {
                    name: &name,
                    state: &state,
                });
                is_new |= is_first;
            }
        }
        let name = cluster["name"].as_str().unwrap_or_default();
        let state = state(cluster, "finalizing_stage");
        if let Some(is_first) = self.changed(&format!("cluster {name}"), &state) {
            self.event(&RehearsalEvent::Cluster {
                name,
                state: &state,
            });
            is_new |= is_first;
        }
        is_new
    }

    /// Passes an event on.
    pub(crate) fn event(&self, event: &RehearsalEvent<'_>) {
        if let RehearsalEvent::Booting { hosts } | RehearsalEvent::Joining { hosts } = event {
            self.progress
                .change(self.installation, |one| one.machines += hosts);
        }
        if let Some(observer) = &self.progress.0.observer {
            observer(self.began.elapsed(), event);
        }
    }

    /// Takes a state over; none if it is that of before, else whether it is the first time.
    fn changed(&mut self, label: &str, state: &str) -> Option<bool> {
        if self.shown.get(label).is_some_and(|shown| shown == state) {
            return None;
        }
        self.shown.insert(label.to_owned(), state.to_owned());
        Some(self.seen.insert((label.to_owned(), state.to_owned())))
    }

    /// Takes the record over into the counters.
    fn count(&self, cluster: &Value) {
        let mut hosts = BTreeMap::new();
        for host in list(&cluster["hosts"]) {
            let [status, stage, _] = parts(host, "current_stage");
            *hosts.entry(joined([status, stage])).or_default() += 1;
        }
        let [status, stage, _] = parts(cluster, "finalizing_stage");
        self.progress.change(self.installation, |one| {
            one.cluster = joined([status, stage]);
            one.hosts = hosts;
        });
    }

    fn label<'a>(&'a self, host: &'a Value) -> &'a str {
        let id = host["id"].as_str().unwrap_or_default();
        let name = self.names.get(id);
        name.map_or_else(|| name_of(host), String::as_str)
    }
}

/// Status, stage of an installation, and its details.
fn parts<'a>(record: &'a Value, stage: &str) -> [&'a str; 3] {
    let progress = &record["progress"];
    let parts = [
        &record["status"],
        &progress[stage],
        &progress["progress_info"],
    ];
    parts.map(|part| part.as_str().unwrap_or_default())
}

fn state(record: &Value, stage: &str) -> String {
    joined(parts(record, stage))
}

fn joined<const N: usize>(parts: [&str; N]) -> String {
    let parts = parts.into_iter().filter(|text| !text.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tracker(progress: &RehearsalProgress, installation: usize) -> StateTracker {
        let mut tracker = StateTracker::new(progress, installation, BTreeMap::new());
        tracker.start(Pace::new(1.0));
        tracker
    }

    fn cluster(stage: &str) -> Value {
        json!({ "name": "c", "status": "installing", "hosts": [{ "requested_hostname": "a",
            "status": "installing", "progress": { "current_stage": stage, "progress_info": "10%" } }] })
    }

    #[test]
    fn only_changes_are_events() {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&lines);
        let progress = RehearsalProgress::observed(move |_, event| {
            if let RehearsalEvent::Host { name, state } | RehearsalEvent::Cluster { name, state } =
                event
            {
                seen.lock().unwrap().push(format!("{name}: {state}"));
            }
        });
        let mut tracker = tracker(&progress, 0);
        assert!(tracker.show(&cluster("Installing")));
        assert!(!tracker.show(&cluster("Installing")));
        assert!(tracker.show(&cluster("Rebooting")));
        assert!(!tracker.show(&cluster("Installing")), "seen before");
        assert!(!tracker.show(&cluster("Rebooting")), "seen before");
        let again = [
            "a: installing, Installing, 10%",
            "a: installing, Rebooting, 10%",
        ];
        let expected = [&[again[0], "c: installing", again[1]], &again[..]].concat();
        assert_eq!(*lines.lock().unwrap(), expected);
    }

    #[test]
    fn counters_are_sums_over_installations() {
        let progress = RehearsalProgress::default();
        assert_eq!(progress.now(), RehearsalState::default());
        for (at, stage) in ["Installing", "Rebooting", "Rebooting"].iter().enumerate() {
            let mut tracker = tracker(&progress, at);
            tracker.event(&RehearsalEvent::Booting { hosts: 3 });
            tracker.show(&cluster("Starting installation"));
            tracker.show(&cluster(stage));
        }
        drop(progress.stop_on_drop());
        let state = progress.now();
        assert_eq!(state.machines, 9);
        assert_eq!(state.clusters, BTreeMap::from([("installing".into(), 3)]));
        let hosts = [("installing, Installing", 1), ("installing, Rebooting", 2)];
        let hosts = hosts.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(state.hosts, BTreeMap::from(hosts));
        assert_eq!(progress.now().simulated, state.simulated, "stopped");
    }
}
