//! Looks at what time alone may change: clusters in which a clock runs, and hosts that fell silent.

use service::CancellationToken;

use super::pause;
use crate::app::App;

/// Runs until `shutdown`.
pub(super) async fn run(app: &App, shutdown: &CancellationToken) {
    while pause(app.settings.cluster_monitor_interval, shutdown).await {
        if let Err(error) = app.monitor(shutdown).await {
            tracing::warn!(
                error = error.chain(),
                "looking at the clusters failed, trying again"
            );
        }
    }
}
