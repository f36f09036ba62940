//! The series of the process, with a bound: one label with a client's text must not take its memory.
//!
//! A series is dropped only when a new one needs its place, when it did not change for a while, and when nothing holds a
//! handle of it. So a process below the bound keeps all: a counter that is dropped and returns begins at zero, and a
//! first increment after zero is invisible to Prometheus. Gauges are never dropped: their value is true until changed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

use super::series::{self, Count, Level, Series};
use super::text;

/// Measurements of series beyond the bound.
const DROPPED: &str = "atoll_metrics_dropped_total";
/// Time between two searches for idle series: a flood of new labels must not make each of them search all.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);

type Map<V> = RwLock<HashMap<Key, Arc<Series<V>>>>;

/// How many series there may be, and which of them make room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Units: series.
    pub(super) max: usize,
    /// Without a change for this long, a counter or a histogram may be dropped.
    pub(super) idle: Duration,
}

/// Keeps the metrics of the process and renders them.
#[derive(Debug)]
pub struct SeriesRecorder {
    bounds: Bounds,
    buckets: fn(&str) -> &'static [f64],
    counters: Map<Count>,
    gauges: Map<Level>,
    histograms: Map<series::Histogram>,
    descriptions: RwLock<HashMap<KeyName, SharedString>>,
    /// Units: series, without that of `dropped`.
    len: AtomicUsize,
    dropped: Arc<Series<Count>>,
    last_search: Mutex<Option<Instant>>,
}

impl SeriesRecorder {
    /// `buckets` are the upper bounds of a histogram by its name.
    pub(super) fn new(bounds: Bounds, buckets: fn(&str) -> &'static [f64]) -> Self {
        let dropped = Arc::new(Series::new(Count::default()));
        let counters = HashMap::from([(Key::from_static_name(DROPPED), Arc::clone(&dropped))]);
        let recorder = Self {
            bounds,
            buckets,
            counters: RwLock::new(counters),
            gauges: RwLock::default(),
            histograms: RwLock::default(),
            descriptions: RwLock::default(),
            len: AtomicUsize::new(0),
            dropped,
            last_search: Mutex::default(),
        };
        recorder.describe(
            DROPPED.into(),
            "Measurements of series beyond the bound of series".into(),
        );
        recorder
    }

    /// All series in the Prometheus text format.
    pub(super) fn render(&self) -> String {
        let descriptions = read(&self.descriptions);
        let mut text = text::Text::new(&descriptions);
        text.counters(all(&self.counters));
        text.gauges(all(&self.gauges));
        text.histograms(all(&self.histograms));
        text.finish()
    }

    fn describe(&self, name: KeyName, text: SharedString) {
        write(&self.descriptions).entry(name).or_insert(text);
    }

    /// The series, which begins if there is room.
    fn series<V>(&self, map: &Map<V>, key: &Key, value: impl Fn() -> V) -> Option<Arc<Series<V>>> {
        if let Some(series) = read(map).get(key) {
            return Some(Arc::clone(series));
        }
        if self.len.load(Relaxed) >= self.bounds.max {
            self.search_idle();
        }
        let mut map = write(map);
        if let Some(series) = map.get(key) {
            return Some(Arc::clone(series));
        }
        let one_more = |len| (len < self.bounds.max).then_some(len + 1);
        if self.len.fetch_update(Relaxed, Relaxed, one_more).is_err() {
            self.dropped.increment(1);
            return None;
        }
        let series = Arc::new(Series::new(value()));
        map.insert(key.to_retained(), Arc::clone(&series));
        Some(series)
    }

    fn search_idle(&self) {
        let now = Instant::now();
        let mut last = self
            .last_search
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| now.duration_since(last) >= SEARCH_INTERVAL);
        if is_due {
            *last = Some(now);
            self.drop_idle(now);
        }
    }

    fn drop_idle(&self, now: Instant) {
        let dropped = self.drop_idle_of(&self.counters, now);
        let dropped = dropped + self.drop_idle_of(&self.histograms, now);
        self.len.fetch_sub(dropped, Relaxed);
    }

    fn drop_idle_of<V>(&self, map: &Map<V>, now: Instant) -> usize {
        let mut map = write(map);
        let before = map.len();
        // Handles are cloned under the lock: the count of one cannot rise before the series is removed. A series that
        // has a handle stays, or what is recorded by it would be lost.
        map.retain(|_, series| {
            Arc::strong_count(series) > 1 || series.idle(now) < self.bounds.idle
        });
        before - map.len()
    }
}

