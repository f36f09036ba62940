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

use std::sync::Arc;
use std::time::Duration;

use service::health::Health;
use service::{CancellationToken, Error};

use crate::app::ApiServer;
use crate::app::audit_writer::AuditWriter;

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
    let drained = CancellationToken::new();
    let audit = AuditWriter::new(app.db.clone(), Arc::clone(&app.audit), &app.settings).await;
    let audit = audit.map(|writer| tokio::spawn(writer.run(drained.clone())));
    tokio::join!(
        database::watch(&app, &health, &shutdown),
        monitor::flush_periodically(&app, &shutdown),
        monitor::run(&app, &shutdown),
        preparation::run(&app, &shutdown),
        jobs::run(&app.jobs, &shutdown),
        bmc_boots::run(&app, &shutdown),
        added_images::run(&app.releases, &app.os_images, &shutdown),
        event_streams::run(&app.event_streams, &shutdown),
        change_streams::run(&app.change_streams, &shutdown),
        notifications::run(&app, &shutdown),
        sealing::run(&app.db, &app.store, &shutdown),
        app.offer.follow(&shutdown),
    );
    app.requests.close();
    if tokio::time::timeout(DRAIN, app.requests.wait())
        .await
        .is_err()
    {
        tracing::warn!("requests not drained in time, closing the database");
    }
    // After the drain: the last requests have records, and in-flight polls add heartbeats.
    drained.cancel();
    if let Some(audit) = audit {
        audit.await.ok();
    }
    monitor::flush(&app).await;
    app.db.close().await;
    Ok(())
}
