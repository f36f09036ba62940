//! Notifications of the database: changes that any replica has committed.

use std::sync::Arc;
use std::time::Duration;

use service::CancellationToken;

use super::pause::pause;
use crate::app::ClusterStore;
use crate::app::event_stream::EventStreams;
use crate::db::{Database, EVENT_CHANNEL, PREPARATION_CHANNEL};

/// Pause after a failure. Meanwhile, the tasks that are notified poll.
const RETRY: Duration = Duration::from_secs(5);

/// Wakes the tasks that wait for notifications, until `shutdown`.
pub(super) async fn run(
    db: &Database,
    clusters: Arc<ClusterStore>,
    events: Arc<EventStreams>,
    shutdown: &CancellationToken,
) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = listen(db, &clusters, &events) => {}
        }
        if !pause(RETRY, shutdown).await {
            return;
        }
    }
}

/// Errors: the connection is lost.
async fn listen(
    db: &Database,
    clusters: &ClusterStore,
    events: &EventStreams,
) -> Result<(), sqlx::Error> {
    let mut listener = db.listen(&[PREPARATION_CHANNEL, EVENT_CHANNEL]).await?;
    loop {
        match listener.recv().await?.channel() {
            PREPARATION_CHANNEL => clusters.preparation_due.notify_one(),
            _ => events.wake.notify_one(),
        }
    }
}
