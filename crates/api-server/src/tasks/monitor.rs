//! Periodic refresh of clusters with running timeouts, with a measurement of the file system, and the periodic flush of
//! heartbeats.

use service::CancellationToken;
use tokio::task::spawn_blocking;

use super::pause::pause;
use crate::app::ApiServer;
use crate::app::monitor::refresh_due;
use crate::measurements::measure_file_system;

/// Refreshes clusters and pool hosts until `shutdown`.
pub(super) async fn run(app: &ApiServer, shutdown: &CancellationToken) {
    while pause(app.settings.cluster_monitor_interval, shutdown).await {
        if let Err(error) = refresh_due(&app.db, &app.clusters, &app.heartbeats, shutdown).await {
            tracing::warn!(error = error.chain(), "cluster monitor failed, retrying");
        }
        let folder = app.settings.work_dir.clone();
        // It cannot fail, except that the runtime ends.
        let measured = spawn_blocking(move || measure_file_system(&folder)).await;
        measured.ok();
    }
}

/// Flushes heartbeats until `shutdown`; the last batch is flushed after the requests are drained.
pub(super) async fn flush_periodically(app: &ApiServer, shutdown: &CancellationToken) {
    while pause(app.settings.check_in_flush_interval, shutdown).await {
        flush(app).await;
    }
}

/// Flushes the pending heartbeats.
pub(super) async fn flush(app: &ApiServer) {
    if let Err(error) = app.heartbeats.flush().await {
        tracing::warn!(error = error.chain(), "heartbeats not flushed, retrying");
    }
}
