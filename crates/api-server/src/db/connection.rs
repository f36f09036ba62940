//! The pool, where it leads, the start of the schema, and named transactions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::Error as Domain;
use net::resolve::Resolver;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions, PgSslMode};
use sqlx::{Connection as _, PgConnection, PgPool};

use super::location::Location;
use super::{DatabaseUnavailable, Error, schema};
use crate::settings::{Settings, SslMode};

/// How long a request waits for a connection before it is told to come again.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one address has to accept and to let us in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Name servers of container networks answer in milliseconds.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);
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

/// The pool, and whether its schema is the one this program was written for.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pool: PgPool,
    location: Arc<Location>,
    usable: Arc<AtomicBool>,
    /// When the pool was sent elsewhere: connections of before lead to a database that is gone.
    moved: Arc<Mutex<Option<Instant>>>,
}

impl Database {
    /// A pool that connects when it is first asked.
    pub(crate) fn new(settings: &Settings, resolver: Resolver) -> Self {
        let options = connect_options(settings);
        let moved = Arc::new(Mutex::new(None));
        let pool = PgPoolOptions::new()
            .max_connections(settings.db_max_open_connections)
            .max_lifetime(settings.db_connections_max_lifetime)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .before_acquire({
                let moved = Arc::clone(&moved);
                move |connection, used| {
                    let is_left_behind = since(&moved).is_some_and(|since| used.age > since);
                    Box::pin(async move {
                        let is_fresh = used.idle_for < TRUSTED_FOR;
                        Ok(!is_left_behind && (is_fresh || connection.ping().await.is_ok()))
                    })
                }
            })
            .connect_lazy_with(options.clone());
        Self {
            pool,
            location: Arc::new(Location::new(options, resolver)),
            usable: Arc::new(AtomicBool::new(false)),
            moved,
        }
    }

    /// The pool, once the schema stands.
    ///
    /// Errors: Unavailable until then, and while the database refuses this program.
    pub(crate) fn pool(&self) -> Result<&PgPool, Domain> {
        if self.usable.load(Ordering::Acquire) {
            return Ok(&self.pool);
        }
        Err(Domain::Unavailable {
            what: "the database",
            source: None,
        })
    }

    /// A connection beside the pool, to watch the database by: a busy pool says nothing about the database. Each
    /// address is tried, and the pool goes where it succeeded.
    pub(crate) async fn connect(&self) -> Result<PgConnection, DatabaseUnavailable> {
        let current = self.pool.connect_options().get_host().to_owned();
        let mut failure = None;
        for place in self.location.places(&current).await? {
            let connecting = PgConnection::connect_with(&place);
            let away = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
                Ok(Ok(connection)) => {
                    self.follow(&current, place);
                    return Ok(connection);
                }
                Ok(Err(error)) => DatabaseUnavailable::from(error),
                Err(_) => DatabaseUnavailable::Silent(CONNECT_TIMEOUT.as_secs()),
            };
            // Nobody at the other addresses is less of a reason than a refusal at this one.
            if !failure
                .as_ref()
                .is_some_and(DatabaseUnavailable::is_refusal)
            {
                failure = Some(away);
            }
        }
        Err(failure.unwrap_or(DatabaseUnavailable::Silent(0)))
    }

    fn follow(&self, current: &str, place: PgConnectOptions) {
        let found = place.get_host();
        if found == current {
            return;
        }
        tracing::info!(address = found, "the database is found");
        self.pool.set_connect_options(place);
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        *moved = Some(Instant::now());
    }

    /// Whether the database's name leads elsewhere now. A name server that is slow or away changes nothing.
    pub(crate) async fn has_moved(&self) -> bool {
        let options = self.pool.connect_options();
        let left = self.location.has_left(options.get_host());
        tokio::time::timeout(LOOKUP_TIMEOUT, left)
            .await
            .unwrap_or(false)
    }

    /// Brings the schema up to date; replicas that start together wait for each other. After an error the connection
    /// is to be dropped: it may hold the lock that the others wait for.
    pub(crate) async fn migrate(
        &self,
        connection: &mut PgConnection,
    ) -> Result<(), DatabaseUnavailable> {
        schema::migrate(connection).await?;
        self.usable.store(true, Ordering::Release);
        Ok(())
    }

    /// The same for a database that was away: it may have come back empty, or newer than this program, which still
    /// serves then.
    pub(crate) async fn migrate_again(
        &self,
        mut connection: PgConnection,
    ) -> Result<PgConnection, DatabaseUnavailable> {
        match self.migrate(&mut connection).await {
            Ok(()) => Ok(connection),
            Err(DatabaseUnavailable::Newer { .. }) => {
                drop(connection);
                self.usable.store(true, Ordering::Release);
                self.connect().await
            }
            Err(away) => Err(away),
        }
    }

    /// Requests are refused from now on: each would only be refused by the database.
    pub(crate) fn suspend(&self) {
        self.usable.store(false, Ordering::Release);
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

fn connect_options(settings: &Settings) -> PgConnectOptions {
    use secrecy::ExposeSecret as _;
    let options = PgConnectOptions::new_without_pgpass()
        .host(&settings.db_host)
        .port(settings.db_port)
        .username(&settings.db_user)
        .password(settings.db_pass.expose_secret())
        .database(&settings.db_name)
        .application_name("atoll-api-server");
    let mode = match settings.db_sslmode {
        SslMode::Disable => PgSslMode::Disable,
        SslMode::Prefer => PgSslMode::Prefer,
        SslMode::Require if settings.db_ca_file.is_some() => PgSslMode::VerifyCa,
        SslMode::Require => PgSslMode::Require,
        SslMode::VerifyCa => PgSslMode::VerifyCa,
        SslMode::VerifyFull => PgSslMode::VerifyFull,
    };
    let options = options.ssl_mode(mode);
    match &settings.db_ca_file {
        // Read again for each connection: a new authority needs no restart.
        Some(path) => options.ssl_root_cert(path),
        None => options,
    }
}

fn since(moved: &Mutex<Option<Instant>>) -> Option<Duration> {
    let moved = *moved.lock().unwrap_or_else(PoisonError::into_inner);
    moved.map(|moved| moved.elapsed())
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

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
