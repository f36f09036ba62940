//! Writes the times of polls, many at once.

use service::CancellationToken;

use super::pause;
use crate::app::App;

/// Runs until `shutdown`, and then writes what is left.
pub(super) async fn run(app: &App, shutdown: &CancellationToken) {
    while pause(app.settings.check_in_flush_interval, shutdown).await {
        flush(app).await;
    }
    flush(app).await;
}

async fn flush(app: &App) {
    if let Err(error) = app.flush_check_ins().await {
        tracing::warn!(
            error = error.chain(),
            "the times of polls could not be written, trying again"
        );
    }
}
