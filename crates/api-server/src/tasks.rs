//! Background loops; each ends at shutdown.

mod bmc_boots;
mod change_streams;
mod database;
mod event_streams;
mod jobs;
mod monitor;
mod notifications;
mod pause;
mod preparation;
mod registry_content;
mod sealing;

use std::sync::Arc;
use std::time::Duration;

use service::health::Health;
use service::{CancellationToken, Error};
use tokio_util::task::TaskTracker;

use crate::app::audit_writer::AuditWriter;
use crate::app::{App, Heartbeats};
use crate::db::Database;
use crate::settings::Settings;

pub(crate) use database::DATABASE;

/// Timeout of draining in-flight requests before the pool closes.
const DRAIN: Duration = Duration::from_secs(20);

/// Runs every loop until `shutdown`, then drains requests and flushes the last heartbeats.
pub(crate) async fn run(
    app: App,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let (db, requests): (Database, TaskTracker) = (app.part(), app.part());
    let settings: Arc<Settings> = app.part();
    let heartbeats: Arc<Heartbeats> = app.part();
    if !database::migrate(&db, &heartbeats, &health, &shutdown).await {
        return Ok(());
    }
    let drained = CancellationToken::new();
    let audit = AuditWriter::new(db.clone(), app.part(), &settings).await;
    let audit = audit.map(|writer| tokio::spawn(writer.run(drained.clone())));
    tokio::join!(
        database::watch(&db, &heartbeats, &health, &shutdown),
        monitor::flush_periodically(&heartbeats, &settings, &shutdown),
        monitor::run(&db, app.part(), &heartbeats, &settings, &shutdown),
        preparation::run(app.part(), app.part(), &shutdown),
        jobs::run(app.part(), &shutdown),
        bmc_boots::run(app.part(), &shutdown),
        registry_content::run(app.part(), &shutdown),
        registry_content::follow(app.part(), &shutdown),
        event_streams::run(app.part(), &shutdown),
        change_streams::run(app.part(), &shutdown),
        notifications::run(&db, app.part(), app.part(), &shutdown),
        sealing::run(&db, app.part(), &shutdown),
    );
    requests.close();
    if tokio::time::timeout(DRAIN, requests.wait()).await.is_err() {
        tracing::warn!("requests not drained in time, closing the database");
    }
    // After the drain: the last requests have records, and in-flight polls add heartbeats.
    drained.cancel();
    if let Some(audit) = audit {
        audit.await.ok();
    }
    monitor::flush(&heartbeats).await;
    db.close().await;
    Ok(())
}
