//! Reaching the database: at the start, and again whenever it was away or has moved.

use std::time::{Duration, Instant};

use service::health::Health;
use service::{CancellationToken, StateLog};
use sqlx::{Connection as _, PgConnection};
use tokio::time::timeout;

use super::pause;
use crate::app::App;
use crate::db::DatabaseUnavailable;

/// How `/ready` calls it.
pub(crate) const DATABASE: &str = "database";
/// Between tries while the database is away: it should be found within a second.
const RETRY: Duration = Duration::from_millis(250);
/// Between looks while it is there.
const WATCH: Duration = Duration::from_secs(2);
/// Between tries while it refuses us: each is a line in its log.
const REFUSED: Duration = Duration::from_secs(5);
/// Between two log lines about the same state.
const REMINDER: Duration = Duration::from_mins(10);
/// A look that takes longer counts as no answer.
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// A database that came back is brought up to date within this time, which includes waiting for other replicas.
const MIGRATE_TIMEOUT: Duration = Duration::from_mins(1);
/// The same at the start, when there may be much to change: who waits longer waits for a database that went silently.
const FIRST_MIGRATE_TIMEOUT: Duration = Duration::from_mins(10);

/// Brings the schema up to date as soon as the database is there; false when the server ended before that.
pub(super) async fn migrate(app: &App, health: &Health, shutdown: &CancellationToken) -> bool {
    let mut log = StateLog::new(REMINDER);
    loop {
        let opened = tokio::select! {
            opened = open(app) => opened,
            () = shutdown.cancelled() => return false,
        };
        let Err(away) = opened else {
            tracing::info!("the database is ready");
            app.hearing.works(service::clock::now());
            health.ready(DATABASE);
            return true;
        };
        let reason = away.reason();
        if let Some(suppressed) = log.admit(&reason, Instant::now()) {
            let error = away.to_string();
            tracing::warn!(reason, error, suppressed, "the database cannot be used yet");
        }
        health.unready(DATABASE, reason);
        let pace = if away.is_refusal() { REFUSED } else { RETRY };
        if !pause(pace, shutdown).await {
            return false;
        }
    }
}

async fn open(app: &App) -> Result<(), DatabaseUnavailable> {
    let mut connection = app.db.connect().await?;
    let migrating = app.db.migrate(&mut connection);
    timeout(FIRST_MIGRATE_TIMEOUT, migrating)
        .await
        .map_err(|_| DatabaseUnavailable::Silent(FIRST_MIGRATE_TIMEOUT.as_secs()))?
}

/// Keeps `/ready` true to the database's state.
pub(super) async fn watch(app: &App, health: &Health, shutdown: &CancellationToken) {
    let mut connection = None;
    let mut log = StateLog::new(REMINDER);
    let mut is_away = false;
    let mut pace = WATCH;
    while pause(pace, shutdown).await {
        let looked = tokio::select! {
            looked = look(app, &mut connection) => looked,
            () = shutdown.cancelled() => return,
        };
        pace = WATCH;
        let Err(away) = looked else {
            app.hearing.works(service::clock::now());
            health.ready(DATABASE);
            log.recovered(Instant::now());
            if std::mem::take(&mut is_away) {
                tracing::info!("the database is back");
            }
            continue;
        };
        connection = None;
        app.hearing.fails();
        let reason = away.reason();
        health.unready(DATABASE, reason.clone());
        if away.is_refusal() {
            app.db.suspend();
            pace = REFUSED;
        }
        if let Some(suppressed) = log.admit(&reason, Instant::now()) {
            let error = away.to_string();
            tracing::error!(reason, error, suppressed, "the database cannot be used");
        }
        is_away = true;
    }
}

/// Asks for a sign of life, on a new connection where the old one is of no use any more.
async fn look(app: &App, connection: &mut Option<PgConnection>) -> Result<(), DatabaseUnavailable> {
    if connection.is_some() && app.db.has_moved().await {
        *connection = None;
    }
    if let Some(connection) = connection {
        let pong = timeout(PING_TIMEOUT, connection.ping()).await;
        return Ok(pong.map_err(|_| DatabaseUnavailable::Silent(PING_TIMEOUT.as_secs()))??);
    }
    let opened = app.db.connect().await?;
    let migrated = timeout(MIGRATE_TIMEOUT, app.db.migrate_again(opened)).await;
    *connection =
        Some(migrated.map_err(|_| DatabaseUnavailable::Silent(MIGRATE_TIMEOUT.as_secs()))??);
    Ok(())
}
