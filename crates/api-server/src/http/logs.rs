//! Handlers about logs.

use axum::extract::State;
use axum::extract::multipart::Multipart;
use axum::http::StatusCode;
use futures_util::TryStreamExt as _;
use model::logs::{LogsProgressParams, LogsType};
use tokio::io::AsyncReadExt as _;
use tokio_util::io::StreamReader;

use super::archive::archive;
use super::download::Download;
use super::error::Refusal;
use super::extract::{Body, InCluster, OfHost};
use super::query::Query;
use crate::app::App;
use crate::app::logs::Source;

/// Name of the part that holds the archive.
const PART: &str = "upfile";

fn source(query: &Query) -> Result<Option<Source>, Refusal> {
    match query.one_of::<LogsType>("logs_type")? {
        Some(LogsType::Controller) => Ok(Some(Source::Controller)),
        Some(LogsType::Host) => match query.id("host_id")? {
            Some(id) => Ok(Some(Source::Host(id.into()))),
            None => Err(Refusal::parameter(
                "host_id",
                "query",
                "is required with logs_type host",
            )),
        },
        Some(LogsType::All | LogsType::Unset) | None => Ok(None),
    }
}

pub(crate) async fn upload(
    State(app): State<App>,
    InCluster(id): InCluster,
    query: Query,
    multipart: Result<Multipart, axum::extract::multipart::MultipartRejection>,
) -> Result<StatusCode, Refusal> {
    query.required("logs_type")?;
    let Some(source) = source(&query)? else {
        return Err(Refusal::parameter(
            "logs_type",
            "query",
            "should be one of [host controller]",
        ));
    };
    let mut multipart = multipart.map_err(|error| Refusal::Request(error.body_text()))?;
    let unreadable =
        |error: axum::extract::multipart::MultipartError| Refusal::Request(error.body_text());
    while let Some(part) = multipart.next_field().await.map_err(unreadable)? {
        if part.name() == Some(PART) {
            let mut bytes = StreamReader::new(part.map_err(std::io::Error::other));
            let stored = app.store_logs(id, source, &mut bytes).await;
            if stored.is_err() {
                // To a client that is still sending, an answer would be a cut connection. None sends more for ever.
                let mut rest = bytes.take(app.settings.max_log_bytes);
                tokio::io::copy(&mut rest, &mut tokio::io::sink())
                    .await
                    .ok();
            }
            stored?;
            return Ok(StatusCode::NO_CONTENT);
        }
    }
    Err(Refusal::parameter(PART, "formData", "is required"))
}

pub(crate) async fn download(
    State(app): State<App>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Download, Refusal> {
    let Some(source) = source(&query)? else {
        let collected = app.all_logs(id).await?;
        let name = collected.name.clone();
        let (length, body) = archive(app, collected)?;
        return Ok(Download::streamed(name, length, body));
    };
    let (name, object) = app.logs(id, source).await?;
    Ok(Download::object(name, object))
}

pub(crate) async fn cluster_progress(
    State(app): State<App>,
    InCluster(id): InCluster,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let params: LogsProgressParams = body.parse("logs-progress-params")?;
    app.cluster_logs_progress(id, params.logs_state).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn host_progress(
    State(app): State<App>,
    OfHost(infra_env, id): OfHost,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let params: LogsProgressParams = body.parse("logs-progress-params")?;
    app.host_logs_progress(infra_env, id, params.logs_state)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
