//! Writes the times of polls, many at once.

use service::CancellationToken;

use super::pause;
use crate::app::App;

/// Runs until `shutdown`; what is left then is written when the last request has been answered.
pub(super) async fn run(app: &App, shutdown: &CancellationToken) {
    while pause(app.settings.check_in_flush_interval, shutdown).await {
        flush(app).await;
    }
}

/// Writes what is gathered.
pub(super) async fn flush(app: &App) {
    if let Err(error) = app.flush_check_ins().await {
        tracing::warn!(
            error = error.chain(),
            "the times of polls could not be written, trying again"
        );
    }
}
