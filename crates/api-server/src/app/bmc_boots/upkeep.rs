//! Upkeep of boots by BMCs: the lock that proves a living server, stored progress, cancellations, abandoned boots.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use model::Error;
use sqlx::{Connection as _, PgConnection};
use tokio::time::timeout;
use uuid::Uuid;

use super::BmcBoots;
use super::reporter::StopReason;
use crate::db::{bmc_boots, locks, tx};

/// Timeout of statements of the session that holds the lock.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after the last sign of the lock in which the boots continue: PostgreSQL may restart. Shorter than
/// `ABANDONED_AFTER`, when others may start the same boots again.
const WITHOUT_SESSION: Duration = Duration::from_secs(20);
/// Time without a lock after which boots are abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(40);

/// Reason of boots whose request did not begin.
const INTERRUPTED: &str = "the request was interrupted: send it again";

/// Proof that this process lives, and has the credentials: the lock of this id.
#[derive(Debug)]
pub(super) struct LockHolder {
    id: Uuid,
    /// The session of PostgreSQL that holds the lock; none while it is lost.
    session: Option<PgConnection>,
    /// Time at which the lock was held for certain.
    confirmed: Instant,
}

/// Holders without their lock, and since when. One that lost its session takes it again within seconds.
#[derive(Debug, Default)]
pub(super) struct MissingHolders(HashMap<Uuid, Instant>);

impl MissingHolders {
    /// The holders that have been without their lock for so long that their boots are abandoned.
    fn abandoned(&mut self, missing: &[Uuid], now: Instant) -> Vec<Uuid> {
        self.0.retain(|holder, _| missing.contains(holder));
        for holder in missing {
            self.0.entry(*holder).or_insert(now);
        }
        let is_abandoned = |since: &Instant| now.duration_since(*since) >= ABANDONED_AFTER;
        let abandoned = self.0.iter().filter(|(_, since)| is_abandoned(since));
        abandoned.map(|(holder, _)| *holder).collect()
    }
}

impl BmcBoots {
    /// The id of the holder, whose lock is held; of a new one, or of one that lost it.
    ///
    /// Errors: those of the database.
    pub(super) async fn hold(&self, holder: &mut Option<LockHolder>) -> Result<Uuid, Error> {
        let id = match holder {
            Some(open) if open.session.is_some() => return Ok(open.id),
            Some(lost) => lost.id,
            None => Uuid::new_v4(),
        };
        let confirmed = Instant::now();
        *holder = Some(LockHolder {
            id,
            session: Some(self.lock_session(id).await?),
            confirmed,
        });
        Ok(id)
    }

    /// A session that holds the lock of `holder`.
    async fn lock_session(&self, holder: Uuid) -> Result<PgConnection, Error> {
        let to_domain =
            |error: sqlx::Error| crate::db::Error::from(error).into_domain("locking boots by BMCs");
        // Detached from the pool: the lock belongs to the session, which no request may share.
        let mut connection = self.db.pool()?.acquire().await.map_err(to_domain)?.detach();
        let locking = locks::try_lock_bmc_boot_holder(&mut connection, holder);
        let locked = timeout(STATEMENT_TIMEOUT, locking).await;
        let locked = locked.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
        // Another server looks whether it is free, or the old session has not ended yet.
        if !locked.map_err(to_domain)? {
            return Err(Error::Unavailable {
                what: "the lock of boots by BMCs",
                source: None,
            });
        }
        Ok(connection)
    }

    /// Stores progress, stops cancelled requests, and fails those whose server ended. Returns whether requests of this
    /// process are under way.
    ///
    /// Errors: those of the database.
    pub(crate) async fn look_after(&self) -> Result<bool, Error> {
        let mut holder = self.holder.lock().await;
        let due = holder.as_ref().map(|it| it.confirmed + WITHOUT_SESSION);
        let (stored, compared) = {
            let mut looking = Box::pin(self.store_and_compare(&mut holder));
            tokio::select! {
                looked = &mut looking => looked,
                // A database without an answer must not hold up the end of the boots.
                () = at(due) => {
                    self.stop_all(StopReason::SessionLost);
                    looking.await
                }
            }
        };
        match compared {
            Ok(true) => {}
            Ok(false) => close(holder.take()).await,
            Err(error) => {
                self.continue_without_session(&mut holder);
                return Err(error);
            }
        }
        let is_active = holder.is_some();
        drop(holder);
        stored?;
        self.fail_abandoned().await?;
        Ok(is_active)
    }

    async fn store_and_compare(
        &self,
        holder: &mut Option<LockHolder>,
    ) -> (Result<(), Error>, Result<bool, Error>) {
        // Before the progress is stored: a request that ends meanwhile is not taken for an interrupted one.
        let known: HashSet<Uuid> = self.runs().keys().copied().collect();
        let stored = self.store_progress().await;
        let compared = self.compare(holder, (&known, stored.is_ok()));
        let compared = compared.await;
        (stored, compared)
    }

    /// The boots continue for a while, until there is a session again.
    fn continue_without_session(&self, holder: &mut Option<LockHolder>) {
        if let Some(lost) = holder {
            lost.session = None;
            if lost.confirmed.elapsed() >= WITHOUT_SESSION {
                self.stop_all(StopReason::SessionLost);
                *holder = None;
            }
        }
    }

