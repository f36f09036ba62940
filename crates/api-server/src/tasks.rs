//! Background loops: each ends when the server does.

mod check_ins;
mod database;
mod monitor;
mod preparation;

use std::time::Duration;

use service::health::Health;
use service::{CancellationToken, Error};

use crate::app::App;

pub(crate) use database::DATABASE;

/// How long requests that were accepted before the end may still use the database.
const DRAIN: Duration = Duration::from_secs(20);

/// Runs every loop until `shutdown`; the last times of polls are written before it ends.
pub(crate) async fn run(
    app: App,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    if !database::migrate(&app, &health, &shutdown).await {
        return Ok(());
    }
    tokio::join!(
        database::watch(&app, &health, &shutdown),
        check_ins::run(&app, &shutdown),
        monitor::run(&app, &shutdown),
        preparation::run(&app, &shutdown),
    );
    app.requests.close();
    if tokio::time::timeout(DRAIN, app.requests.wait())
        .await
        .is_err()
    {
        tracing::warn!("requests are still being answered: the database is closed to them");
    }
    check_ins::flush(&app).await;
    app.db.close().await;
    Ok(())
}

/// Waits, or learns that the server ends.
async fn pause(duration: Duration, shutdown: &CancellationToken) -> bool {
    tokio::select! {
        () = tokio::time::sleep(duration) => true,
        () = shutdown.cancelled() => false,
    }
}
