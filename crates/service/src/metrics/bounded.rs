//! A recorder with a bound of series: one label with a client's text must not take the memory of the process.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Level, Metadata, Recorder, SharedString, Unit,
};

/// Measurements of series beyond the bound.
const DROPPED: &str = "atoll_metrics_dropped_total";

/// Passes on what belongs to the first series; measurements of further series are counted and dropped.
pub(super) struct Bounded<R> {
    inner: R,
    max: usize,
    /// Hashes of the series that are there.
    known: RwLock<HashSet<u64>>,
    dropped: Counter,
}

impl<R: Recorder> Bounded<R> {
    pub(super) fn new(inner: R, max: usize) -> Self {
        let metadata = Metadata::new(module_path!(), Level::INFO, None);
        let text = "Measurements of series beyond the bound of series";
        inner.describe_counter(DROPPED.into(), Some(Unit::Count), text.into());
        let dropped = inner.register_counter(&Key::from_static_name(DROPPED), &metadata);
        Self {
            inner,
            max,
            known: RwLock::default(),
            dropped,
        }
    }

    fn admits(&self, key: &Key) -> bool {
        let hash = key.get_hash();
        let is_known = |known: &HashSet<u64>| known.contains(&hash);
        if is_known(&self.known.read().unwrap_or_else(PoisonError::into_inner)) {
            return true;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if is_known(&known) {
            return true;
        }
        if known.len() >= self.max {
            self.dropped.increment(1);
            return false;
        }
        known.insert(hash);
        true
    }
}

impl<R: Recorder> Recorder for Bounded<R> {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.inner.describe_counter(key, unit, text);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.inner.describe_gauge(key, unit, text);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.inner.describe_histogram(key, unit, text);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        if self.admits(key) {
            self.inner.register_counter(key, metadata)
        } else {
            Counter::noop()
        }
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        if self.admits(key) {
            self.inner.register_gauge(key, metadata)
        } else {
            Gauge::noop()
        }
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        if self.admits(key) {
            self.inner.register_histogram(key, metadata)
        } else {
            Histogram::noop()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::PrometheusBuilder;

    // limit: metric series
    #[test]
    fn series_beyond_the_bound_are_counted_and_dropped() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        let bounded = Bounded::new(recorder, 3);
        metrics::with_local_recorder(&bounded, || {
            for label in ["a", "b", "c", "d", "a"] {
                metrics::counter!("asked", "label" => label).increment(1);
            }
        });
        let text = handle.render();
        for (label, line) in [
            ("a", "asked{label=\"a\"} 2"),
            ("c", "asked{label=\"c\"} 1"),
            ("dropped", "atoll_metrics_dropped_total 1"),
        ] {
            assert!(text.contains(line), "{label}: {text}");
        }
        assert!(!text.contains("label=\"d\""), "{text}");
    }
}
