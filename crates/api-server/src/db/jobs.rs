//! Statements about jobs.

use bytes::Bytes;
use model::ids::JobId;
use model::jobs::{
    ArchivePublication, ArchiveVerification, Job, JobCreateParams, JobKind, JobProgress, JobState,
    RehearsalResult,
};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;

/// Runners, each of which runs one job at a time: long ones do not hold up short ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobRunner {
    /// Archives: they share a medium and a registry.
    Archives = 0,
    /// Rehearsals.
    Rehearsals = 1,
}

impl JobRunner {
    /// The runner of a kind.
    pub(crate) const fn of(kind: JobKind) -> Self {
        match kind {
            JobKind::VerifyArchives | JobKind::PublishArchives => Self::Archives,
            JobKind::Rehearsal => Self::Rehearsals,
        }
    }

    /// Its kinds, as they are stored.
    pub(crate) fn kinds(self) -> Vec<String> {
        let kinds = JobKind::ALL
            .iter()
            .filter(|kind| Self::of(**kind) as i64 == self as i64);
        kinds.map(|kind| kind.as_str().to_owned()).collect()
    }
}

/// A job that is to be run.
#[derive(Debug, Clone)]
pub(crate) struct DueJob {
    pub(crate) id: JobId,
    pub(crate) params: JobCreateParams,
    /// Starts so far.
    pub(crate) attempts: i32,
}

/// The kind-specific members of a job's result.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct JobResult {
    pub(crate) verification: Option<ArchiveVerification>,
    pub(crate) publication: Option<ArchivePublication>,
    pub(crate) rehearsal: Option<RehearsalResult>,
}

/// The end of a job.
#[derive(Debug)]
pub(crate) struct JobEnd {
    pub(crate) state: JobState,
    /// Empty after a success.
    pub(crate) reason: String,
    pub(crate) result: JobResult,
    /// Files of the results, by name.
    pub(crate) files: Vec<(String, Bytes)>,
}

impl JobEnd {
    /// A success, unless there is a reason.
    pub(crate) fn new(reason: String, result: JobResult) -> Self {
        let state = if reason.is_empty() {
            JobState::Succeeded
        } else {
            JobState::Failed
        };
        Self {
            state,
            reason,
            result,
            files: Vec::new(),
        }
    }

    /// A failure without a result.
    pub(crate) fn failed(reason: String) -> Self {
        Self {
            state: JobState::Failed,
            ..Self::new(reason, JobResult::default())
        }
    }
}

struct JobRow {
    id: Uuid,
    kind: String,
    state: String,
    params: serde_json::Value,
    created_by: String,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    progress: Option<serde_json::Value>,
    reason: String,
    result: Option<serde_json::Value>,
}

impl JobRow {
    /// The record. Members that a newer server wrote in another form are left out.
    fn record(self) -> Job {
        let params = parsed::<JobCreateParams>(self.params);
        let result: JobResult = self.result.map(parsed).unwrap_or_default();
        let state: JobState = self.state.parse().unwrap_or_default();
        let progress = self.progress.map(parsed::<JobProgress>);
        Job {
            id: self.id.into(),
            kind: self.kind.parse::<JobKind>().unwrap_or_default(),
            state,
            archives: params.archives,
            created_by: self.created_by,
            created_at: self.created_at.into(),
            started_at: self.started_at.into(),
            ended_at: self.ended_at.into(),
            progress: progress.filter(|_| state == JobState::Running),
            reason: self.reason,
            verification: result.verification,
            publication: result.publication,
            rehearsal: result.rehearsal,
        }
    }
}

/// Pages read lists often, and a rehearsal of many hosts has thousands of findings.
fn without_findings(mut job: Job) -> Job {
    if let Some(rehearsal) = &mut job.rehearsal {
        rehearsal.findings.clear();
    }
    job
}

fn parsed<T: Default + serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}

