//! All series of a process: a map with a bound, because one label with a client's text must not take its memory.
//!
//! Counters and histograms without a change for an idle time are dropped, when the metrics are rendered or when the map
//! is full. Servers hold handles for as long as they run, so such a handle is the id of its series, looked up at each
//! use: a series that was dropped returns with its next measurement, from zero. Gauges are never dropped, as the value
//! of a gauge is true until it changes; their handles are the values themselves.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use super::series::{DeclaredMetric, Kind, Series, SeriesId};
use super::text::Exposition;

/// Measurements of series beyond the bound.
const DROPPED: &str = "atoll_metrics_dropped_total";
/// Sweeps of a full map during the idle time: each looks at all series.
const SWEEPS: u32 = 20;

/// Records the metrics of a process and renders them. Clones share them.
#[derive(Debug, Clone)]
pub struct MetricsRecorder(Arc<SeriesRegistry>);

#[derive(Debug)]
struct SeriesRegistry {
    declared: &'static [DeclaredMetric],
    /// Read for a measurement; written when a series appears, and by sweeps.
    recorded: RwLock<RecordedSeries>,
    dropped: Series,
    /// Texts of metrics by name, as the code has them.
    help: RwLock<HashMap<String, SharedString>>,
}

#[derive(Debug)]
struct RecordedSeries {
    by_id: HashMap<SeriesId, RecordedEntry>,
    max: usize,
    idle: Duration,
    swept: Instant,
}

#[derive(Debug)]
struct RecordedEntry {
    series: Series,
    /// A gauge, or a declared metric that lasts.
    lasts: bool,
    /// The version that the last sweep saw, and when one first saw it: a clock would cost each measurement more than
    /// the measurement itself.
    version: (u64, u64),
    changed: Instant,
}

/// A counter or histogram that is looked up at each use.
struct SeriesHandle {
    registry: Arc<SeriesRegistry>,
    id: SeriesId,
}

impl MetricsRecorder {
    /// Records at most `max` series. Counters and histograms without a change for `idle` are dropped, except declared
    /// ones that last.
    pub(super) fn new(max: usize, idle: Duration, declared: &'static [DeclaredMetric]) -> Self {
        let help = "Measurements of series beyond the bound of series";
        Self(Arc::new(SeriesRegistry {
            declared,
            recorded: RwLock::new(RecordedSeries {
                by_id: HashMap::new(),
                max,
                idle,
                swept: Instant::now(),
            }),
            dropped: Series::default(),
            help: RwLock::new(HashMap::from([(DROPPED.to_owned(), help.into())])),
        }))
    }

    /// All metrics as text, sorted.
    pub(super) fn render(&self) -> String {
        self.0.render_at(Instant::now())
    }

    fn handle(&self, kind: Kind, key: &Key) -> Arc<SeriesHandle> {
        let (registry, id) = (Arc::clone(&self.0), SeriesId::new(kind, key));
        // At zero from here on: Prometheus sees an increment only against a value before it.
        registry.with(&id, |_| ());
        Arc::new(SeriesHandle { registry, id })
    }

    fn describe(&self, name: &KeyName, text: SharedString) {
        let mut help = self.0.help.write().unwrap_or_else(PoisonError::into_inner);
        help.insert(name.as_str().to_owned(), text);
    }
}

impl SeriesRegistry {
    /// Applies `act` to the series, which is new if it is not recorded yet; `None`: beyond the bound.
    fn with<T>(&self, id: &SeriesId, act: impl FnOnce(&Series) -> T) -> Option<T> {
        {
            let recorded = self.read();
            if let Some(entry) = recorded.by_id.get(id) {
                return Some(act(&entry.series));
            }
            if recorded.is_full() && recorded.swept.elapsed() < recorded.idle / SWEEPS {
                return None;
            }
        }
        let mut recorded = self.write();
        if recorded.is_full() {
            recorded.sweep(Instant::now());
        }
        if recorded.is_full() && !recorded.by_id.contains_key(id) {
            return None;
        }
        let entry = recorded.by_id.entry(id.clone());
        let entry = entry.or_insert_with(|| RecordedEntry::new(id, self.declared));
        Some(act(&entry.series))
    }

    fn drop_measurement(&self) {
        self.dropped.value.increment(1);
    }

