//! Handlers about an installation.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::cluster::{Cluster, Credentials};

use super::error::Refusal;
use super::extract::{Body, InCluster};
use crate::app::App;

type Accepted = (StatusCode, Json<Cluster>);

pub(crate) async fn install(
    State(app): State<App>,
    InCluster(id): InCluster,
) -> Result<Accepted, Refusal> {
    Ok((StatusCode::ACCEPTED, Json(app.install_cluster(id).await?)))
}

pub(crate) async fn cancel(
    State(app): State<App>,
    InCluster(id): InCluster,
) -> Result<Accepted, Refusal> {
    Ok((
        StatusCode::ACCEPTED,
        Json(app.cancel_installation(id).await?),
    ))
}

pub(crate) async fn reset(
    State(app): State<App>,
    InCluster(id): InCluster,
) -> Result<Accepted, Refusal> {
    Ok((StatusCode::ACCEPTED, Json(app.reset_cluster(id).await?)))
}

pub(crate) async fn complete(
    State(app): State<App>,
    InCluster(id): InCluster,
    body: Body,
) -> Result<Accepted, Refusal> {
    let params = body.parse("completion-params")?;
    Ok((
        StatusCode::ACCEPTED,
        Json(app.complete_installation(id, &params).await?),
    ))
}

pub(crate) async fn finalizing_progress(
    State(app): State<App>,
    InCluster(id): InCluster,
    body: Body,
) -> Result<StatusCode, Refusal> {
    app.report_finalizing(id, &body.parse("finalizing-progress")?)
        .await?;
    Ok(StatusCode::OK)
}

pub(crate) async fn ingress_cert(
    State(app): State<App>,
    InCluster(id): InCluster,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let pem: String = body.parse("ingress-cert-params")?;
    app.upload_ingress_cert(id, &pem).await?;
    Ok(StatusCode::CREATED)
}

pub(crate) async fn credentials(
    State(app): State<App>,
    InCluster(id): InCluster,
) -> Result<Json<Credentials>, Refusal> {
    Ok(Json(app.credentials(id).await?))
}