impl Recorder for SeriesRecorder {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(name, text);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(name, text);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(name, text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let series = self.series(&self.counters, key, Count::default);
        series.map_or_else(Counter::noop, Counter::from_arc)
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let series = self.series(&self.gauges, key, Level::default);
        series.map_or_else(Gauge::noop, Gauge::from_arc)
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let new = || series::Histogram::new((self.buckets)(key.name()));
        let series = self.series(&self.histograms, key, new);
        series.map_or_else(Histogram::noop, Histogram::from_arc)
    }
}

/// The series of a kind as they are now: nobody waits for a lock while text is made of them.
fn all<V>(map: &Map<V>) -> Vec<(Key, Arc<Series<V>>)> {
    let map = read(map);
    map.iter()
        .map(|(key, series)| (key.clone(), Arc::clone(series)))
        .collect()
}

// A panic of another thread leaves the maps whole: each change is one call.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn recorder(max: usize, idle: Duration) -> SeriesRecorder {
        SeriesRecorder::new(Bounds { max, idle }, |_| &[1.0])
    }

    fn ask(recorder: &SeriesRecorder, labels: &[&'static str]) {
        metrics::with_local_recorder(recorder, || {
            for label in labels {
                metrics::counter!("asked", "label" => *label).increment(1);
            }
        });
    }

    // limit: metric series
    #[test]
    fn series_beyond_the_bound_are_counted_and_dropped() {
        let recorder = recorder(3, HOUR);
        ask(&recorder, &["a", "b", "c", "d", "a"]);
        let text = recorder.render();
        for line in [
            "asked{label=\"a\"} 2",
            "asked{label=\"c\"} 1",
            "atoll_metrics_dropped_total 1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("label=\"d\""), "{text}");
    }

    #[test]
    fn idle_series_make_room_for_new_ones() {
        let recorder = recorder(3, Duration::ZERO);
        ask(&recorder, &["a", "b", "c", "d", "a"]);
        let text = recorder.render();
        assert!(text.contains("asked{label=\"d\"} 1"), "{text}");
        assert!(text.contains("asked{label=\"a\"} 1"), "{text}");
        assert!(!text.contains("label=\"b\""), "{text}");
        assert!(text.contains("atoll_metrics_dropped_total 0"), "{text}");
    }

    #[test]
    fn series_are_idle_an_hour_after_their_last_change() {
        let recorder = recorder(3, HOUR);
        ask(&recorder, &["a"]);
        let now = Instant::now();
        recorder.drop_idle(now + Duration::from_mins(59));
        assert!(recorder.render().contains("label=\"a\""));
        recorder.drop_idle(now + Duration::from_mins(61));
        assert!(!recorder.render().contains("label=\"a\""));
        // The places are free again: as many as before are admitted.
        ask(&recorder, &["b", "c", "d", "e"]);
        let text = recorder.render();
        assert!(text.contains("label=\"d\""), "{text}");
        assert!(!text.contains("label=\"e\""), "{text}");
    }

    #[test]
    fn states_and_series_with_a_handle_are_never_dropped() {
        let recorder = recorder(10, HOUR);
        let (counter, histogram) = metrics::with_local_recorder(&recorder, || {
            metrics::gauge!("served").set(1.0);
            metrics::histogram!("gone").record(1.0);
            (metrics::counter!("held"), metrics::histogram!("took"))
        });
        recorder.drop_idle(Instant::now() + 2 * HOUR);
        counter.increment(1);
        histogram.record(0.5);
        let text = recorder.render();
        for line in ["served 1", "held 1", "took_count 1"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("gone"), "{text}");
    }
}
