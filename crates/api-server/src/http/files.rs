//! Handlers of installation files.

use axum::extract::State;

use super::download::FileResponse;
use super::error::ApiError;
use super::extract::{InCluster, OfHost};
use super::query::Query;
use crate::app::ApiServer;
use crate::app::files::{KUBEADMIN_PASSWORD, KUBECONFIG, KUBECONFIG_NOINGRESS};

const CLUSTER_FILES: &[&str] = &[
    "bootstrap.ign",
    "master.ign",
    "metadata.json",
    "worker.ign",
    "install-config.yaml",
    "custom_manifests.json",
    "custom_manifests.yaml",
    "arbiter.ign",
];
const CREDENTIALS: &[&str] = &[KUBEADMIN_PASSWORD, KUBECONFIG, KUBECONFIG_NOINGRESS];

pub(crate) async fn cluster_file(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<FileResponse, ApiError> {
    let name = query.required_one_of("file_name", CLUSTER_FILES)?;
    Ok(FileResponse::object(name, app.download(id, name).await?))
}

pub(crate) async fn cluster_credentials(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<FileResponse, ApiError> {
    let name = query.required_one_of("file_name", CREDENTIALS)?;
    Ok(FileResponse::object(
        name,
        app.download_credentials(id, name).await?,
    ))
}

pub(crate) async fn host_ignition(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
) -> Result<FileResponse, ApiError> {
    let (name, object) = app.host_ignition(infra_env, id).await?;
    Ok(FileResponse::object(name, object))
}
