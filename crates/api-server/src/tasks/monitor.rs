//! Periodic refresh of clusters with running timeouts, with a measurement of the file system, and the periodic flush of
//! heartbeats.

use std::sync::Arc;

use service::CancellationToken;
use tokio::task::spawn_blocking;

use super::pause::pause;
use crate::app::monitor::refresh_due;
use crate::app::{ClusterStore, Heartbeats};
use crate::db::Database;
use crate::measurements::measure_file_system;
use crate::settings::Settings;

/// Refreshes clusters and pool hosts until `shutdown`.
pub(super) async fn run(
    db: &Database,
    clusters: Arc<ClusterStore>,
    heartbeats: &Heartbeats,
    settings: &Settings,
    shutdown: &CancellationToken,
) {
    while pause(settings.cluster_monitor_interval, shutdown).await {
        if let Err(error) = refresh_due(db, &clusters, heartbeats, shutdown).await {
            tracing::warn!(error = error.chain(), "cluster monitor failed, retrying");
        }
        let folder = settings.work_dir.clone();
        // It cannot fail, except that the runtime ends.
        let measured = spawn_blocking(move || measure_file_system(&folder)).await;
        measured.ok();
    }
}

/// Flushes heartbeats until `shutdown`; the last batch is flushed after the requests are drained.
pub(super) async fn flush_periodically(
    heartbeats: &Heartbeats,
    settings: &Settings,
    shutdown: &CancellationToken,
) {
    while pause(settings.check_in_flush_interval, shutdown).await {
        flush(heartbeats).await;
    }
}

/// Flushes the pending heartbeats.
pub(super) async fn flush(heartbeats: &Heartbeats) {
    if let Err(error) = heartbeats.flush().await {
        tracing::warn!(error = error.chain(), "heartbeats not flushed, retrying");
    }
}
