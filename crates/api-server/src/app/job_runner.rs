//! Runs of jobs: each runner has one at a time, in any replica; the others wait.
//!
//! Invariant: a job that was started ends in a state that says how, also after its server was killed: the next holder of the
//! runner's lock continues it.

use std::sync::Arc;
use std::time::Duration;

use model::Error;
use model::ids::JobId;
use model::jobs::JobState;
use service::CancellationToken;
use sqlx::{Connection as _, PgConnection};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::job_work::JobCounters;
use super::jobs::{Jobs, KEPT_JOBS};
use crate::db::jobs::{self, DueJob, JobEnd, JobRunner};
use crate::db::{locks, tx};

/// Starts of a job, after which it has failed.
const ATTEMPTS: i32 = 5;
/// Interval of progress reports, and of looking for a cancellation.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Retry interval of recording the end of a job.
const RETRY: Duration = Duration::from_secs(5);
/// Timeout of statements of the runner's connection.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(20);

impl Jobs {
    /// Runs the waiting jobs of a runner one after the other, unless another replica does.
    ///
    /// Errors: those of the database.
    pub(crate) async fn run_due(self: &Arc<Self>, runner: JobRunner) -> Result<(), Error> {
        let kinds = runner.kinds();
        let doing = "running jobs";
        let to_domain = |error: sqlx::Error| crate::db::Error::from(error).into_domain(doing);
        let is_due = tx("look for due jobs", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            jobs::is_any_due(&mut connection, &kinds).await
        });
        if !is_due.await? {
            return Ok(());
        }
        // Detached from the pool: the lock belongs to the session, which no request may share.
        let mut connection = self.db.pool()?.acquire().await.map_err(to_domain)?.detach();
        let locked = timeout(
            STATEMENT_TIMEOUT,
            locks::try_lock_jobs(&mut connection, runner),
        )
        .await;
        let locked = locked.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
        if locked.map_err(to_domain)? {
            while let Some(job) = start_next(&mut connection, &kinds).await? {
                self.run(job).await;
            }
        }
        let _ = timeout(STATEMENT_TIMEOUT, connection.close()).await;
        Ok(())
    }

    async fn run(self: &Arc<Self>, job: DueJob) {
        let (id, kind) = (job.id, job.params.kind.as_str());
        tracing::info!(job.id = %id, kind, archives = job.params.archives, "job started");
        let progress = JobCounters::default();
        let end = if job.attempts > ATTEMPTS {
            JobEnd::failed(format!(
                "its server ended {ATTEMPTS} times while the job was running: its log has the reason"
            ))
        } else {
            self.work_until_cancelled(&job, &progress).await
        };
        self.clean_up(job.params.kind).await;
        let (state, reason) = (end.state.as_str(), end.reason.as_str());
        tracing::info!(job.id = %id, kind, state, reason, "job ended");
        self.record_end(id, end).await;
    }

    /// Records the end of a job, also after an outage of the database.
    async fn record_end(&self, id: JobId, mut end: JobEnd) {
        while let Err(error) = self.finish(id, &end).await {
            let reason = error.chain();
            tracing::warn!(job.id = %id, error = reason, "end of job not recorded, retrying");
            if !matches!(error, Error::Unavailable { .. }) {
                // Its content, as a text of a damaged archive with the character NUL: the job must not be run again for it.
                end = JobEnd::failed(format!("its result cannot be stored: {reason}"));
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn work_until_cancelled(
        self: &Arc<Self>,
        job: &DueJob,
        progress: &JobCounters,
    ) -> JobEnd {
        let cancelled = CancellationToken::new();
        // Also when the server stops.
        let cancel = cancelled.clone().drop_guard();
        let (jobs, params, shared) = (Arc::clone(self), job.params.clone(), progress.clone());
        let runtime = Handle::current();
        // Futures of the mirroring tool are driven by one thread.
        let mut work = tokio::task::spawn_blocking(move || {
            runtime.block_on(cancelled.run_until_cancelled(jobs.work(&params, &shared)))
        });
        let ended = tokio::select! {
            ended = &mut work => ended,
            () = self.watch(job.id, progress) => {
                drop(cancel);
                work.await
            }
        };
        match ended {
            Ok(Some(end)) => end,
            Ok(None) => JobEnd {
                state: JobState::Cancelled,
                ..JobEnd::failed(String::new())
            },
            Err(error) => JobEnd::failed(format!("it broke off: {error}")),
        }
    }

    /// Reports progress until the job is to be cancelled.
    async fn watch(&self, id: JobId, progress: &JobCounters) {
        loop {
            tokio::time::sleep(REPORT_INTERVAL).await;
            let now = progress.now();
            let reported = tx("report progress of a job", async || {
                let mut connection = self.db.pool()?.acquire().await?;
                jobs::report(&mut connection, id, now.as_ref()).await
            });
            match reported.await {
                Ok(true) => return,
                Ok(false) => {}
                // The work continues meanwhile.
                Err(error) => {
                    tracing::warn!(job.id = %id, error = error.chain(), "progress of job not recorded");
                }
            }
        }
    }

    async fn finish(&self, id: JobId, end: &JobEnd) -> Result<(), Error> {
        let now = service::clock::now();
        tx("finish job", async || {
            let mut transaction = self.db.pool()?.begin().await?;
            jobs::finish(&mut transaction, id, end, now, KEPT_JOBS).await?;
            transaction.commit().await?;
            Ok(())
        })
        .await
    }
}

/// By the connection that holds the lock: without the lock, nothing is started.
async fn start_next(
    connection: &mut PgConnection,
    kinds: &[String],
) -> Result<Option<DueJob>, Error> {
    let started = jobs::start_next(connection, kinds, service::clock::now());
    let started = timeout(STATEMENT_TIMEOUT, started).await;
    let started = started.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
    started.map_err(|error| error.into_domain("start job"))
}
