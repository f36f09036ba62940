//! Downloads of an installation's files.

use axum::extract::State;

use super::download::Download;
use super::error::Refusal;
use super::extract::{InCluster, OfHost};
use super::query::Query;
use crate::app::App;
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
    State(app): State<App>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Download, Refusal> {
    let name = query.required_one_of("file_name", CLUSTER_FILES)?;
    Ok(Download::object(name, app.download(id, name).await?))
}

pub(crate) async fn cluster_credentials(
    State(app): State<App>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Download, Refusal> {
    let name = query.required_one_of("file_name", CREDENTIALS)?;
    Ok(Download::object(
        name,
        app.download_credentials(id, name).await?,
    ))
}

pub(crate) async fn host_ignition(
    State(app): State<App>,
    OfHost(infra_env, id): OfHost,
) -> Result<Download, Refusal> {
    let (name, object) = app.host_ignition(infra_env, id).await?;
    Ok(Download::object(name, object))
}
