//! Handlers of logs.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::multipart::Multipart;
use axum::http::StatusCode;
use futures_util::TryStreamExt as _;
use model::logs::{LogsProgressParams, LogsType};
use tokio::io::AsyncReadExt as _;
use tokio_util::io::StreamReader;

use super::archive::archive;
use super::download::FileResponse;
use super::error::ApiError;
use super::extract::{InCluster, JsonBody, OfHost};
use super::query::{Query, parse_one_of};
use crate::app::logs::{LogSource, Logs};

/// Multipart name of the archive.
const PART: &str = "upfile";

fn source(query: &Query) -> Result<Option<LogSource>, ApiError> {
    source_of(query, query.text("logs_type").unwrap_or_default())
}

/// The sender of the logs of type `kind`; none for all.
pub(super) fn source_of(query: &Query, kind: &str) -> Result<Option<LogSource>, ApiError> {
    let (kind, host) = (parse_one_of("logs_type", kind)?, query.id("host_id")?);
    // Agents name it, the host's id is enough.
    query.id("infra_env_id")?;
    match kind {
        LogsType::Controller => Ok(Some(LogSource::Controller)),
        LogsType::Host => match host {
            Some(id) => Ok(Some(LogSource::Host(id.into()))),
            None => Err(ApiError::parameter(
                "host_id",
                "query",
                "is required with logs_type host",
            )),
        },
        LogsType::All | LogsType::Unset => Ok(None),
    }
}

pub(crate) async fn upload(
    State(logs): State<Arc<Logs>>,
    InCluster(id): InCluster,
    query: Query,
    multipart: Result<Multipart, axum::extract::multipart::MultipartRejection>,
) -> Result<StatusCode, ApiError> {
    query.required("logs_type")?;
    let Some(source) = source(&query)? else {
        return Err(ApiError::parameter(
            "logs_type",
            "query",
            "should be one of [host controller]",
        ));
    };
    let mut multipart = multipart.map_err(|error| ApiError::Request(error.body_text()))?;
    let unreadable =
        |error: axum::extract::multipart::MultipartError| ApiError::Request(error.body_text());
    while let Some(part) = multipart.next_field().await.map_err(unreadable)? {
        if part.name() == Some(PART) {
            let mut bytes = StreamReader::new(part.map_err(std::io::Error::other));
            let stored = logs.store(id, source, &mut bytes).await;
            if stored.is_err() {
                // Drained up to the limit: a client that is still sending would see a reset instead of the response.
                let mut rest = bytes.take(logs.max_bytes);
                tokio::io::copy(&mut rest, &mut tokio::io::sink())
                    .await
                    .ok();
            }
            stored?;
            return Ok(StatusCode::NO_CONTENT);
        }
    }
    Err(ApiError::parameter(PART, "formData", "is required"))
}

pub(crate) async fn download(
    State(logs): State<Arc<Logs>>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<FileResponse, ApiError> {
    let Some(source) = source(&query)? else {
        let collected = logs.all(id).await?;
        let name = collected.name.clone();
        let (length, body) = archive(logs, collected)?;
        return Ok(FileResponse::streamed(name, length, body));
    };
    let (name, object) = logs.get(id, source).await?;
    Ok(FileResponse::object(name, object))
}

pub(crate) async fn cluster_progress(
    State(logs): State<Arc<Logs>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let params: LogsProgressParams = body.parse("logs-progress-params")?;
    logs.report_of_cluster(id, params.logs_state).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn host_progress(
    State(logs): State<Arc<Logs>>,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let params: LogsProgressParams = body.parse("logs-progress-params")?;
    logs.report_of_host(infra_env, id, params.logs_state)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
