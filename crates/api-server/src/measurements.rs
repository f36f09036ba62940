//! Metrics of installations, under the names and labels that dashboards of the assisted installer read.
//!
//! Most follow from the difference that a committed change makes, in one place (`app/cluster_store/measured.rs`). Labels have values out of
//! closed sets, so that no cluster or host has series of its own; names of images are the exception, and series of
//! images are dropped when they are idle.
//!
//! Source: assisted-service, internal/metrics/metricsManager.go.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use preparation::InstallerCacheEvent;
use service::metrics::DeclaredMetric;

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
enum MetricKind {
    Counter,
    Gauge,
    /// With the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

/// A metric of installations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    help: &'static str,
}

const RESULT: &str = "result";
const ROLE: &str = "role";
const IMAGE: &str = "imageName";

const INSTALLATION_BUCKETS: &[f64] = &[
    1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1200.0, 1800.0,
];
const OPERATION_BUCKETS: &[f64] = &[
    100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0, 1200.0, 1400.0, 1600.0,
    1800.0, 2000.0, 2400.0, 2800.0, 3200.0, 3600.0, 4000.0, 5000.0,
];
const IMAGE_BUCKETS: &[f64] = &[
    0.1, 0.5, 1.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0,
];
const REFRESH_BUCKETS: &[f64] = &[10.0, 100.0, 200.0, 500.0, 1000.0, 10_000.0, 30_000.0];
const CYCLE_BUCKETS: &[f64] = &[
    1000.0, 10_000.0, 30_000.0, 60_000.0, 120_000.0, 180_000.0, 240_000.0, 300_000.0, 360_000.0,
    420_000.0, 480_000.0, 540_000.0, 600_000.0,
];

macro_rules! metrics_table {
    ($($constant:ident = $name:literal, $kind:expr, $labels:expr, $help:literal;)+) => {
        $(pub(crate) const $constant: Metric = Metric {
            name: concat!("service_assisted_installer_", $name),
            kind: $kind,
            labels: &$labels,
            help: $help,
        };)+

        /// Every metric.
        static METRICS: &[Metric] = &[$($constant),+];
    };
}

metrics_table! {
    CLUSTER_CREATIONS = "cluster_creations", MetricKind::Counter, [], "Clusters created";
    INSTALLATION_STARTED = "cluster_installation_started", MetricKind::Counter, [], "Clusters that began to install";
    INSTALLATION_SECONDS = "cluster_installation_seconds", MetricKind::Histogram(INSTALLATION_BUCKETS), [RESULT],
        "Seconds from the start of an installation to its end";
    OPERATION_DURATION = "operation_duration_miliseconds", MetricKind::Histogram(OPERATION_BUCKETS), ["operation"],
        "Milliseconds of the monitor's passes over clusters and over pool hosts";
    PHASE_SECONDS = "host_installation_phase_seconds", MetricKind::Histogram(INSTALLATION_BUCKETS), ["phase", RESULT],
        "Seconds that a host was in a stage of its installation";
    HOSTS = "cluster_hosts", MetricKind::Counter, [ROLE, RESULT], "Hosts whose installation ended";
    HOST_CORES = "cluster_host_cores", MetricKind::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]),
        [ROLE, RESULT], "Processor cores of hosts whose installation ended";
    HOST_RAM = "cluster_host_ram_gb", MetricKind::Histogram(&[8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0]),
        [ROLE, RESULT], "Memory of hosts whose installation ended, in GiB";
    HOST_DISK = "cluster_host_disk_gb", MetricKind::Histogram(&[250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0, 16_000.0]),
        ["diskType", ROLE, RESULT], "Size of the disks of hosts whose installation ended, in GiB";
    HOST_NIC = "cluster_host_nic_gb", MetricKind::Histogram(&[1.0, 10.0, 20.0, 40.0, 100.0]), [ROLE, RESULT],
        "Speed of the network interfaces of hosts whose installation ended, in Gbit/s";
    DISK_SYNC = "cluster_host_disk_sync_duration_ms", MetricKind::Histogram(&[1.0, 5.0, 10.0, 15.0, 20.0]), [],
        "Milliseconds of a flush of an installation disk";
    IMAGE_PULL = "cluster_image_pull_status", MetricKind::Histogram(IMAGE_BUCKETS), [IMAGE, RESULT],
        "Rate of the first pull of an image by a host, in MB/s";
    HOST_VALIDATION_FAILED = "host_validation_is_in_failed_status_on_cluster_deletion", MetricKind::Counter,
        ["hostValidationType"], "Validations of hosts that failed when their cluster was deleted";
    HOST_VALIDATION_CHANGED = "host_validation_failed_after_success_before_installation", MetricKind::Counter,
        ["hostValidationType"], "Validations of hosts that failed after a success";
    CLUSTER_VALIDATION_FAILED = "cluster_validation_is_in_failed_status_on_cluster_deletion", MetricKind::Counter,
        ["clusterValidationType"], "Validations of clusters that failed when the cluster was deleted";
    CLUSTER_VALIDATION_CHANGED = "cluster_validation_failed_after_success_before_installation", MetricKind::Counter,
        ["clusterValidationType"], "Validations of clusters that failed after a success";
    FILESYSTEM_USAGE = "filesystem_usage_percentage", MetricKind::Gauge, [],
        "Used part of the file system of the file store, in percent";
    MONITORED_HOST = "monitored_hosts_duration_ms", MetricKind::Histogram(REFRESH_BUCKETS), [],
        "Milliseconds of the refresh of a pool host by the monitor";
    MONITORED_CLUSTER = "monitored_clusters_duration_ms", MetricKind::Histogram(REFRESH_BUCKETS), [],
        "Milliseconds of the refresh of a cluster and its hosts by the monitor";
    HOSTS_CYCLE = "monitored_hosts_cycle_duration_ms", MetricKind::Histogram(CYCLE_BUCKETS), ["fullscan"],
        "Milliseconds of the monitor's pass over pool hosts; fullscan: it had room for all that were due";
    CLUSTERS_CYCLE = "monitored_clusters_cycle_duration_ms", MetricKind::Histogram(CYCLE_BUCKETS), ["fullscan"],
        "Milliseconds of the monitor's pass over clusters; fullscan: it had room for all that were due";
    RELEASE_CACHE = "release_cache", MetricKind::Counter, ["releaseId", "hit"],
        "Look-ups of installers in the cache, by the minor version of the release";
    RELEASE_CACHE_EVICTION = "release_cache_eviction", MetricKind::Counter, ["success"],
        "Attempts to evict an installer from the cache";
}

