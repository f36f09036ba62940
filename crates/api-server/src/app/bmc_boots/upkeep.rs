//! Upkeep of boots by BMCs: the lock that proves a living server, stored progress, cancellations, abandoned boots.

use std::collections::HashSet;
use std::time::Duration;

use model::Error;
use sqlx::{Connection as _, PgConnection};
use tokio::time::timeout;
use uuid::Uuid;

use super::ApiServer;
use super::run::StopReason;
use crate::db::{bmc_boots, locks, tx};

/// Timeout of statements of the session that holds the lock.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(20);

/// Reason of boots whose request did not begin.
const INTERRUPTED: &str = "the request was interrupted: send it again";

/// Session of PostgreSQL whose lock proves that this process lives, and has the credentials.
#[derive(Debug)]
pub(super) struct HolderSession {
    id: Uuid,
    connection: PgConnection,
}

impl ApiServer {
    /// The id of the open session, or of a new one.
    pub(super) async fn hold(&self, holder: &mut Option<HolderSession>) -> Result<Uuid, Error> {
        if let Some(open) = holder {
            return Ok(open.id);
        }
        let to_domain =
            |error: sqlx::Error| crate::db::Error::from(error).into_domain("locking boots by BMCs");
        // Detached from the pool: the lock belongs to the session, which no request may share. A new id each time: the
        // boots of a lost session are taken for dead.
        let mut connection = self.pool()?.acquire().await.map_err(to_domain)?.detach();
        let id = Uuid::new_v4();
        let locking = locks::lock_bmc_boot_holder(&mut connection, id);
        let locked = timeout(STATEMENT_TIMEOUT, locking).await;
        let locked = locked.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
        locked.map_err(to_domain)?;
        *holder = Some(HolderSession { id, connection });
        Ok(id)
    }

    /// Stores progress, stops cancelled requests, and fails those whose server ended. Returns whether requests of this
    /// process are under way.
    ///
    /// Errors: those of the database.
    pub(crate) async fn look_after_bmc_boots(&self) -> Result<bool, Error> {
        let mut holder = self.bmc_boots.holder.lock().await;
        // Before the progress is stored: a request that ends meanwhile is not taken for an interrupted one.
        let known: HashSet<Uuid> = self.bmc_boots.runs().keys().copied().collect();
        let stored = self.store_bmc_progress().await;
        if let Some(open) = &mut *holder {
            let known = (&known, stored.is_ok());
            match self.compare_bmc_boots(open, known).await {
                Ok(true) => {}
                Ok(false) => {
                    if let Some(open) = holder.take() {
                        let _ = timeout(STATEMENT_TIMEOUT, open.connection.close()).await;
                    }
                }
                Err(error) => {
                    // The lock is lost with the session: others may take these boots for dead, and start them again.
                    *holder = None;
                    self.bmc_boots.stop_all(StopReason::SessionLost);
                    return Err(error);
                }
            }
        }
        let is_active = holder.is_some();
        drop(holder);
        stored?;
        self.fail_abandoned_bmc_boots().await?;
        Ok(is_active)
    }

    async fn store_bmc_progress(&self) -> Result<(), Error> {
        let changes = self.bmc_boots.progress.take();
        if changes.is_empty() {
            return Ok(());
        }
        let stored = tx("report boots by BMCs", async || {
            let mut connection = self.pool()?.acquire().await?;
            bmc_boots::report(&mut connection, &changes).await
        })
        .await;
        if stored.is_err() {
            self.bmc_boots.progress.put_back(changes);
        }
        stored
    }

    /// Compares the requests of this process with the stored ones, over the session that holds the lock. Returns whether
    /// any is under way.
    async fn compare_bmc_boots(
        &self,
        open: &mut HolderSession,
        (known, is_stored): (&HashSet<Uuid>, bool),
    ) -> Result<bool, Error> {
        let doing = "looking after boots by BMCs";
        let stored = bmc_boots::under_way(&mut open.connection, open.id);
        let stored = timeout(STATEMENT_TIMEOUT, stored).await;
        let stored = stored.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
        let stored = stored.map_err(|error| error.into_domain(doing))?;
        let wanted: HashSet<Uuid> = stored
            .iter()
            .filter(|(_, is_cancelled)| !is_cancelled)
            .map(|(request, _)| *request)
            .collect();
        for (request, run) in self.bmc_boots.runs().iter() {
            // Cancelled, or deleted with the infra-env. One that has ended is stopped for nothing.
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
            let failing = bmc_boots::fail(&mut open.connection, &interrupted, INTERRUPTED, now);
            let failed = timeout(STATEMENT_TIMEOUT, failing).await;
            let failed = failed.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
            failed.map_err(|error| error.into_domain(doing))?;
        }
        Ok(!stored.is_empty() || !self.bmc_boots.runs().is_empty())
    }

    async fn fail_abandoned_bmc_boots(&self) -> Result<(), Error> {
        let now = service::clock::now();
        let reasons = [false, true].map(|is_booted| StopReason::ServerEnded.text(is_booted));
        let failed = tx("fail abandoned boots by BMCs", async || {
            let mut tx = self.pool()?.begin().await?;
            let failed = bmc_boots::fail_abandoned(&mut tx, reasons, now).await?;
            tx.commit().await?;
            Ok(failed)
        })
        .await?;
        if failed > 0 {
            tracing::warn!(hosts = failed, "boots by BMCs failed: their server ended");
        }
        Ok(())
    }

    /// Stops the requests of this process, whose credentials end with it. Another server, or the next start, fails them.
    pub(crate) async fn abandon_bmc_boots(&self) {
        self.bmc_boots.stop_all(StopReason::ServerEnded);
        if let Some(open) = self.bmc_boots.holder.lock().await.take() {
            let _ = timeout(STATEMENT_TIMEOUT, open.connection.close()).await;
        }
    }
}
