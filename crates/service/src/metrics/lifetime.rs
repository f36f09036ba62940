//! Metrics by their lifetime: most are dropped when they are idle, declared ones may last.
//!
//! A count of rare events that was dropped and returns with its next event hides that event: Prometheus sees the same
//! value before and after. So counts of installations last, and only metrics with closed sets of labels may.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// A metric that a program declares before the recorder is installed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeclaredMetric {
    /// Its whole name.
    pub name: &'static str,
    /// Upper bounds of a histogram's buckets; empty for other kinds.
    pub buckets: &'static [f64],
    /// Whether it is kept while it is idle. Its labels have values out of closed sets.
    pub lasts: bool,
}

/// Whether the metric of that name lasts.
pub(super) fn lasts(declared: &[DeclaredMetric], name: &str) -> bool {
    let found = declared.iter().find(|metric| metric.name == name);
    found.is_some_and(|metric| metric.lasts)
}

/// Two recorders: one drops idle series, one keeps them.
#[derive(Debug)]
pub(super) struct LifetimeRecorder<R> {
    pub(super) idle: R,
    pub(super) lasting: R,
    pub(super) declared: &'static [DeclaredMetric],
}

impl<R> LifetimeRecorder<R> {
    fn of(&self, name: &str) -> &R {
        if lasts(self.declared, name) {
            &self.lasting
        } else {
            &self.idle
        }
    }
}

impl<R: Recorder> Recorder for LifetimeRecorder<R> {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.of(key.as_str()).describe_counter(key, unit, text);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.of(key.as_str()).describe_gauge(key, unit, text);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.of(key.as_str()).describe_histogram(key, unit, text);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.of(key.name()).register_counter(key, metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.of(key.name()).register_gauge(key, metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.of(key.name()).register_histogram(key, metadata)
    }
}