/// Declares and describes the metrics; before the first is recorded.
pub(crate) fn declare() {
    static DECLARED: LazyLock<Vec<DeclaredMetric>> = LazyLock::new(|| {
        let declared = METRICS.iter().map(|metric| DeclaredMetric {
            name: metric.name,
            buckets: match metric.kind {
                MetricKind::Histogram(buckets) => buckets,
                MetricKind::Counter | MetricKind::Gauge => &[],
            },
            lasts: !metric.labels.contains(&IMAGE),
        });
        declared.collect()
    });
    service::metrics::declare(&DECLARED);
    service::metrics::recorder();
    for metric in METRICS {
        match metric.kind {
            MetricKind::Counter => metrics::describe_counter!(metric.name, metric.help),
            MetricKind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
            MetricKind::Histogram(_) => metrics::describe_histogram!(metric.name, metric.help),
        }
    }
}

/// One value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measurement {
    pub(crate) metric: Metric,
    /// Names and values.
    pub(crate) labels: Vec<(&'static str, String)>,
    /// One for a counter.
    pub(crate) value: f64,
}

impl Metric {
    /// One more of a counter, with the values of its labels in their order.
    pub(crate) fn count(self, labels: &[&str]) -> Measurement {
        self.value(1.0, labels)
    }

    /// A value, with those of its labels in their order.
    pub(crate) fn value(self, value: f64, labels: &[&str]) -> Measurement {
        debug_assert_eq!(self.labels.len(), labels.len(), "{}", self.name);
        let labels = self.labels.iter().zip(labels);
        Measurement {
            metric: self,
            labels: labels
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            value,
        }
    }

    /// A duration in milliseconds.
    pub(crate) fn millis(self, duration: Duration, labels: &[&str]) -> Measurement {
        self.value(duration.as_secs_f64() * 1e3, labels)
    }
}

impl Measurement {
    /// Records it.
    pub(crate) fn record(&self) {
        let name = self.metric.name;
        match self.metric.kind {
            MetricKind::Counter => metrics::counter!(name, &self.labels).increment(1),
            MetricKind::Gauge => metrics::gauge!(name, &self.labels).set(self.value),
            MetricKind::Histogram(_) => {
                metrics::histogram!(name, &self.labels).record(self.value);
            }
        }
    }
}

/// Counts an event of the installer cache.
pub(crate) fn count_cache_event(event: &InstallerCacheEvent) {
    let word = |is: bool| if is { "true" } else { "false" };
    let counted = match event {
        InstallerCacheEvent::LookedUp {
            minor_version,
            is_hit,
        } => RELEASE_CACHE.count(&[minor_version, word(*is_hit)]),
        InstallerCacheEvent::Evicted { is_success } => {
            RELEASE_CACHE_EVICTION.count(&[word(*is_success)])
        }
    };
    counted.record();
}

/// Measures the file system of `folder`; blocks.
pub(crate) fn measure_file_system(folder: &Path) {
    match rustix::fs::statvfs(folder) {
        Ok(found) if found.f_blocks > 0 => {
            let used = found.f_blocks.saturating_sub(found.f_bfree);
            // Tenths: in integers, so that nothing is lost.
            let tenths = u128::from(used) * 1000 / u128::from(found.f_blocks);
            let tenths = u16::try_from(tenths).unwrap_or(1000);
            FILESYSTEM_USAGE
                .value(f64::from(tenths) / 10.0, &[])
                .record();
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "usage of the file system unknown");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// All metrics of the process.
    fn text() -> String {
        declare();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.build().unwrap();
        let text = runtime.block_on(service::metrics::render()).unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }

    #[test]
    fn metrics_are_the_documented_ones() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        assert_eq!(names.len(), 23);
        for metric in METRICS {
            assert!(metric.name.starts_with("service_assisted_installer_"));
            // An installer's dashboards know the counters by these names, without the usual suffix.
            assert!(!metric.name.ends_with("_total"), "{}", metric.name);
        }
    }

    #[test]
    fn events_of_the_installer_cache_are_counted() {
        declare();
        for is_success in [true, false] {
            count_cache_event(&InstallerCacheEvent::Evicted { is_success });
        }
        count_cache_event(&InstallerCacheEvent::LookedUp {
            minor_version: "4.19".to_owned(),
            is_hit: true,
        });
        let metrics = text();
        for series in [
            "release_cache_eviction{success=\"true\"}",
            "release_cache_eviction{success=\"false\"}",
            "release_cache{releaseId=\"4.19\",hit=\"true\"}",
        ] {
            assert!(metrics.contains(series), "{series}");
        }
    }

    #[test]
    fn file_systems_have_a_usage() {
        declare();
        measure_file_system(Path::new("/"));
        let text = text();
        let line = text
            .lines()
            .find(|line| line.starts_with(FILESYSTEM_USAGE.name));
        let value: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert!((0.0..=100.0).contains(&value), "{value}");
    }
}
