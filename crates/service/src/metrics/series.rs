//! Values of single series: counters, gauges and histograms that any thread may change at any time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use metrics::{CounterFn, GaugeFn, HistogramFn};

/// A value and the time of its last change.
#[derive(Debug)]
pub(super) struct Series<V> {
    value: V,
    registered: Instant,
    /// Units: milliseconds after `registered`.
    changed: AtomicU64,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

/// The bits of a floating point number.
#[derive(Debug, Default)]
pub(super) struct Level(AtomicU64);

/// Counts of values by upper bound, and their sum.
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// One for each bound, and one for the values above all of them.
    counts: Box<[AtomicU64]>,
    sum: Level,
}

impl<V> Series<V> {
    pub(super) fn new(value: V) -> Self {
        Self {
            value,
            registered: Instant::now(),
            changed: AtomicU64::new(0),
        }
    }

    pub(super) const fn value(&self) -> &V {
        &self.value
    }

    /// How long before `now` the last change was.
    pub(super) fn idle(&self, now: Instant) -> Duration {
        let changed = Duration::from_millis(self.changed.load(Relaxed));
        now.saturating_duration_since(self.registered)
            .saturating_sub(changed)
    }

    fn touch(&self) {
        let elapsed = self.registered.elapsed().as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        self.changed.store(elapsed, Relaxed);
    }
}

impl Count {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Level {
    pub(super) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    fn add(&self, value: f64) {
        let sum = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // The closure always returns a value, so the update cannot fail.
        let _added = self.0.fetch_update(Relaxed, Relaxed, sum);
    }
}

impl Histogram {
    /// `bounds` ascend.
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let counts = std::iter::repeat_with(AtomicU64::default);
        Self {
            bounds,
            counts: counts.take(bounds.len() + 1).collect(),
            sum: Level::default(),
        }
    }

    /// How many values each bound has at or below it; the last entry, without a bound, has all of them.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (Option<f64>, u64)> {
        let bounds = self.bounds.iter().copied().map(Some);
        let mut sum = 0;
        bounds
            .chain([None])
            .zip(&self.counts)
            .map(move |(bound, count)| {
                sum += count.load(Relaxed);
                (bound, sum)
            })
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum.get()
    }
}

impl CounterFn for Series<Count> {
    fn increment(&self, value: u64) {
        self.value.0.fetch_add(value, Relaxed);
        self.touch();
    }

    fn absolute(&self, value: u64) {
        self.value.0.fetch_max(value, Relaxed);
        self.touch();
    }
}

impl GaugeFn for Series<Level> {
    fn increment(&self, value: f64) {
        self.value.add(value);
        self.touch();
    }

    fn decrement(&self, value: f64) {
        self.value.add(-value);
        self.touch();
    }

    fn set(&self, value: f64) {
        self.value.0.store(value.to_bits(), Relaxed);
        self.touch();
    }
}

impl HistogramFn for Series<Histogram> {
    fn record(&self, value: f64) {
        // One of these would make the sum useless for ever.
        if value.is_nan() {
            return;
        }
        let Histogram {
            bounds,
            counts,
            sum,
        } = &self.value;
        let bucket = bounds.partition_point(|bound| *bound < value);
        if let Some(count) = counts.get(bucket) {
            count.fetch_add(1, Relaxed);
        }
        sum.add(value);
        self.touch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_a_bound_is_within_it() {
        let series = Series::new(Histogram::new(&[1.0, 2.0]));
        for value in [0.5, 1.0, 1.5, 2.0, 3.0, f64::NAN] {
            series.record(value);
        }
        let counts: Vec<_> = series.value().cumulative().collect();
        assert_eq!(counts, [(Some(1.0), 2), (Some(2.0), 4), (None, 5)]);
        assert!((series.value().sum() - 8.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_gauge_goes_up_and_down() {
        let series = Series::new(Level::default());
        GaugeFn::set(&series, 5.0);
        GaugeFn::increment(&series, 2.5);
        GaugeFn::decrement(&series, 4.0);
        assert!((series.value().get() - 3.5).abs() < f64::EPSILON);
    }
}
