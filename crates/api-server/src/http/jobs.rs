//! Handlers of jobs and archives.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::jobs::{ArchiveList, Job, JobCreateParams, JobKind, RehearsalOptions};

use super::download::FileResponse;
use super::error::ApiError;
use super::extract::{JsonBody, OfJob};
use super::query::Query;
use crate::app::ApiServer;
use crate::app::jobs::LISTED_JOBS;
use crate::auth::Caller;
use crate::rehearse;

pub(crate) async fn archives(State(app): State<ApiServer>) -> Result<Json<ArchiveList>, ApiError> {
    Ok(Json(app.archives().await?))
}

pub(crate) async fn rehearsal_options() -> Json<RehearsalOptions> {
    Json(rehearse::options())
}

pub(crate) async fn create(
    State(app): State<ApiServer>,
    caller: Caller,
    body: JsonBody,
) -> Result<(StatusCode, Json<Job>), ApiError> {
    let params: JobCreateParams = body.parse("job-create-params")?;
    let job = app.create_job(caller.user_name(), params).await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

pub(crate) async fn list(
    State(app): State<ApiServer>,
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
    Ok(Json(app.list_jobs(&kinds, limit).await?))
}

pub(crate) async fn get(
    State(app): State<ApiServer>,
    OfJob(id): OfJob,
) -> Result<Json<Job>, ApiError> {
    Ok(Json(app.job(id).await?))
}

pub(crate) async fn cancel(
    State(app): State<ApiServer>,
    OfJob(id): OfJob,
) -> Result<(StatusCode, Json<Job>), ApiError> {
    Ok((StatusCode::ACCEPTED, Json(app.cancel_job(id).await?)))
}

pub(crate) async fn delete(
    State(app): State<ApiServer>,
    OfJob(id): OfJob,
) -> Result<StatusCode, ApiError> {
    app.delete_job(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn file(
    State(app): State<ApiServer>,
    OfJob(id): OfJob,
    query: Query,
) -> Result<FileResponse, ApiError> {
    let Some(name) = query.text("file_name") else {
        return Err(ApiError::parameter("file_name", "query", "is required"));
    };
    let content = app.job_file(id, name).await?;
    Ok(FileResponse::bytes(name, content))
}
