//! Metrics of catalogs. Label cardinality is bounded: names are those of the settings.

use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};

/// Reloads, by result.
const LOADS: &str = "atoll_catalog_loads_total";
/// 1 while the source's revision cannot be served and a previous one is.
const STALE: &str = "atoll_catalog_stale";
/// Packages that are not served since they break rules.
const LEFT_OUT: &str = "atoll_catalog_packages_left_out";
/// 1 while the catalog is served.
const SERVED: &str = "atoll_catalog_served";
/// Time of the last reload. Units: seconds since 1970.
const SINCE: &str = "atoll_catalog_served_since_timestamp_seconds";

/// Metrics of one catalog.
pub(crate) struct CatalogMetrics {
    loaded: Counter,
    failed: Counter,
    stale: Gauge,
    left_out: Gauge,
    served: Gauge,
    since: Gauge,
}

impl CatalogMetrics {
    pub(crate) fn of(catalog: &str) -> Self {
        service::metrics::recorder();
        describe_counter!(LOADS, "Loads of the catalog, by result");
        describe_gauge!(
            STALE,
            "1 while the catalog's source cannot be loaded and a previous state is served"
        );
        describe_gauge!(
            LEFT_OUT,
            "Packages of the catalog that are not served since they break rules"
        );
        describe_gauge!(SERVED, "1 while the catalog is served");
        describe_gauge!(SINCE, "Time of the last successful load");
        let name = catalog.to_owned();
        let metrics = Self {
            loaded: counter!(LOADS, "catalog" => name.clone(), "result" => "served"),
            failed: counter!(LOADS, "catalog" => name.clone(), "result" => "failed"),
            stale: gauge!(STALE, "catalog" => name.clone()),
            left_out: gauge!(LEFT_OUT, "catalog" => name.clone()),
            served: gauge!(SERVED, "catalog" => name.clone()),
            since: gauge!(SINCE, "catalog" => name),
        };
        metrics.stale.set(0.0);
        metrics.left_out.set(0.0);
        metrics.served.set(0.0);
        metrics
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds of our age fit")]
    pub(crate) fn served(&self) {
        self.loaded.increment(1);
        self.served.set(1.0);
        self.since.set(service::clock::now().timestamp() as f64);
    }

    #[expect(clippy::cast_precision_loss, reason = "catalogs have few packages")]
    pub(crate) fn left_out(&self, packages: usize) {
        self.left_out.set(packages as f64);
    }

    pub(crate) fn failed(&self) {
        self.failed.increment(1);
    }

    pub(crate) fn stale(&self, is_stale: bool) {
        self.stale.set(f64::from(u8::from(is_stale)));
    }
}
