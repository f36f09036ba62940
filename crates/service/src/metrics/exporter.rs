//! The library's exporter with the bound of series, and the upkeep of both.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use metrics_util::MetricKindMask;

use super::lifetime::{DeclaredMetric, LifetimeRecorder};
use super::series_limit::{BoundedRecorder, SeriesLimit};

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
/// How often single values are put into their buckets: until then each takes eight bytes.
const UPKEEP: Duration = Duration::from_secs(1);
/// Sweeps during the idle timeout.
const SWEEPS: u32 = 20;
/// Sweeps until the library has dropped an unused series: one or two to see its last use, those of the timeout, and one
/// that finds it exceeded.
const IDLE_SWEEPS: u64 = SWEEPS as u64 + 3;

/// Keeps the metrics of the process and renders them.
#[derive(Debug)]
pub struct Exporter {
    handle: PrometheusHandle,
    /// Of declared metrics that last.
    lasting: PrometheusHandle,
    series: BoundedRecorder<LifetimeRecorder<PrometheusRecorder>>,
    idle: Duration,
    /// One rendering or upkeep at a time: an upkeep would bring a histogram back that a rendering is dropping, empty and
    /// for ever.
    rendering: Mutex<()>,
}

impl Exporter {
    /// Counters and histograms without a change for `idle` are dropped, except declared ones that last.
    pub(super) fn new(
        max_series: usize,
        idle: Duration,
        declared: &'static [DeclaredMetric],
    ) -> Self {
        let events = MetricKindMask::COUNTER | MetricKindMask::HISTOGRAM;
        let recorder = LifetimeRecorder {
            idle: builder(declared)
                .idle_timeout(events, Some(idle))
                .build_recorder(),
            lasting: builder(declared).build_recorder(),
            declared,
        };
        let bounds = SeriesLimit {
            max: max_series,
            idle_sweeps: IDLE_SWEEPS,
            declared,
        };
        Self {
            handle: recorder.idle.handle(),
            lasting: recorder.lasting.handle(),
            series: BoundedRecorder::new(recorder, bounds),
            idle,
            rendering: Mutex::default(),
        }
    }

    pub(super) fn recorder(&self) -> BoundedRecorder<LifetimeRecorder<PrometheusRecorder>> {
        self.series.clone()
    }

    pub(super) fn render(&self) -> String {
        let _one = self.one_at_a_time();
        let mut text = self.handle.render();
        text.push_str(&self.lasting.render());
        text
    }

    /// Starts the upkeep thread: without scrapes, histogram samples and idle series would accumulate.
    pub(super) fn keep_up(&'static self) {
        let work = move || {
            let mut swept = Instant::now();
            loop {
                std::thread::sleep(UPKEEP);
                self.upkeep();
                if swept.elapsed() >= self.sweep_interval() {
                    self.sweep();
                    swept = Instant::now();
                }
            }
        };
        let thread = std::thread::Builder::new().name("metrics".to_owned());
        if let Err(error) = thread.spawn(work) {
            tracing::warn!(%error, "metrics upkeep thread not started: samples accumulate between scrapes");
        }
    }

    fn upkeep(&self) {
        let _one = self.one_at_a_time();
        self.handle.run_upkeep();
        self.lasting.run_upkeep();
    }

    /// Drops idle series. The library does so only while it renders.
    fn sweep(&self) {
        self.series.sweep(|| {
            let _one = self.one_at_a_time();
            // A sink fails no write.
            self.handle.render_to_write(&mut io::sink()).ok();
        });
    }

    fn sweep_interval(&self) -> Duration {
        self.idle / SWEEPS
    }

    fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.rendering
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn builder(declared: &[DeclaredMetric]) -> PrometheusBuilder {
    // Every other histogram of the workspace is of these kinds; without buckets it would be a summary.
    let duration = Matcher::Suffix("_duration_seconds".to_owned());
    let size = Matcher::Suffix("_size_bytes".to_owned());
    let kinds = [(duration, DURATION_BUCKETS), (size, SIZE_BUCKETS)];
    let named = declared.iter().map(|metric| {
        let name = Matcher::Full(metric.name.to_owned());
        (name, metric.buckets)
    });
    let named = named.filter(|(_, buckets)| !buckets.is_empty());
    let mut builder = PrometheusBuilder::new();
    for (matcher, buckets) in kinds.into_iter().chain(named) {
        builder = builder
            .set_buckets_for_metric(matcher, buckets)
            .expect("the lists of buckets are not empty");
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    const IDLE: Duration = Duration::from_millis(40);
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

    /// Sweeps at the interval of the thread until the text is as expected.
    fn sweep_until(exporter: &Exporter, is_wanted: impl Fn(&str) -> bool) -> String {
        loop {
            std::thread::sleep(exporter.sweep_interval());
            exporter.sweep();
            let text = exporter.render();
            if is_wanted(&text) {
                return text;
            }
        }
    }

    #[test]
    fn idle_series_are_dropped_and_handles_recreate_them() {
        let exporter = Exporter::new(10, IDLE, DECLARED);
        let recorder = exporter.recorder();
        let (counter, histogram) = metrics::with_local_recorder(&recorder, || {
            metrics::gauge!("level").set(7.0);
            metrics::counter!("rare").increment(1);
            metrics::histogram!("size_gb").record(5.0);
            (
                metrics::counter!("asked_total"),
                metrics::histogram!("took_duration_seconds"),
            )
        });
        assert!(exporter.render().contains("asked_total 0"));
        counter.increment(5);
        histogram.record(0.25);
        let text = exporter.render();
        assert!(text.contains("asked_total 5"), "{text}");
        assert!(text.contains("took_duration_seconds_count 1"), "{text}");
        let text = sweep_until(&exporter, |text| {
            !text.contains("asked") && !text.contains("took")
        });
        for lasting in ["level 7", "rare 1", "size_gb_bucket{le=\"7\"} 1"] {
            assert!(text.contains(lasting), "{lasting}: {text}");
        }

        counter.increment(2);
        histogram.record(4.0);
        histogram.record(4.0);
        let text = exporter.render();
        assert!(text.contains("asked_total 2"), "{text}");
        assert!(text.contains("took_duration_seconds_count 2"), "{text}");
        assert!(text.contains("took_duration_seconds_sum 8"), "{text}");
        assert!(text.contains("level 7"), "{text}");
    }

    #[test]
    fn idle_series_free_capacity_at_the_bound() {
        let exporter = Exporter::new(3, IDLE, &[]);
        let recorder = exporter.recorder();
        metrics::with_local_recorder(&recorder, || {
            metrics::gauge!("level").set(7.0);
            metrics::counter!("old_total").increment(1);
            let busy = metrics::counter!("busy_total");
            let new = metrics::counter!("new_total");
            let text = sweep_until(&exporter, |text| {
                busy.increment(1);
                new.increment(1);
                text.contains("new_total")
            });
            // The library has dropped the old one by then: never more series than the bound.
            assert!(!text.contains("old_total"), "{text}");
            assert!(text.contains("new_total 1\n"), "{text}");
            assert!(text.contains("busy_total"), "{text}");
            assert!(text.contains("level 7"), "{text}");
        });
    }

    #[test]
    fn an_upkeep_does_not_recreate_a_dropped_histogram() {
        let exporter = Exporter::new(1000, Duration::from_millis(1), &[]);
        let recorder = exporter.recorder();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Relaxed) {
                    exporter.upkeep();
                    std::thread::yield_now();
                }
            });
            metrics::with_local_recorder(&recorder, || {
                for i in 0..4000 {
                    metrics::histogram!("took_duration_seconds", "of" => i.to_string()).record(1.0);
                    if i % 20 == 19 {
                        exporter.sweep();
                    }
                }
                // Used after the last sweep, so it goes with the histograms or after them.
                metrics::counter!("last_total").increment(1);
            });
            is_done.store(true, Relaxed);
        });
        let text = sweep_until(&exporter, |text| !text.contains("last"));
        assert!(!text.contains("took"), "{text}");
    }
}
