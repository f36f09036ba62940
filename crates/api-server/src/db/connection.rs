//! Connection pool, failover, migrations, and named transactions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::Error as Domain;
use net::resolve::Resolver;
use sealing::{KeySet, Keyring};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions, PgSslMode};
use sqlx::{Connection as _, PgConnection, PgPool};

use super::location::Location;
use super::{DatabaseUnavailable, Error, schema, secret_keys};
use crate::settings::{Settings, SslMode};

/// Longest wait of a request for a connection; then 503.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of connecting and authenticating, for each address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// DNS timeout: name servers of container networks answer in milliseconds.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);
/// Idle time up to which a connection is reused without a ping.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// A frozen database sends no errors: requests fail with 503 after this time, and agents retry.
const TX_TIMEOUT: Duration = Duration::from_secs(20);
/// Attempts of a transaction after serialization failures and deadlocks.
const ATTEMPTS: u32 = 5;
/// Channel (LISTEN/NOTIFY) of due preparations.
pub(crate) const PREPARATION_CHANNEL: &str = "atoll_preparation";
/// Channel (LISTEN/NOTIFY) of new events.
pub(crate) const EVENT_CHANNEL: &str = "atoll_events";
/// Histogram: duration of transactions, by name.
const TX_DURATION: &str = "atoll_api_transaction_duration_seconds";

/// The pool, and whether its schema is migrated.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pool: PgPool,
    location: Arc<Location>,
    keyring: Keyring,
    usable: Arc<AtomicBool>,
    /// Time of the last failover: older connections lead to the previous database.
    moved: Arc<Mutex<Option<Instant>>>,
}

impl Database {
    /// A pool that connects lazily.
    pub(crate) fn new(settings: &Settings, resolver: Resolver, keyring: Keyring) -> Self {
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
                    let is_stale = since(&moved).is_some_and(|since| used.age > since);
                    Box::pin(async move {
                        let is_fresh = used.idle_for < TRUSTED_FOR;
                        Ok(!is_stale && (is_fresh || connection.ping().await.is_ok()))
                    })
                }
            })
            .connect_lazy_with(options.clone());
        Self {
            pool,
            location: Arc::new(Location::new(options, resolver)),
            keyring,
            usable: Arc::new(AtomicBool::new(false)),
            moved,
        }
    }

    /// The pool.
    ///
    /// Errors: Unavailable – the schema is not migrated, or the database refuses this program.
    pub(crate) fn pool(&self) -> Result<&PgPool, Domain> {
        if self.usable.load(Ordering::Acquire) {
            return Ok(&self.pool);
        }
        Err(Domain::Unavailable {
            what: "the database",
            source: None,
        })
    }

    /// Keys of stored secrets; none without a key file.
    pub(crate) async fn keys(&self) -> KeySet {
        self.keyring.keys().await
    }

    /// A connection beside the pool for health checks: a busy pool does not mean a failed database. Each address is
    /// tried in order; the pool fails over to the first that accepts.
    pub(crate) async fn connect(&self) -> Result<PgConnection, DatabaseUnavailable> {
        let current = self.pool.connect_options().get_host().to_owned();
        let mut failure = None;
        for candidate in self.location.candidates(&current).await? {
            let connecting = PgConnection::connect_with(&candidate);
            let unavailable = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
                Ok(Ok(connection)) => {
                    self.fail_over(&current, candidate);
                    return Ok(connection);
                }
                Ok(Err(error)) => DatabaseUnavailable::from(error),
                Err(_) => DatabaseUnavailable::Silent(CONNECT_TIMEOUT.as_secs()),
            };
            // A refusal by one address explains more than silence of the others.
            if !failure
                .as_ref()
                .is_some_and(DatabaseUnavailable::is_refusal)
            {
                failure = Some(unavailable);
            }
        }
        Err(failure.unwrap_or(DatabaseUnavailable::Silent(0)))
    }

    fn fail_over(&self, current: &str, target: PgConnectOptions) {
        let found = target.get_host();
        if found == current {
            return;
        }
        tracing::info!(address = found, "database address changed");
        self.pool.set_connect_options(target);
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        *moved = Some(Instant::now());
    }

    /// Whether the database's name resolves to another address. False if DNS is slow or fails.
    pub(crate) async fn has_moved(&self) -> bool {
        let options = self.pool.connect_options();
        let left = self.location.has_moved_from(options.get_host());
        tokio::time::timeout(LOOKUP_TIMEOUT, left)
            .await
            .unwrap_or(false)
    }

    /// Migrates the schema; replicas that start together wait for each other. After an error, drop the connection: it
    /// may hold the lock that the others wait for.
    pub(crate) async fn migrate(
        &self,
        connection: &mut PgConnection,
    ) -> Result<(), DatabaseUnavailable> {
        let (missing, _) = schema::missing(connection).await?;
        if missing > 0 {
            // Requests would meet tables without their newest columns.
            self.suspend();
        }
        schema::migrate(connection).await?;
        secret_keys::check(connection, &self.keys().await).await?;
        self.usable.store(true, Ordering::Release);
        Ok(())
    }

    /// Migrates after an outage: the database may be empty, or newer than this program, which still serves then.
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
            Err(unavailable) => Err(unavailable),
        }
    }

    /// Refuses requests (503) until the next migration.
    pub(crate) fn suspend(&self) {
        self.usable.store(false, Ordering::Release);
    }

    /// Listens for notifications of all replicas.
    pub(crate) async fn listen(&self, channels: &[&str]) -> Result<PgListener, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen_all(channels.iter().copied()).await?;
        Ok(listener)
    }

    /// Closes every connection.
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
    let options = match settings.db_schema.as_str() {
        "" => options,
        schema => options.options([("search_path", schema)]),
    };
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
        // Read for each connection: a new certificate authority needs no restart.
        Some(path) => options.ssl_root_cert(path),
        None => options,
    }
}

fn since(moved: &Mutex<Option<Instant>>) -> Option<Duration> {
    let moved = *moved.lock().unwrap_or_else(PoisonError::into_inner);
    moved.map(|moved| moved.elapsed())
}

/// Runs a transaction: retried after serialization failures, its duration recorded under `name`.
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
                    tracing::debug!(name, tries, %error, "transaction retried");
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
