//! Reads the registry of the site when it has changed, and every hour; follows the readings of all replicas.

use std::sync::Arc;
use std::time::{Duration, Instant};

use service::CancellationToken;

use super::pause::pause;
use crate::app::registry_content::SiteContent;

/// Interval of readings without a notification: of registries that send none, and of lost ones.
const INTERVAL: Duration = Duration::from_hours(1);
/// Pause before a reading: a push of a release sends hundreds of notifications.
const GATHERING: Duration = Duration::from_millis(500);
/// Pause before a reading, as a multiple of the last one: anybody may send notifications, and those of a large registry
/// must not keep it busy.
const PACE: u32 = 4;
/// First and longest pause after a failure.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(1));

/// Interval of looking for the reading of another replica.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(5);

/// Reads until `shutdown`.
pub(super) async fn run(content: Arc<SiteContent>, shutdown: &CancellationToken) {
    if !content.is_read() {
        return;
    }
    let mut retry = RETRY.0;
    let mut hourly = tokio::time::interval(INTERVAL);
    // The first tick is at once, and everything is unread.
    hourly.tick().await;
    loop {
        let started = Instant::now();
        let read = tokio::select! {
            read = content.read() => read,
            () = shutdown.cancelled() => return,
        };
        let gathering = GATHERING.max(RETRY.1.min(started.elapsed() * PACE));
        let retried = match read {
            Ok(()) => {
                retry = RETRY.0;
                None
            }
            Err(error) => {
                let error = error.chain();
                let pause_s = retry.as_secs();
                tracing::warn!(
                    error,
                    pause_s,
                    "registry not read, the last content stays on offer"
                );
                let wait = retry;
                retry = RETRY.1.min(retry * 2);
                Some(wait)
            }
        };
        tokio::select! {
            () = content.due() => {}
            () = tokio::time::sleep(retried.unwrap_or(INTERVAL)), if retried.is_some() => {}
            _ = hourly.tick() => content.may_have_changed(),
            () = shutdown.cancelled() => return,
        }
        if !pause(gathering, shutdown).await {
            return;
        }
    }
}

/// Offers the last reading of any replica, until `shutdown`.
pub(super) async fn follow(content: Arc<SiteContent>, shutdown: &CancellationToken) {
    let mut is_first = true;
    loop {
        let mut followed = content.follow().await;
        if followed.is_ok() && is_first && content.is_known() {
            followed = content.report_added_images().await;
            is_first = followed.is_err();
        }
        if let Err(error) = followed {
            let error = error.chain();
            tracing::debug!(error, "the registry's last content not read, retrying");
        }
        if !pause(FOLLOW_INTERVAL, shutdown).await {
            return;
        }
    }
}
