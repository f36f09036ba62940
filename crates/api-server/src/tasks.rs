//! Background loops; each ends at shutdown.

mod added_images;
mod bmc_boots;
mod change_streams;
mod database;
mod event_streams;
mod jobs;
mod monitor;
mod notifications;
mod pause;
mod preparation;
mod sealing;

use std::time::Duration;

use service::health::Health;
use service::{CancellationToken, Error};

use crate::app::ApiServer;

pub(crate) use database::DATABASE;

/// Timeout of draining in-flight requests before the pool closes.
const DRAIN: Duration = Duration::from_secs(20);

/// Runs every loop until `shutdown`, then drains requests and flushes the last heartbeats.
pub(crate) async fn run(
    app: ApiServer,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    if !database::migrate(&app, &health, &shutdown).await {
        return Ok(());
    }
    tokio::join!(
        database::watch(&app, &health, &shutdown),
        monitor::flush_periodically(&app, &shutdown),
        monitor::run(&app, &shutdown),
        preparation::run(&app, &shutdown),
        jobs::run(&app, &shutdown),
        bmc_boots::run(&app, &shutdown),
        added_images::run(&app, &shutdown),
        event_streams::run(&app, &shutdown),
        change_streams::run(&app, &shutdown),
        notifications::run(&app, &shutdown),
        sealing::run(&app, &shutdown),
        app.current_offer.follow(&shutdown),
    );
    app.requests.close();
    if tokio::time::timeout(DRAIN, app.requests.wait())
        .await
        .is_err()
    {
        tracing::warn!("requests not drained in time, closing the database");
    }
    // After the drain: in-flight polls add heartbeats.
    monitor::flush(&app).await;
    app.db.close().await;
    Ok(())
}
