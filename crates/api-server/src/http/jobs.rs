//! Handlers of jobs and archives.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::jobs::{ArchiveList, Job, JobCreateParams, JobKind, RehearsalOptions};

use super::download::FileResponse;
use super::error::ApiError;
use super::extract::{JsonBody, OfJob};
use super::query::Query;
use crate::app::jobs::{Jobs, LISTED_JOBS};
use crate::auth::Caller;
use crate::rehearse;

pub(crate) async fn archives(State(jobs): State<Arc<Jobs>>) -> Result<Json<ArchiveList>, ApiError> {
    Ok(Json(jobs.archives().await?))
}

pub(crate) async fn rehearsal_options() -> Json<RehearsalOptions> {
    Json(rehearse::options())
}

pub(crate) async fn create(
    State(jobs): State<Arc<Jobs>>,
    caller: Caller,
    body: JsonBody,
) -> Result<(StatusCode, Json<Job>), ApiError> {
    let params: JobCreateParams = body.parse("job-create-params")?;
    let job = jobs.create(caller.user_name(), params).await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

pub(crate) async fn list(
    State(jobs): State<Arc<Jobs>>,
    query: Query,
) -> Result<Json<Vec<Job>>, ApiError> {
    let limit = query.integer("limit")?.unwrap_or(LISTED_JOBS);
    if !(1..=LISTED_JOBS).contains(&limit) {
        return Err(ApiError::parameter(
            "limit",
            "query",
            format_args!("should be from 1 to {LISTED_JOBS}"),
        ));
    }
    let mut kinds = query.some_of::<JobKind>("kinds")?;
    if kinds.is_empty() {
        kinds = JobKind::ALL.to_vec();
    }
    Ok(Json(jobs.list(&kinds, limit).await?))
}

pub(crate) async fn get(
    State(jobs): State<Arc<Jobs>>,
    OfJob(id): OfJob,
) -> Result<Json<Job>, ApiError> {
    Ok(Json(jobs.get(id).await?))
}

pub(crate) async fn cancel(
    State(jobs): State<Arc<Jobs>>,
    OfJob(id): OfJob,
) -> Result<(StatusCode, Json<Job>), ApiError> {
    Ok((StatusCode::ACCEPTED, Json(jobs.cancel(id).await?)))
}

pub(crate) async fn delete(
    State(jobs): State<Arc<Jobs>>,
    OfJob(id): OfJob,
) -> Result<StatusCode, ApiError> {
    jobs.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn file(
    State(jobs): State<Arc<Jobs>>,
    OfJob(id): OfJob,
    query: Query,
) -> Result<FileResponse, ApiError> {
    let Some(name) = query.text("file_name") else {
        return Err(ApiError::parameter("file_name", "query", "is required"));
    };
    let content = jobs.file(id, name).await?;
    Ok(FileResponse::bytes(name, content))
}
