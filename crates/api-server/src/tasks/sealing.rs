//! Seals stored secrets after a start, and after a change of the key file.

use std::time::Duration;

use cluster_files::FileStore;
use service::CancellationToken;

use super::pause::pause;
use crate::app::sealing::seal_secrets;
use crate::db::Database;

/// Interval of looking at the key file.
const INTERVAL: Duration = Duration::from_secs(5);
/// Retry interval after a failure.
const RETRY: Duration = Duration::from_mins(1);

/// Runs until `shutdown`.
pub(super) async fn run(db: &Database, files: FileStore, shutdown: &CancellationToken) {
    loop {
        let sealed = tokio::select! {
            sealed = seal_secrets(db, &files) => sealed,
            () = shutdown.cancelled() => return,
        };
        let wait = match sealed {
            Ok(_) => INTERVAL,
            Err(error) => {
                let error = error.chain();
                tracing::error!(error, "secrets not sealed, retrying");
                RETRY
            }
        };
        if !pause(wait, shutdown).await {
            return;
        }
    }
}
