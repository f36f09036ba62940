//! The hosts of a controller by the time of their next look. Pure: times are parameters.

use std::collections::{BTreeSet, HashMap};

use tokio::time::Instant;

/// Hosts at most: a cluster has at most some thousand.
pub(super) const MAX_HOSTS: usize = 20_000;

/// Hosts by the time of their next look; each one is looked at once at a time.
#[derive(Debug, Default)]
pub(super) struct HostQueue {
    due: BTreeSet<(Instant, String)>,
    hosts: HashMap<String, QueuedHost>,
}

/// A host of the queue.
#[derive(Debug, Default)]
struct QueuedHost {
    /// Time of its next look; none while it is looked at, or waits for a change.
    due: Option<Instant>,
    is_in_progress: bool,
    /// Version of its record at the end of the last look: a notice of that one is our own write.
    seen: String,
    /// Version of a change during the look.
    changed: Option<String>,
}

impl HostQueue {
    /// Notes a change of a record. False for a host that is one too many.
    pub(super) fn changed(&mut self, name: &str, version: &str, now: Instant) -> bool {
        if self.hosts.len() >= MAX_HOSTS && !self.hosts.contains_key(name) {
            return false;
        }
        let host = self.hosts.entry(name.to_owned()).or_default();
        if host.is_in_progress {
            host.changed = Some(version.to_owned());
        } else if host.seen != version {
            self.plan(name, Some(now));
        }
        true
    }

    /// A host whose time has come, for a look.
    pub(super) fn start(&mut self, now: Instant) -> Option<String> {
        let (at, name) = self.due.first()?.clone();
        if at > now {
            return None;
        }
        self.plan(&name, None);
        if let Some(host) = self.hosts.get_mut(&name) {
            host.is_in_progress = true;
        }
        Some(name)
    }

    /// Ends a look at a record in `version`; the next one is at `next`, or at once if the record has changed meanwhile.
    pub(super) fn finish(
        &mut self,
        name: &str,
        version: String,
        next: Option<Instant>,
        now: Instant,
    ) {
        let Some(host) = self.hosts.get_mut(name) else {
            return;
        };
        host.is_in_progress = false;
        let changed = host.changed.take();
        let is_changed = changed.is_some_and(|changed| changed != version);
        host.seen = version;
        self.plan(name, if is_changed { Some(now) } else { next });
    }

    /// Removes a host whose record does not exist any more; one that was created meanwhile stays.
    pub(super) fn forget(&mut self, name: &str, version: &str, now: Instant) {
        let changed = self.hosts.get_mut(name).and_then(|it| it.changed.take());
        self.plan(name, None);
        self.hosts.remove(name);
        if let Some(changed) = changed.filter(|changed| changed != version) {
            self.changed(name, &changed, now);
        }
    }

    /// Time of the next look.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    fn plan(&mut self, name: &str, at: Option<Instant>) {
        let Some(host) = self.hosts.get_mut(name) else {
            return;
        };
        if let Some(before) = host.due.take() {
            self.due.remove(&(before, name.to_owned()));
        }
        host.due = at;
        if let Some(at) = at {
            self.due.insert((at, name.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn queue_with(name: &str, now: Instant) -> HostQueue {
        let mut queue = HostQueue::default();
        assert!(queue.changed(name, "1", now));
        queue
    }

    #[test]
    fn a_change_is_looked_at_once() {
        let now = Instant::now();
        let mut queue = queue_with("a", now);
        assert!(queue.changed("a", "2", now));
        assert_eq!(queue.start(now).as_deref(), Some("a"));
        assert_eq!(queue.start(now), None);
        queue.finish("a", "2".to_owned(), None, now);
        assert_eq!((queue.start(now), queue.next_due()), (None, None));
    }

    #[test]
    fn own_writes_are_no_changes() {
        let now = Instant::now();
        let mut queue = queue_with("a", now);
        queue.start(now).unwrap();
        // Its notice may come before the end of the look, or after it.
        queue.changed("a", "2", now);
        queue.finish("a", "2".to_owned(), None, now);
        queue.changed("a", "2", now);
        assert_eq!(queue.start(now), None);
        queue.changed("a", "3", now);
        assert_eq!(queue.start(now).as_deref(), Some("a"));
        queue.changed("a", "5", now);
        queue.finish("a", "4".to_owned(), None, now);
        assert_eq!(queue.start(now).as_deref(), Some("a"));
    }

    #[test]
    fn looks_come_at_their_time() {
        let now = Instant::now();
        let later = now + Duration::from_secs(10);
        let mut queue = queue_with("a", now);
        queue.start(now).unwrap();
        queue.finish("a", "1".to_owned(), Some(later), now);
        assert_eq!((queue.start(now), queue.next_due()), (None, Some(later)));
        assert_eq!(queue.start(later).as_deref(), Some("a"));
        queue.forget("a", "1", later);
        assert_eq!((queue.start(later), queue.hosts.len()), (None, 0));
    }

    #[test]
    fn a_record_that_is_created_again_stays() {
        let now = Instant::now();
        let mut queue = queue_with("a", now);
        queue.start(now).unwrap();
        queue.changed("a", "9", now);
        queue.forget("a", "1", now);
        assert_eq!(queue.start(now).as_deref(), Some("a"));
    }

    #[test]
    fn hosts_are_bounded() {
        let now = Instant::now();
        let mut queue = HostQueue::default();
        for index in 0..MAX_HOSTS {
            assert!(queue.changed(&index.to_string(), "1", now));
        }
        assert!(!queue.changed("one-more", "1", now));
        assert!(queue.changed("0", "2", now));
    }

    proptest! {
        #[test]
        fn no_change_is_lost_and_no_host_is_looked_at_twice(events in prop::collection::vec((0_u8..4, 0_u8..3), 0..60)) {
            let now = Instant::now();
            let mut queue = HostQueue::default();
            let mut running = BTreeSet::new();
            let mut versions = [0_u32; 3];
            let mut seen = [0_u32; 3];
            for (event, host) in events {
                let (at, name) = (usize::from(host), host.to_string());
                match event {
                    0 => {
                        versions[at] += 1;
                        queue.changed(&name, &versions[at].to_string(), now);
                    }
                    1 => if let Some(name) = queue.start(now) {
                        prop_assert!(running.insert(name.clone()), "{name} twice");
                        let at: usize = name.parse().unwrap();
                        seen[at] = versions[at];
                    },
                    _ => if running.remove(&name) {
                        queue.finish(&name, seen[at].to_string(), None, now);
                    },
                }
            }
            for name in running {
                let at: usize = name.parse().unwrap();
                queue.finish(&name, seen[at].to_string(), None, now);
            }
            while let Some(name) = queue.start(now) {
                let at: usize = name.parse().unwrap();
                seen[at] = versions[at];
            }
            prop_assert_eq!(seen, versions);
        }
    }
}
