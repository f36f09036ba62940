//! Use cases of jobs; `job_runner` runs them.

use std::sync::Arc;

use model::Error;
use model::ids::JobId;
use model::jobs::{ArchiveList, Job, JobCreateParams, JobKind};
use tokio::sync::Notify;
use uuid::Uuid;

use super::offer::CurrentOffer;
use super::registry_content::SiteContent;
use crate::carry_in::CarryIn;
use crate::db::jobs::{self, JobRunner};
use crate::db::{Database, tx};
use crate::rehearse;
use crate::settings::Settings;

/// Jobs that may wait.
pub(crate) const WAITING_JOBS: i64 = 20;
/// Jobs that are kept.
pub(crate) const KEPT_JOBS: i64 = 200;
/// Most jobs in a list.
pub(crate) const LISTED_JOBS: i64 = 200;

/// Jobs, and their runners in this process.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(super) db: Database,
    /// Rehearsals derive theirs.
    pub(super) settings: Arc<Settings>,
    pub(super) offer: Arc<CurrentOffer>,
    pub(super) carry_in: CarryIn,
    pub(super) site_content: Arc<SiteContent>,
    archives_due: Notify,
    rehearsals_due: Notify,
}

impl Jobs {
    /// Jobs of `carry_in`, and rehearsals of this server.
    pub(super) fn new(
        db: Database,
        settings: Arc<Settings>,
        offer: Arc<CurrentOffer>,
        carry_in: CarryIn,
        site_content: Arc<SiteContent>,
    ) -> Self {
        Self {
            db,
            settings,
            offer,
            carry_in,
            site_content,
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
            JobKind::Rehearsal => rehearse::checked(params).await?,
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
}
