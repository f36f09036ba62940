//! How far the storage folder is adopted: gauges, and a note beside readiness while it lasts.

use std::time::Duration;

use blob_store::disk::AdoptionProgress;
use metrics::{describe_gauge, gauge};
use service::health::Health;

use crate::storage::Store;

const COMPONENT: &str = "adoption";
const REPOSITORIES: &str = "registry_storage_adoption_repositories";
const COMPARED: &str = "registry_storage_adoption_compared";
const FAILED: &str = "registry_storage_adoption_failed";
const RUNNING: &str = "registry_storage_adoption_running";
/// How often the progress is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shows the progress after each interval, for ever; ends at once for a bucket, which has no index.
pub(crate) async fn watch(store: Store, health: Health) {
    if store.adoption().is_none() {
        return;
    }
    describe_gauge!(
        REPOSITORIES,
        "Repositories in the folder when it was last compared with the index"
    );
    describe_gauge!(COMPARED, "Of these, compared");
    describe_gauge!(FAILED, "Of these, not readable");
    describe_gauge!(RUNNING, "1 while the folder is compared with the index");
    while let Some(progress) = store.adoption() {
        show(progress);
        health.ails(COMPONENT, ailment(progress));
        tokio::time::sleep(INTERVAL).await;
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "2^53 is more than anybody stores"
)]
fn show(progress: AdoptionProgress) {
    gauge!(REPOSITORIES).set(progress.repositories as f64);
    gauge!(COMPARED).set(progress.compared as f64);
    gauge!(FAILED).set(progress.failed as f64);
    gauge!(RUNNING).set(f64::from(u8::from(!progress.is_finished)));
}

fn ailment(progress: AdoptionProgress) -> Option<String> {
    let AdoptionProgress {
        is_finished,
        repositories,
        compared,
        failed,
        ..
    } = progress;
    if !is_finished {
        return Some(format!(
            "{compared} of {repositories} repositories of the storage folder are compared with the index"
        ));
    }
    (failed > 0).then(|| {
        format!(
            "{failed} repositories of the storage folder cannot be read, so no garbage is collected"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ailment_lasts_as_long_as_its_reason() {
        let progress = |is_finished, failed| AdoptionProgress {
            is_finished,
            repositories: 9,
            compared: 4,
            adopted: 1,
            failed,
        };
        assert!(ailment(progress(false, 0)).unwrap().starts_with("4 of 9"));
        assert!(ailment(progress(true, 2)).unwrap().starts_with("2 rep"));
        assert_eq!(ailment(progress(true, 0)), None);
    }
}