    async fn store_progress(&self) -> Result<(), Error> {
        let changes = self.progress.take();
        if changes.is_empty() {
            return Ok(());
        }
        let stored = tx("report boots by BMCs", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            bmc_boots::report(&mut connection, &changes).await
        })
        .await;
        if stored.is_err() {
            self.progress.put_back(changes);
        }
        stored
    }

    /// Compares the requests of this process with the stored ones, over the session that holds the lock. Returns whether
    /// any is under way.
    async fn compare(
        &self,
        holder: &mut Option<LockHolder>,
        (known, is_stored): (&HashSet<Uuid>, bool),
    ) -> Result<bool, Error> {
        let doing = "looking after boots by BMCs";
        if holder.is_none() {
            return Ok(false);
        }
        self.hold(holder).await?;
        let began = Instant::now();
        let Some(LockHolder {
            id,
            session: Some(connection),
            confirmed,
        }) = holder
        else {
            return Ok(false);
        };
        let stored = bmc_boots::under_way(connection, *id);
        let stored = timeout(STATEMENT_TIMEOUT, stored).await;
        let stored = stored.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
        let stored = stored.map_err(|error| error.into_domain(doing))?;
        *confirmed = began;
        let wanted: HashSet<Uuid> = stored
            .iter()
            .filter(|(_, is_cancelled)| !is_cancelled)
            .map(|(request, _)| *request)
            .collect();
        for (request, run) in self.runs().iter() {
            // Cancelled, deleted with the infra-env, or abandoned. One that has ended is stopped for nothing.
            if known.contains(request) && !wanted.contains(request) {
                run.stop(StopReason::Cancelled);
            }
        }
        // A client that hung up, or a lost reply of the database, between the rows and their start.
        let interrupted = stored.iter().map(|(request, _)| *request);
        let interrupted: Vec<Uuid> = interrupted.filter(|it| !known.contains(it)).collect();
        // Without the latest progress, requests that have ended look like interrupted ones.
        if is_stored && !interrupted.is_empty() {
            let now = service::clock::now();
            let failing = bmc_boots::fail(connection, &interrupted, INTERRUPTED, now);
            let failed = timeout(STATEMENT_TIMEOUT, failing).await;
            let failed = failed.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
            failed.map_err(|error| error.into_domain(doing))?;
        }
        Ok(!stored.is_empty() || !self.runs().is_empty())
    }

    async fn fail_abandoned(&self) -> Result<(), Error> {
        let failed = tx("fail abandoned boots by BMCs", async || {
            let mut tx = self.db.pool()?.begin().await?;
            let missing = bmc_boots::missing_holders(&mut tx).await?;
            let abandoned = self.missing().abandoned(&missing, Instant::now());
            if abandoned.is_empty() {
                return Ok(0);
            }
            let now = service::clock::now();
            let failed =
                bmc_boots::fail_of_holders(&mut tx, &abandoned, server_ended(), now).await?;
            tx.commit().await?;
            Ok(failed)
        })
        .await?;
        if failed > 0 {
            tracing::warn!(hosts = failed, "boots by BMCs failed: their server ended");
        }
        Ok(())
    }

    /// Stops the requests of this process, whose credentials end with it, and fails their boots. Without the database,
    /// another server or the next start fails them.
    pub(crate) async fn abandon(&self) {
        // First: once they are recorded as failures, another server may start them again.
        self.stop_all(StopReason::ServerEnded);
        let mut holder = self.holder.lock().await.take();
        if let Some(LockHolder {
            id,
            session: Some(connection),
            ..
        }) = &mut holder
        {
            let failing = async {
                // Reasons depend on the latest state.
                self.store_progress().await?;
                let now = service::clock::now();
                bmc_boots::fail_of_holders(connection, &[*id], server_ended(), now)
                    .await
                    .map_err(|error| error.into_domain("failing boots by BMCs"))
            };
            if let Ok(Err(error)) = timeout(STATEMENT_TIMEOUT, failing).await {
                tracing::warn!(
                    error = error.chain(),
                    "boots by BMCs that end with the server are not recorded yet"
                );
            }
        }
        close(holder).await;
    }
}

fn server_ended() -> [&'static str; 2] {
    [false, true].map(|is_booted| StopReason::ServerEnded.text(is_booted))
}

/// Ends the session, which releases the lock.
async fn close(holder: Option<LockHolder>) {
    if let Some(session) = holder.and_then(|holder| holder.session) {
        let _ = timeout(STATEMENT_TIMEOUT, session.close()).await;
    }
}

/// Waits for a point of time; without one, for ever.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_are_abandoned_after_a_while_without_their_lock() {
        let [one, other] = [1, 2].map(Uuid::from_u128);
        let mut holders = MissingHolders::default();
        let start = Instant::now();
        assert!(holders.abandoned(&[one], start).is_empty());
        let end = start + ABANDONED_AFTER;
        let just_before = end.checked_sub(Duration::from_millis(1)).unwrap();
        assert!(holders.abandoned(&[one, other], just_before).is_empty());
        assert_eq!(holders.abandoned(&[one, other], end), [one]);
        assert!(holders.abandoned(&[other], end).is_empty());
        assert!(holders.abandoned(&[one], end).is_empty(), "it had its lock");
    }

    #[test]
    fn boots_stop_before_others_take_them_for_abandoned() {
        // Half of it at most: the looks of both have intervals of some seconds.
        assert!(2 * WITHOUT_SESSION <= ABANDONED_AFTER);
    }
}
