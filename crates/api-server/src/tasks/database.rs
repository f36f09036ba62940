//! Connecting to the database at start and after outages, and its health check.

use std::time::{Duration, Instant};

use service::health::Health;
use service::{CancellationToken, StateLog};
use sqlx::{Connection as _, PgConnection};
use tokio::time::timeout;

use super::pause::pause;
use crate::app::Heartbeats;
use crate::db::{Database, DatabaseUnavailable};

/// Name in `/ready`.
pub(crate) const DATABASE: &str = "database";
/// Retry interval during an outage: the database's return is detected within a second.
const RETRY: Duration = Duration::from_millis(250);
/// Interval of health checks.
const WATCH: Duration = Duration::from_secs(2);
/// Retry interval while the database refuses: each attempt is a line in its log.
const REFUSED: Duration = Duration::from_secs(5);
/// Interval of repeated log lines about the same state.
const REMINDER: Duration = Duration::from_mins(10);
/// Timeout of a health check.
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of migrations after an outage, with waiting for other replicas.
const MIGRATE_TIMEOUT: Duration = Duration::from_mins(1);
/// Timeout of migrations at start, which may be long; bounds the wait for a silent database.
const FIRST_MIGRATE_TIMEOUT: Duration = Duration::from_mins(10);

/// Migrates the schema as soon as the database is available; false after a shutdown before that.
pub(super) async fn migrate(
    db: &Database,
    heartbeats: &Heartbeats,
    health: &Health,
    shutdown: &CancellationToken,
) -> bool {
    let mut log = StateLog::new(REMINDER);
    loop {
        let opened = tokio::select! {
            opened = open(db) => opened,
            () = shutdown.cancelled() => return false,
        };
        let Err(unavailable) = opened else {
            tracing::info!("database ready");
            heartbeats
                .grace_period
                .mark_available(service::clock::now());
            health.ready(DATABASE);
            return true;
        };
        let reason = unavailable.reason();
        if let Some(suppressed) = log.admit(&reason, Instant::now()) {
            let error = unavailable.to_string();
            tracing::warn!(reason, error, suppressed, "database not ready");
        }
        health.unready(DATABASE, reason);
        let pace = if unavailable.is_refusal() {
            REFUSED
        } else {
            RETRY
        };
        if !pause(pace, shutdown).await {
            return false;
        }
    }
}

async fn open(db: &Database) -> Result<(), DatabaseUnavailable> {
    let mut connection = db.connect().await?;
    let migrating = db.migrate(&mut connection);
    timeout(FIRST_MIGRATE_TIMEOUT, migrating)
        .await
        .map_err(|_| DatabaseUnavailable::Silent(FIRST_MIGRATE_TIMEOUT.as_secs()))?
}

/// Health check of the database: updates `/ready`.
pub(super) async fn watch(
    db: &Database,
    heartbeats: &Heartbeats,
    health: &Health,
    shutdown: &CancellationToken,
) {
    let mut connection = None;
    let mut log = StateLog::new(REMINDER);
    let mut is_unavailable = false;
    let mut pace = WATCH;
    while pause(pace, shutdown).await {
        let checked = tokio::select! {
        checked = check(db, &mut connection) => checked,
            () = shutdown.cancelled() => return,
        };
        pace = WATCH;
        let Err(unavailable) = checked else {
            heartbeats
                .grace_period
                .mark_available(service::clock::now());
            health.ready(DATABASE);
            log.recovered(Instant::now());
            if std::mem::take(&mut is_unavailable) {
                tracing::info!("database available again");
            }
            continue;
        };
        connection = None;
        heartbeats.grace_period.mark_unavailable();
        let reason = unavailable.reason();
        health.unready(DATABASE, reason.clone());
        if unavailable.is_refusal() {
            db.suspend();
            pace = REFUSED;
        }
        if let Some(suppressed) = log.admit(&reason, Instant::now()) {
            let error = unavailable.to_string();
            tracing::error!(reason, error, suppressed, "database unavailable");
        }
        is_unavailable = true;
    }
}

/// Pings the database, on a new connection if the old one failed or its address changed.
async fn check(
    db: &Database,
    connection: &mut Option<PgConnection>,
) -> Result<(), DatabaseUnavailable> {
    if connection.is_some() && db.has_moved().await {
        *connection = None;
    }
    if let Some(connection) = connection {
        let pong = timeout(PING_TIMEOUT, connection.ping()).await;
        return Ok(pong.map_err(|_| DatabaseUnavailable::Silent(PING_TIMEOUT.as_secs()))??);
    }
    let opened = db.connect().await?;
    let migrated = timeout(MIGRATE_TIMEOUT, db.migrate_again(opened)).await;
    *connection =
        Some(migrated.map_err(|_| DatabaseUnavailable::Silent(MIGRATE_TIMEOUT.as_secs()))??);
    Ok(())
}
