//! Reaching the database: at the start, and again whenever it was away.

use std::time::Duration;

use service::CancellationToken;
use service::health::Health;
use sqlx::{Connection as _, PgConnection};

use super::pause;
use crate::app::App;

/// How `/ready` calls it.
pub(crate) const DATABASE: &str = "database";
/// Between tries while the database is away: it should be found within a second.
const RETRY: Duration = Duration::from_millis(250);
/// Between looks while it is there.
const WATCH: Duration = Duration::from_secs(2);
/// A look that takes longer counts as no answer.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// Brings the schema up to date as soon as the database is there; false when the server ended before that.
pub(super) async fn migrate(app: &App, health: &Health, shutdown: &CancellationToken) -> bool {
    let mut told = String::new();
    loop {
        let migrated = tokio::select! {
            migrated = app.db.migrate() => migrated,
            () = shutdown.cancelled() => return false,
        };
        match migrated {
            Ok(()) => {
                tracing::info!("the database is ready");
                app.hearing.works(service::clock::now());
                health.ready(DATABASE);
                return true;
            }
            Err(error) => {
                let text = error.to_string();
                health.unready(
                    DATABASE,
                    "not reached, or its schema cannot be brought up to date",
                );
                if text != told {
                    tracing::warn!(
                        error = text,
                        "the database cannot be used yet, trying again"
                    );
                    told = text;
                }
            }
        }
        if !pause(RETRY, shutdown).await {
            return false;
        }
    }
}

/// Keeps `/ready` true to the database's state.
pub(super) async fn watch(app: &App, health: &Health, shutdown: &CancellationToken) {
    let mut connection = None;
    let mut was_there = true;
    while pause(WATCH, shutdown).await {
        let answer = tokio::time::timeout(PING_TIMEOUT, ping(app, &mut connection)).await;
        let is_there = matches!(answer, Ok(Ok(())));
        if is_there {
            app.hearing.works(service::clock::now());
            health.ready(DATABASE);
        } else {
            connection = None;
            app.hearing.fails();
            health.unready(DATABASE, "does not answer");
        }
        if is_there != was_there {
            if is_there {
                tracing::info!("the database is back");
            } else {
                tracing::error!("the database does not answer");
            }
            was_there = is_there;
        }
    }
}

async fn ping(app: &App, connection: &mut Option<PgConnection>) -> Result<(), sqlx::Error> {
    match connection {
        Some(connection) => connection.ping().await,
        None => connection.insert(app.db.watcher().await?).ping().await,
    }
}
