//! Use cases of jobs. Each runner has one at a time, in any replica; the others wait.
//!
//! Invariant: a job that was started ends in a state that says how, also after its server was killed: the next holder of the
//! runner's lock continues it.

use std::sync::Arc;
use std::time::Duration;

use model::Error;
use model::ids::JobId;
use model::jobs::{ArchiveList, Job, JobCreateParams, JobKind, JobState};
use service::CancellationToken;
use sqlx::{Connection as _, PgConnection};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;
use uuid::Uuid;

use super::job_work::{self, JobCounters};
use crate::carry_in::CarryIn;
use crate::db::jobs::{self, DueJob, JobEnd, JobRunner};
use crate::db::{Database, locks, tx};
use crate::settings::Settings;

/// Jobs that may wait.
pub(crate) const WAITING_JOBS: i64 = 20;
/// Jobs that are kept.
pub(crate) const KEPT_JOBS: i64 = 200;
/// Most jobs in a list.
pub(crate) const LISTED_JOBS: i64 = 200;
/// Starts of a job, after which it has failed.
const ATTEMPTS: i32 = 5;
/// Interval of progress reports, and of looking for a cancellation.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Retry interval of recording the end of a job.
const RETRY: Duration = Duration::from_secs(5);
/// Timeout of statements of the runner's connection.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(20);

/// Jobs, and their runners in this process.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(super) db: Database,
    /// Rehearsals derive theirs.
    pub(super) settings: Arc<Settings>,
    pub(super) carry_in: CarryIn,
    archives_due: Notify,
    rehearsals_due: Notify,
}

impl Jobs {
    /// Jobs of `carry_in`, and rehearsals of this server.
    pub(super) fn new(db: Database, settings: Arc<Settings>, carry_in: CarryIn) -> Self {
        Self {
            db,
            settings,
            carry_in,
            archives_due: Notify::new(),
            rehearsals_due: Notify::new(),
        }
    }

    /// The archives that can be carried in.
    ///
    /// Errors: Internal – the folder cannot be read.
    pub(crate) async fn archives(&self) -> Result<ArchiveList, Error> {
        self.carry_in.list().await
    }

    /// Adds a job for the user of that name.
    ///
    /// Errors: NotFound – the archive set; Conflict – a missing setting, or too many jobs wait; Invalid – the site.
    pub(crate) async fn create(&self, user: &str, params: JobCreateParams) -> Result<Job, Error> {
        let params = match params.kind {
            JobKind::VerifyArchives | JobKind::PublishArchives => {
                let is_publication = params.kind == JobKind::PublishArchives;
                let carry_in = &self.carry_in;
                carry_in.check(&params.archives, is_publication).await?;
                params
            }
            JobKind::Rehearsal => job_work::checked_rehearsal(params).await?,
        };
        let (id, now) = (JobId(Uuid::new_v4()), service::clock::now());
        let is_added = tx("create job", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            jobs::insert(&mut connection, id, &params, user, now, WAITING_JOBS).await
        })
        .await?;
        if !is_added {
            let reason =
                format!("{WAITING_JOBS} jobs wait already: cancel one, or wait for its end");
            return Err(Error::conflict(reason));
        }
        self.due(JobRunner::of(params.kind)).notify_one();
        self.get(id).await
    }

    /// Wakes a runner.
    pub(crate) fn due(&self, runner: JobRunner) -> &Notify {
        match runner {
            JobRunner::Archives => &self.archives_due,
            JobRunner::Rehearsals => &self.rehearsals_due,
        }
    }

    /// The newest jobs of these kinds first, at most `limit`.
    pub(crate) async fn list(&self, kinds: &[JobKind], limit: i64) -> Result<Vec<Job>, Error> {
        tx("list jobs", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            jobs::list(&mut connection, kinds, limit).await
        })
        .await
    }

    /// A job.
    ///
    /// Errors: NotFound.
    pub(crate) async fn get(&self, id: JobId) -> Result<Job, Error> {
        let found = tx("find job", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            jobs::find(&mut connection, id).await
        })
        .await?;
        found.ok_or_else(|| Error::not_found("job", id))
    }

    /// Cancels a job: a running one ends within seconds. Others stay as they are.
    ///
    /// Errors: NotFound.
    pub(crate) async fn cancel(&self, id: JobId) -> Result<Job, Error> {
        let now = service::clock::now();
        tx("cancel job", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            jobs::cancel(&mut connection, id, now).await
        })
        .await?;
        self.get(id).await
    }

    /// Removes an ended job with its files.
    ///
    /// Errors: NotFound; Conflict – it has not ended.
    pub(crate) async fn delete(&self, id: JobId) -> Result<(), Error> {
        self.get(id).await?;
        let is_deleted = tx("delete job", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            jobs::delete(&mut connection, id).await
        })
        .await?;
        if is_deleted {
            return Ok(());
        }
        Err(Error::conflict("the job has not ended: cancel it first"))
    }

    /// A file of a job's results.
    ///
    /// Errors: NotFound.
    pub(crate) async fn file(&self, id: JobId, name: &str) -> Result<Vec<u8>, Error> {
        let content = tx("read file of a job", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            jobs::file(&mut connection, id, name).await
        })
        .await?;
        content.ok_or_else(|| Error::not_found("file of a job", name))
    }

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