    fn render_at(&self, now: Instant) -> String {
        let mut recorded = self.write();
        recorded.sweep(now);
        let entries = recorded.by_id.iter();
        let mut series: Vec<_> = entries
            .map(|(id, entry)| (id.clone(), entry.series.clone()))
            .collect();
        // Formatting takes longer than copying, and measurements would wait for it.
        drop(recorded);
        let dropped = SeriesId::new(Kind::Counter, &Key::from_static_name(DROPPED));
        series.push((dropped, self.dropped.clone()));
        series.sort_unstable_by(|(a, _), (b, _)| (a.family(), &a.key).cmp(&(b.family(), &b.key)));
        let help = self.help.read().unwrap_or_else(PoisonError::into_inner);
        let (series, help) = (&series, &help);
        Exposition { series, help }.to_string()
    }

    fn read(&self) -> RwLockReadGuard<'_, RecordedSeries> {
        self.recorded.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, RecordedSeries> {
        self.recorded
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordedSeries {
    fn is_full(&self) -> bool {
        self.by_id.len() >= self.max
    }

    /// Drops idle series.
    fn sweep(&mut self, now: Instant) {
        self.swept = now;
        self.by_id.retain(|_, entry| {
            let version = entry.series.version();
            if version != entry.version {
                (entry.version, entry.changed) = (version, now);
            }
            entry.lasts || now.saturating_duration_since(entry.changed) < self.idle
        });
    }
}

impl RecordedEntry {
    fn new(id: &SeriesId, declared: &[DeclaredMetric]) -> Self {
        let name = id.key.name();
        let declared = declared.iter().find(|metric| metric.name == name);
        Self {
            series: Series::new(id, declared),
            lasts: id.kind == Kind::Gauge || declared.is_some_and(|metric| metric.lasts),
            version: (0, 0),
            changed: Instant::now(),
        }
    }
}

impl SeriesHandle {
    fn measure(&self, change: impl FnOnce(&Series)) {
        if self.registry.with(&self.id, change).is_none() {
            self.registry.drop_measurement();
        }
    }
}

impl CounterFn for SeriesHandle {
    fn increment(&self, value: u64) {
        self.measure(|series| series.value.increment(value));
    }

    fn absolute(&self, value: u64) {
        self.measure(|series| series.value.absolute(value));
    }
}

impl HistogramFn for SeriesHandle {
    fn record(&self, value: f64) {
        self.measure(|series| series.record(value));
    }
}

impl Recorder for MetricsRecorder {
    fn describe_counter(&self, key: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(&key, text);
    }

    fn describe_gauge(&self, key: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(&key, text);
    }

    fn describe_histogram(&self, key: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(&key, text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.handle(Kind::Counter, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let id = SeriesId::new(Kind::Gauge, key);
        if let Some(value) = self.0.with(&id, |series| Arc::clone(&series.value)) {
            return Gauge::from_arc(value);
        }
        self.0.drop_measurement();
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.handle(Kind::Histogram, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    const IDLE: Duration = Duration::from_hours(1);
    const DECLARED: &[DeclaredMetric] = &[
        DeclaredMetric {
            name: "rare",
            buckets: &[],
            lasts: true,
        },
        DeclaredMetric {
            name: "size_gb",
            buckets: &[3.0, 7.0],
            lasts: true,
        },
    ];

    /// Value of a series; `None` when it is absent.
    fn value(text: &str, series: &str) -> Option<u64> {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(series));
        lines.find_map(|rest| rest.strip_prefix(' ')?.parse().ok())
    }

    // limit: metric series
    #[test]
    fn series_beyond_the_bound_are_counted_and_dropped() {
        let recorder = MetricsRecorder::new(3, IDLE, &[]);
        metrics::with_local_recorder(&recorder, || {
            for label in ["a", "b", "c", "d", "a"] {
                metrics::counter!("asked", "label" => label).increment(1);
            }
            metrics::gauge!("level").set(1.0);
        });
        let text = recorder.render();
        assert_eq!(value(&text, "asked{label=\"a\"}"), Some(2), "{text}");
        assert_eq!(value(&text, "asked{label=\"c\"}"), Some(1), "{text}");
        assert_eq!(value(&text, DROPPED), Some(2), "{text}");
        assert!(!text.contains("label=\"d\""), "{text}");
        assert!(!text.contains("level"), "{text}");
    }

    #[test]
    fn idle_series_are_dropped_and_handles_recreate_them() {
        let recorder = MetricsRecorder::new(10, IDLE, DECLARED);
        let (counter, histogram) = metrics::with_local_recorder(&recorder, || {
            metrics::gauge!("level").set(7.0);
            metrics::counter!("rare").increment(1);
            metrics::histogram!("size_gb").record(5.0);
            let histogram = metrics::histogram!("took_duration_seconds");
            (metrics::counter!("asked_total"), histogram)
        });
        let start = Instant::now();
        assert_eq!(value(&recorder.render(), "asked_total"), Some(0));
        counter.increment(5);
        histogram.record(0.25);
        let text = recorder.0.render_at(start + IDLE / 2);
        assert_eq!(value(&text, "asked_total"), Some(5), "{text}");
        assert_eq!(value(&text, "took_duration_seconds_count"), Some(1));
        let text = recorder.0.render_at(start + IDLE);
        assert_eq!(value(&text, "asked_total"), Some(5), "{text}");
        let text = recorder.0.render_at(start + IDLE / 2 + IDLE);
        assert!(!text.contains("asked") && !text.contains("took"), "{text}");
        for lasting in ["level 7", "rare 1", "size_gb_bucket{le=\"7\"} 1"] {
            assert!(text.contains(lasting), "{lasting}: {text}");
        }

        counter.increment(2);
        histogram.record(4.0);
        histogram.record(4.0);
        let text = recorder.render();
        assert_eq!(value(&text, "asked_total"), Some(2), "{text}");
        assert_eq!(value(&text, "took_duration_seconds_count"), Some(2));
        assert_eq!(value(&text, "took_duration_seconds_sum"), Some(8));
        assert_eq!(value(&text, "level"), Some(7), "{text}");
    }

    #[test]
    fn idle_series_make_room_without_a_rendering() {
        let recorder = MetricsRecorder::new(3, Duration::from_millis(10), &[]);
        metrics::with_local_recorder(&recorder, || {
            metrics::gauge!("level").set(7.0);
            let old = metrics::counter!("old_total");
            metrics::counter!("older_total").increment(1);
            let new = metrics::counter!("new_total");
            old.increment(1);
            let names = || -> Vec<String> {
                let recorded = recorder.0.read();
                let names = recorded.by_id.keys().map(|id| id.key.name().to_owned());
                names.collect()
            };
            while !names().contains(&"new_total".to_owned()) {
                new.increment(1);
                std::thread::yield_now();
            }
            assert!(names().contains(&"level".to_owned()));
            assert!(names().len() <= 3, "{:?}", names());
        });
    }

    #[test]
    fn no_measurement_of_many_threads_is_lost() {
        const THREADS: u64 = 8;
        const EACH: u64 = 2000;
        let recorder = MetricsRecorder::new(100, IDLE, &[]);
        let is_done = AtomicBool::new(false);
        let own = |thread: u64, turn: u64| format!("{thread}-{}", turn % 50);
        std::thread::scope(|scope| {
            let measuring: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let recorder = &recorder;
                    let work = move || {
                        for turn in 0..EACH {
                            metrics::counter!("all_total").increment(1);
                            metrics::gauge!("level").increment(1.0);
                            metrics::histogram!("took_duration_seconds").record(1.0);
                            metrics::counter!("own_total", "of" => own(thread, turn)).increment(1);
                        }
                    };
                    scope.spawn(move || metrics::with_local_recorder(recorder, work))
                })
                .collect();
            scope.spawn(|| {
                while !is_done.load(Relaxed) {
                    recorder.render();
                }
            });
            for thread in measuring {
                thread.join().unwrap();
            }
            is_done.store(true, Relaxed);
        });
        let text = recorder.render();
        let all = Some(THREADS * EACH);
        for series in ["all_total", "level", "took_duration_seconds_sum"] {
            assert_eq!(value(&text, series), all, "{series}: {text}");
        }
        // The threads raced for 97 places of 400 wanted ones: each measurement is in its series, or counted.
        let lines = text.lines().filter(|line| line.starts_with("own_total{"));
        let own = lines.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap());
        let own: Vec<u64> = own.collect();
        assert_eq!(own.len(), 97, "{text}");
        let dropped = value(&text, DROPPED).unwrap();
        assert_eq!(own.iter().sum::<u64>() + dropped, THREADS * EACH, "{text}");
    }
}
