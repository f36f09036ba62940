//! Whether the registry can do its job: looked at from time to time.

use std::time::Duration;

use blob_store::ContentStore as _;
use service::health::Health;

use crate::settings::FileCheck;
use crate::settings::Settings;
use crate::storage::Store;

const STORAGE: &str = "storage";
/// A medium that does not answer for this long has failed.
const PROBE_LIMIT: Duration = Duration::from_secs(30);
/// Zero would never let anything else run.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);
/// Between probes of a storage that does not work: it may heal by itself.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// Tries the storage now and after each interval, for ever.
pub(crate) async fn watch_storage(
    store: Store,
    may_write: bool,
    health: Health,
    settings: &Settings,
) {
    let interval = settings.registry_health_storagedriver_interval;
    let threshold = settings.registry_health_storagedriver_threshold.max(1);
    let mut failures: u32 = 0;
    loop {
        match probe(&store, may_write).await {
            Ok(()) => {
                if failures >= threshold {
                    tracing::info!("the storage works again");
                }
                failures = 0;
                health.ready(STORAGE);
            }
            Err(reason) => {
                failures = failures.saturating_add(1);
                if failures == threshold {
                    tracing::error!(reason, "the storage does not work");
                }
                if failures >= threshold {
                    health.unready(STORAGE, reason);
                }
            }
        }
        let interval = if failures > 0 {
            interval.min(RECOVERY_INTERVAL)
        } else {
            interval
        };
        tokio::time::sleep(interval.max(LEAST_INTERVAL)).await;
    }
}

async fn probe(store: &Store, may_write: bool) -> Result<(), String> {
    match tokio::time::timeout(PROBE_LIMIT, store.probe(may_write)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if error.is_full() => Err("no room is left".to_owned()),
        Ok(Err(error)) => Err(model::error::chain(&error)),
        Err(_) => Err(format!("no answer within {} s", PROBE_LIMIT.as_secs())),
    }
}

/// Looks for a file that says by being there that the registry is not ready, now and after each interval, for ever.
pub(crate) async fn watch_file(check: FileCheck, component: String, health: Health) {
    let path = check.file.display().to_string();
    loop {
        if tokio::fs::try_exists(&check.file).await.unwrap_or(true) {
            health.unready(component.clone(), format!("{path} is there"));
        } else {
            health.ready(&component);
        }
        tokio::time::sleep(check.interval.max(LEAST_INTERVAL)).await;
    }
}
