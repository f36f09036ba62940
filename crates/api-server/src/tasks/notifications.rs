//! Notifications of the database: changes that any replica has committed.

use std::time::Duration;

use service::CancellationToken;

use super::pause::pause;
use crate::app::ApiServer;
use crate::db::{EVENT_CHANNEL, PREPARATION_CHANNEL};

/// Pause after a failure. Meanwhile, the tasks that are notified poll.
const RETRY: Duration = Duration::from_secs(5);

/// Wakes the tasks that wait for notifications, until `shutdown`.
pub(super) async fn run(app: &ApiServer, shutdown: &CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = listen(app) => {}
        }
        if !pause(RETRY, shutdown).await {
            return;
        }
    }
}

/// Errors: the connection is lost.
async fn listen(app: &ApiServer) -> Result<(), sqlx::Error> {
    let mut listener = app.db.listen(&[PREPARATION_CHANNEL, EVENT_CHANNEL]).await?;
    loop {
        match listener.recv().await?.channel() {
            PREPARATION_CHANNEL => app.clusters.preparation_due.notify_one(),
            _ => app.event_streams.wake.notify_one(),
        }
    }
}