fn json<T: Serialize>(value: &T) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Adds a queued job unless `limit` jobs wait; false if they do.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    id: JobId,
    params: &JobCreateParams,
    created_by: &str,
    now: Timestamp,
    limit: i64,
) -> Result<bool, Error> {
    let done = sqlx::query!(
        "insert into jobs (id, kind, state, params, created_by, created_at)
        select $1, $2, 'queued', $3, $4, $5
        where (select count(*) from jobs where state in ('queued', 'running')) < $6",
        id.0,
        params.kind.as_str(),
        json(params),
        created_by,
        now,
        limit
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The newest jobs of these kinds first, without the findings of rehearsals.
pub(crate) async fn list(
    connection: &mut PgConnection,
    kinds: &[JobKind],
    limit: i64,
) -> Result<Vec<Job>, Error> {
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
    let rows = sqlx::query_as!(
        JobRow,
        "select id, kind, state, params, created_by, created_at, started_at, ended_at, progress, reason, result
        from jobs
        where kind = any($1)
        order by created_at desc, id desc
        limit $2",
        &kinds,
        limit
    )
    .fetch_all(connection)
    .await?;
    let records = rows.into_iter().map(JobRow::record);
    Ok(records.map(without_findings).collect())
}

pub(crate) async fn find(connection: &mut PgConnection, id: JobId) -> Result<Option<Job>, Error> {
    let row = sqlx::query_as!(
        JobRow,
        "select id, kind, state, params, created_by, created_at, started_at, ended_at, progress, reason, result
        from jobs
        where id = $1",
        id.0
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(JobRow::record))
}

/// Whether a job of these kinds is to be run.
pub(crate) async fn is_any_due(
    connection: &mut PgConnection,
    kinds: &[String],
) -> Result<bool, Error> {
    let due = sqlx::query_scalar!(
        r#"select exists (
            select from jobs where state in ('queued', 'running') and kind = any($1)
        ) as "due!""#,
        kinds
    );
    Ok(due.fetch_one(connection).await?)
}

/// Starts the oldest job of these kinds that is to be run: one that was interrupted, or is queued.
pub(crate) async fn start_next(
    connection: &mut PgConnection,
    kinds: &[String],
    now: Timestamp,
) -> Result<Option<DueJob>, Error> {
    let row = sqlx::query!(
        "update jobs
        set state = 'running', started_at = coalesce(started_at, $1), attempts = attempts + 1, progress = null
        where id = (
            select id
            from jobs
            where state in ('queued', 'running') and kind = any($2)
            order by created_at, id
            limit 1
        )
        returning id, params, attempts",
        now,
        kinds
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| DueJob {
        id: row.id.into(),
        params: parsed(row.params),
        attempts: row.attempts,
    }))
}

/// Records the progress of a running job; returns whether it is to be cancelled.
pub(crate) async fn report(
    connection: &mut PgConnection,
    id: JobId,
    progress: Option<&JobProgress>,
) -> Result<bool, Error> {
    let is_cancelled = sqlx::query_scalar!(
        "update jobs set progress = $2 where id = $1 and state = 'running' returning cancel_requested",
        id.0,
        progress.map(json)
    )
    .fetch_optional(connection)
    .await?;
    // A job that was deleted by hand is not continued.
    Ok(is_cancelled.unwrap_or(true))
}

/// Records the end of a running job, and removes the oldest ended ones beyond `kept`. In one transaction.
pub(crate) async fn finish(
    connection: &mut PgConnection,
    id: JobId,
    end: &JobEnd,
    now: Timestamp,
    kept: i64,
) -> Result<(), Error> {
    let done = sqlx::query!(
        "update jobs
        set state = $2, reason = $3, result = $4, ended_at = $5, progress = null,
            -- Nothing needs the site of an ended rehearsal.
            params = params - 'rehearsal'
        where id = $1 and state = 'running'",
        id.0,
        end.state.as_str(),
        end.reason,
        json(&end.result),
        now
    )
    .execute(&mut *connection)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(());
    }
    for (name, content) in &end.files {
        sqlx::query!(
            "insert into job_files (job_id, name, content) values ($1, $2, $3)",
            id.0,
            name,
            &content[..]
        )
        .execute(&mut *connection)
        .await?;
    }
    sqlx::query!(
        "delete from jobs
        where state not in ('queued', 'running')
            and id not in (select id from jobs order by created_at desc, id desc limit $1)",
        kept
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Cancels a queued job at once, and requests it of a running one.
pub(crate) async fn cancel(
    connection: &mut PgConnection,
    id: JobId,
    now: Timestamp,
) -> Result<(), Error> {
    sqlx::query!(
        "update jobs
        set cancel_requested = true,
            state = case state when 'queued' then 'cancelled' else state end,
            ended_at = case state when 'queued' then $2 else ended_at end
        where id = $1 and state in ('queued', 'running')",
        id.0,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes an ended job; false if there is none.
pub(crate) async fn delete(connection: &mut PgConnection, id: JobId) -> Result<bool, Error> {
    let done = sqlx::query!(
        "delete from jobs where id = $1 and state not in ('queued', 'running')",
        id.0
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A file of a job's results.
pub(crate) async fn file(
    connection: &mut PgConnection,
    id: JobId,
    name: &str,
) -> Result<Option<Vec<u8>>, Error> {
    let content = sqlx::query_scalar!(
        "select content from job_files where job_id = $1 and name = $2",
        id.0,
        name
    );
    Ok(content.fetch_optional(connection).await?)
}
