//! Handlers of an installation.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::cluster::{Cluster, ClusterCredentials};

use super::error::ApiError;
use super::extract::{InCluster, JsonBody};
use crate::app::ApiServer;
use crate::auth::Caller;

type AcceptedCluster = (StatusCode, Json<Cluster>);

pub(crate) async fn install(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<AcceptedCluster, ApiError> {
    Ok((StatusCode::ACCEPTED, Json(app.install_cluster(id).await?)))
}

pub(crate) async fn cancel(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<AcceptedCluster, ApiError> {
    Ok((
        StatusCode::ACCEPTED,
        Json(app.cancel_installation(id).await?),
    ))
}

pub(crate) async fn reset(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<AcceptedCluster, ApiError> {
    Ok((StatusCode::ACCEPTED, Json(app.reset_cluster(id).await?)))
}

pub(crate) async fn complete(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<AcceptedCluster, ApiError> {
    let params = body.parse("completion-params")?;
    Ok((
        StatusCode::ACCEPTED,
        Json(app.complete_installation(id, &params).await?),
    ))
}

pub(crate) async fn finalizing_progress(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    app.report_finalizing(id, &body.parse("finalizing-progress")?)
        .await?;
    Ok(StatusCode::OK)
}

pub(crate) async fn ingress_cert(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let pem: String = body.parse("ingress-cert-params")?;
    app.upload_ingress_cert(id, &pem).await?;
    Ok(StatusCode::CREATED)
}

pub(crate) async fn credentials(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<Json<ClusterCredentials>, ApiError> {
    Ok(Json(app.credentials(id).await?))
}

pub(crate) async fn install_config(
    State(app): State<ApiServer>,
    caller: Caller,
    InCluster(id): InCluster,
) -> Result<Json<String>, ApiError> {
    Ok(Json(app.shown_install_config(&caller, id).await?))
}

pub(crate) async fn update_install_config(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let overrides: String = body.parse("install-config-params")?;
    app.update_install_config(id, &overrides).await?;
    Ok(StatusCode::CREATED)
}
