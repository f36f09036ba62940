//! One series: its id, and its numbers, which many threads change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use metrics::{GaugeFn as _, Key};

/// Units: seconds.
const DURATION_BUCKETS: &[f64] = &[0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0];
/// Units: bytes.
const SIZE_BUCKETS: &[f64] = &[
    1024.0,
    16384.0,
    262_144.0,
    4_194_304.0,
    67_108_864.0,
    1_073_741_824.0,
    17_179_869_184.0,
];

/// A metric that a program declares before the recorder is installed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeclaredMetric {
    /// Its whole name.
    pub name: &'static str,
    /// Upper bounds of a histogram's buckets; empty for other kinds.
    pub buckets: &'static [f64],
    /// Whether it is kept while it is idle. Its labels have values out of closed sets.
    ///
    /// A count of rare events that was dropped and returns with its next event hides that event: Prometheus sees the
    /// same value before and after.
    pub lasts: bool,
}

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Name, kind and labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SeriesId {
    pub(super) kind: Kind,
    pub(super) key: Key,
}

/// The numbers of a series; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    /// A count, or the bits of a gauge or of the sum of a histogram.
    pub(super) value: Arc<AtomicU64>,
    /// Upper bounds of the buckets of a histogram, except the last one, which has none.
    pub(super) bounds: &'static [f64],
    /// Measurements by bucket, each counted once; empty for other kinds.
    pub(super) buckets: Arc<[AtomicU64]>,
}

impl SeriesId {
    pub(super) fn new(kind: Kind, key: &Key) -> Self {
        let key = key.to_retained();
        Self { kind, key }
    }

    /// Series of one family stand together, under one type and help.
    pub(super) fn family(&self) -> (&str, Kind) {
        (self.key.name(), self.kind)
    }
}

impl Series {
    /// At zero, with the buckets of `declared` or, by the suffix of the name, of durations and sizes.
    pub(super) fn new(id: &SeriesId, declared: Option<&DeclaredMetric>) -> Self {
        if id.kind != Kind::Histogram {
            return Self::default();
        }
        let bounds = match declared {
            Some(metric) if !metric.buckets.is_empty() => metric.buckets,
            _ if id.key.name().ends_with("_duration_seconds") => DURATION_BUCKETS,
            _ if id.key.name().ends_with("_size_bytes") => SIZE_BUCKETS,
            _ => &[],
        };
        Self {
            bounds,
            buckets: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            ..Self::default()
        }
    }

    /// Adds a measurement to a histogram.
    pub(super) fn record(&self, value: f64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound);
        self.buckets[bucket.unwrap_or(self.bounds.len())].fetch_add(1, Relaxed);
        self.value.increment(value);
    }

    /// Differs after each measurement that changes the series.
    pub(super) fn version(&self) -> (u64, u64) {
        let count = self.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum();
        (self.value.load(Relaxed), count)
    }
}
