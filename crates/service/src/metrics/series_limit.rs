//! A recorder with a bound of series: one label with a client's text must not take the memory of the process.
//!
//! The library drops idle counters and histograms, and with them later counts of their handles. Servers hold handles
//! for as long as they run, so a handle given out here is the key of its series, looked up at each use: a series that
//! was dropped returns with its next measurement, from zero. Gauges are the library's: it never drops them, as the
//! value of a gauge is true until it changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Level, Metadata, Recorder,
    SharedString, Unit,
};

use super::lifetime::{DeclaredMetric, lasts};

/// Measurements of series beyond the bound.
const DROPPED: &str = "atoll_metrics_dropped_total";
/// Metadata of the series of handles; the exporter does not read it.
static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);
/// The epoch of the last use of a gauge, and of a declared metric that lasts.
const FOREVER: u64 = u64::MAX;

/// The epoch of the last use of each series, by the hash of its key.
type Uses = HashMap<u64, AtomicU64>;

/// Limits of the series of a recorder.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesLimit {
    /// Units: series.
    pub(super) max: usize,
    /// Units: sweeps, after which the inner recorder has dropped a series that was not used.
    pub(super) idle_sweeps: u64,
    /// The inner recorder keeps those that last.
    pub(super) declared: &'static [DeclaredMetric],
}

/// Records the first series; measurements of further ones are counted and dropped until a sweep finds idle ones.
#[derive(Debug)]
pub(super) struct BoundedRecorder<R>(Arc<SeriesRegistry<R>>);

#[derive(Debug)]
struct SeriesRegistry<R> {
    inner: R,
    bounds: SeriesLimit,
    /// The inner recorder does not say which series it has. These are at least its own.
    uses: RwLock<Uses>,
    /// Units: sweeps that have begun. A clock would cost each measurement more than it.
    epoch: AtomicU64,
}

/// A counter or histogram that is resolved at each use.
struct SeriesHandle<R> {
    registry: Arc<SeriesRegistry<R>>,
    key: Key,
}

impl<R> Clone for BoundedRecorder<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Recorder> BoundedRecorder<R> {
    pub(super) fn new(inner: R, bounds: SeriesLimit) -> Self {
        let text = "Measurements of series beyond the bound of series";
        inner.describe_counter(DROPPED.into(), Some(Unit::Count), text.into());
        let registry = SeriesRegistry {
            inner,
            bounds,
            uses: RwLock::default(),
            epoch: AtomicU64::new(0),
        };
        registry.dropped(0);
        Self(Arc::new(registry))
    }

    /// Frees the capacity of series that the inner recorder has dropped; `drop_idle` makes it drop idle ones.
    pub(super) fn sweep(&self, drop_idle: impl FnOnce()) {
        let SeriesRegistry {
            bounds,
            uses,
            epoch,
            ..
        } = &*self.0;
        // A new epoch first: a use of the epoch before is one that `drop_idle` sees.
        let now = epoch.fetch_add(1, Relaxed) + 1;
        drop_idle();
        let mut uses = uses.write().unwrap_or_else(PoisonError::into_inner);
        uses.retain(|_, last| last.get_mut().saturating_add(bounds.idle_sweeps) > now);
    }

    fn handle(&self, key: &Key) -> Arc<SeriesHandle<R>> {
        Arc::new(SeriesHandle {
            registry: Arc::clone(&self.0),
            key: key.to_retained(),
        })
    }
}

impl<R: Recorder> SeriesRegistry<R> {
    /// Whether the series is recorded, or is within the bound now.
    fn admits(&self, key: &Key, epoch: u64) -> bool {
        let hash = key.get_hash();
        {
            let uses = self.read();
            if let Some(last) = uses.get(&hash) {
                // Mostly the epoch is that of the last use: no write, so that processors share the line.
                if last.load(Relaxed) < epoch {
                    last.fetch_max(epoch, Relaxed);
                }
                return true;
            }
            if uses.len() >= self.bounds.max {
                return false;
            }
        }
        let mut uses = self.write();
        if uses.len() >= self.bounds.max && !uses.contains_key(&hash) {
            return false;
        }
        uses.entry(hash).or_default().fetch_max(epoch, Relaxed);
        true
    }

    /// The epoch of a use now.
    fn epoch(&self, key: &Key) -> u64 {
        if lasts(self.bounds.declared, key.name()) {
            return FOREVER;
        }
        self.epoch.load(Relaxed)
    }

