//! Handlers of an installation.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::cluster::{Cluster, ClusterCredentials};

use super::error::ApiError;
use super::extract::{InCluster, JsonBody};
use crate::app::installation::Installations;
use crate::app::preparation::Preparations;
use crate::app::{self, ClusterStore};
use crate::auth::Caller;

type AcceptedCluster = (StatusCode, Json<Cluster>);

pub(crate) async fn install(
    State(installations): State<Arc<Installations>>,
    InCluster(id): InCluster,
) -> Result<AcceptedCluster, ApiError> {
    Ok((StatusCode::ACCEPTED, Json(installations.install(id).await?)))
}

pub(crate) async fn cancel(
    State(installations): State<Arc<Installations>>,
    InCluster(id): InCluster,
) -> Result<AcceptedCluster, ApiError> {
    Ok((StatusCode::ACCEPTED, Json(installations.cancel(id).await?)))
}

pub(crate) async fn reset(
    State(installations): State<Arc<Installations>>,
    InCluster(id): InCluster,
) -> Result<AcceptedCluster, ApiError> {
    Ok((StatusCode::ACCEPTED, Json(installations.reset(id).await?)))
}

pub(crate) async fn complete(
    State(installations): State<Arc<Installations>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<AcceptedCluster, ApiError> {
    let params = body.parse("completion-params")?;
    Ok((
        StatusCode::ACCEPTED,
        Json(installations.complete(id, &params).await?),
    ))
}

pub(crate) async fn finalizing_progress(
    State(installations): State<Arc<Installations>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    installations
        .report_finalizing(id, &body.parse("finalizing-progress")?)
        .await?;
    Ok(StatusCode::OK)
}

pub(crate) async fn ingress_cert(
    State(installations): State<Arc<Installations>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let pem: String = body.parse("ingress-cert-params")?;
    installations.upload_ingress_cert(id, &pem).await?;
    Ok(StatusCode::CREATED)
}

pub(crate) async fn credentials(
    State(installations): State<Arc<Installations>>,
    InCluster(id): InCluster,
) -> Result<Json<ClusterCredentials>, ApiError> {
    Ok(Json(installations.credentials(id).await?))
}

pub(crate) async fn install_config(
    State(preparations): State<Arc<Preparations>>,
    caller: Caller,
    InCluster(id): InCluster,
) -> Result<Json<String>, ApiError> {
    Ok(Json(preparations.shown_install_config(&caller, id).await?))
}

pub(crate) async fn update_install_config(
    State(clusters): State<Arc<ClusterStore>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let overrides: String = body.parse("install-config-params")?;
    app::install_config::update_install_config(&clusters, id, &overrides).await?;
    Ok(StatusCode::CREATED)
}
