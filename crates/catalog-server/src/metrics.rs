//! What is counted about catalogs; their names are those of the settings, so that labels stay few.

use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};

/// Catalogs that took the place of another, and attempts at it.
const LOADS: &str = "atoll_catalog_loads_total";
/// 1 while what is at the source cannot be served.
const STALE: &str = "atoll_catalog_stale";
/// 1 while the catalog is served.
const SERVED: &str = "atoll_catalog_served";
/// When the catalog that is served took its place. Units: seconds since 1970.
const SINCE: &str = "atoll_catalog_served_since_timestamp_seconds";

/// Numbers of one catalog.
pub(crate) struct CatalogMetrics {
    loaded: Counter,
    failed: Counter,
    stale: Gauge,
    served: Gauge,
    since: Gauge,
}

impl CatalogMetrics {
    pub(crate) fn of(catalog: &str) -> Self {
        service::metrics::recorder();
        describe_counter!(LOADS, "Times that a catalog was read, by what came of it");
        describe_gauge!(
            STALE,
            "1 while what is at the source cannot be served, and an older state is"
        );
        describe_gauge!(SERVED, "1 while the catalog is served");
        describe_gauge!(SINCE, "When what is served took its place");
        let name = catalog.to_owned();
        let numbers = Self {
            loaded: counter!(LOADS, "catalog" => name.clone(), "result" => "served"),
            failed: counter!(LOADS, "catalog" => name.clone(), "result" => "failed"),
            stale: gauge!(STALE, "catalog" => name.clone()),
            served: gauge!(SERVED, "catalog" => name.clone()),
            since: gauge!(SINCE, "catalog" => name),
        };
        numbers.stale.set(0.0);
        numbers.served.set(0.0);
        numbers
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds of our age fit")]
    pub(crate) fn served(&self) {
        self.loaded.increment(1);
        self.served.set(1.0);
        self.since.set(service::clock::now().timestamp() as f64);
    }

    pub(crate) fn failed(&self) {
        self.failed.increment(1);
    }

    pub(crate) fn stale(&self, is_stale: bool) {
        self.stale.set(f64::from(u8::from(is_stale)));
    }
}