    fn dropped(&self, count: u64) {
        let key = Key::from_static_name(DROPPED);
        let counter = self.inner.register_counter(&key, &METADATA);
        counter.increment(count);
    }

    fn read(&self) -> RwLockReadGuard<'_, Uses> {
        self.uses.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Uses> {
        self.uses.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Recorder> SeriesHandle<R> {
    /// The recorder that has the series; `None`: beyond the bound, counted.
    fn recorder(&self) -> Option<&R> {
        let Self { registry, key } = self;
        if registry.admits(key, registry.epoch(key)) {
            return Some(&registry.inner);
        }
        registry.dropped(1);
        None
    }
}

// The recorder may drop a series between its lookup and its use: one measurement, after an idle time, is lost.
impl<R: Recorder> CounterFn for SeriesHandle<R> {
    fn increment(&self, value: u64) {
        if let Some(recorder) = self.recorder() {
            let counter = recorder.register_counter(&self.key, &METADATA);
            counter.increment(value);
        }
    }

    fn absolute(&self, value: u64) {
        if let Some(recorder) = self.recorder() {
            let counter = recorder.register_counter(&self.key, &METADATA);
            counter.absolute(value);
        }
    }
}

impl<R: Recorder> HistogramFn for SeriesHandle<R> {
    fn record(&self, value: f64) {
        if let Some(recorder) = self.recorder() {
            let histogram = recorder.register_histogram(&self.key, &METADATA);
            histogram.record(value);
        }
    }
}

impl<R: Recorder + Send + Sync + 'static> Recorder for BoundedRecorder<R> {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.0.inner.describe_counter(key, unit, text);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.0.inner.describe_gauge(key, unit, text);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.0.inner.describe_histogram(key, unit, text);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        // At zero from here on: Prometheus sees an increment only against a value before it.
        if self.0.admits(key, self.0.epoch(key)) {
            drop(self.0.inner.register_counter(key, metadata));
        }
        Counter::from_arc(self.handle(key))
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        if self.0.admits(key, FOREVER) {
            self.0.inner.register_gauge(key, metadata)
        } else {
            self.0.dropped(1);
            Gauge::noop()
        }
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        if self.0.admits(key, self.0.epoch(key)) {
            drop(self.0.inner.register_histogram(key, metadata));
        }
        Histogram::from_arc(self.handle(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

    fn bounded(max: usize) -> (BoundedRecorder<PrometheusRecorder>, PrometheusHandle) {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        let bounds = SeriesLimit {
            max,
            idle_sweeps: 3,
            declared: &[],
        };
        (BoundedRecorder::new(recorder, bounds), handle)
    }

    // limit: metric series
    #[test]
    fn series_beyond_the_bound_are_counted_and_dropped() {
        let (bounded, handle) = bounded(3);
        metrics::with_local_recorder(&bounded, || {
            for label in ["a", "b", "c", "d", "a"] {
                metrics::counter!("asked", "label" => label).increment(1);
            }
            metrics::gauge!("level").set(1.0);
        });
        let text = handle.render();
        for (label, line) in [
            ("a", "asked{label=\"a\"} 2"),
            ("c", "asked{label=\"c\"} 1"),
            ("dropped", "atoll_metrics_dropped_total 2"),
        ] {
            assert!(text.contains(line), "{label}: {text}");
        }
        assert!(!text.contains("label=\"d\""), "{text}");
        assert!(!text.contains("level"), "{text}");
    }

    #[test]
    fn capacity_is_freed_after_the_idle_sweeps() {
        let (bounded, handle) = bounded(3);
        metrics::with_local_recorder(&bounded, || {
            metrics::gauge!("level").set(1.0);
            let busy = metrics::counter!("busy");
            let _idle = metrics::histogram!("idle");
            let waiting = metrics::counter!("waiting");
            let admitted: Vec<bool> = (0..4)
                .map(|_| {
                    busy.increment(1);
                    waiting.increment(1);
                    bounded.sweep(|| ());
                    handle.render().contains("waiting 1")
                })
                .collect();
            assert_eq!(admitted, [false, false, false, true]);
            metrics::gauge!("another_level").set(1.0);
        });
        let text = handle.render();
        assert!(text.contains("atoll_metrics_dropped_total 4"), "{text}");
    }
}
