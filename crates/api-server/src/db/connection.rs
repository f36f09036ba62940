//! The pool, the start of the schema, and named transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::Error as Domain;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Connection as _, PgConnection, PgPool};

use super::Error;
use crate::settings::Settings;

/// How long a request waits for a connection before it is told to come again.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was used a moment ago is used again without asking whether it still works.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// A database that was frozen, not stopped, answers nothing at all: agents are told to come again by then.
const TX_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a transaction is run again when the database asks for it.
const ATTEMPTS: u32 = 5;
/// On which replicas tell each other of ordered installations.
const PREPARATION_CHANNEL: &str = "atoll_preparation";
/// Histogram: how long a transaction took, by name.
const TX_DURATION: &str = "atoll_api_transaction_duration_seconds";

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations");

/// The pool, and whether its schema is the one this program was written for.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pool: PgPool,
    usable: Arc<AtomicBool>,
}

impl Database {
    /// A pool that connects when it is first asked.
    pub(crate) fn new(settings: &Settings) -> Self {
        use secrecy::ExposeSecret as _;
        let options = PgConnectOptions::new_without_pgpass()
            .host(&settings.db_host)
            .port(settings.db_port)
            .username(&settings.db_user)
            .password(settings.db_pass.expose_secret())
            .database(&settings.db_name)
            .application_name("atoll-api-server");
        let pool = PgPoolOptions::new()
            .max_connections(settings.db_max_open_connections)
            .max_lifetime(settings.db_connections_max_lifetime)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .before_acquire(|connection, used| {
                Box::pin(async move {
                    let is_fresh = used.idle_for < TRUSTED_FOR;
                    Ok(is_fresh || connection.ping().await.is_ok())
                })
            })
            .connect_lazy_with(options);
        Self {
            pool,
            usable: Arc::new(AtomicBool::new(false)),
        }
    }

    /// The pool, once the schema stands.
    ///
    /// Errors: Unavailable until then.
    pub(crate) fn pool(&self) -> Result<&PgPool, Domain> {
        if self.usable.load(Ordering::Acquire) {
            return Ok(&self.pool);
        }
        Err(Domain::Unavailable {
            what: "the database",
            source: None,
        })
    }

    /// Brings the schema up to date; replicas that start together wait for each other.
    pub(crate) async fn migrate(&self) -> Result<(), sqlx::migrate::MigrateError> {
        MIGRATIONS.run(&self.pool).await?;
        self.usable.store(true, Ordering::Release);
        Ok(())
    }

    /// A connection beside the pool, to watch the database by: a busy pool says nothing about the database.
    pub(crate) async fn watcher(&self) -> Result<PgConnection, sqlx::Error> {
        PgConnection::connect_with(&self.pool.connect_options()).await
    }

    /// Hears of preparations that other replicas have ordered.
    pub(crate) async fn listen_for_preparations(&self) -> Result<PgListener, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(PREPARATION_CHANNEL).await?;
        Ok(listener)
    }

    /// Ends every connection.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Runs `attempt` under a name, again when the database asks for it, and tells its errors to the caller.
pub(crate) async fn tx<T, F>(
    name: &'static str,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Domain>
where
    F: Future<Output = Result<T, Error>>,
{
    let started = Instant::now();
    let mut tries = 1;
    let attempts = async {
        loop {
            match attempt().await {
                Err(error) if error.is_retryable() && tries < ATTEMPTS => {
                    tracing::debug!(name, tries, %error, "running the transaction again");
                    tries += 1;
                }
                result => break result,
            }
        }
    };
    let result = tokio::time::timeout(TX_TIMEOUT, attempts).await;
    metrics::histogram!(TX_DURATION, "name" => name).record(started.elapsed().as_secs_f64());
    match result {
        Ok(result) => result.map_err(|error| error.into_domain(name)),
        Err(elapsed) => Err(Domain::unavailable("the database", elapsed)),
    }
}
