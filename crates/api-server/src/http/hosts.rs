//! Handlers of hosts, for users.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use model::host::{BindHostParams, Host, HostIgnitionParams, InstallerArgsParams};

use super::error::ApiError;
use super::extract::{InInfraEnv, JsonBody, OfHost, OfValidation};
use super::paged_list::paged_list;
use crate::app::access::AccessControl;
use crate::app::files::ClusterFiles;
use crate::app::hosts::Hosts;
use crate::auth::Caller;

pub(crate) async fn list(
    State(hosts): State<Arc<Hosts>>,
    InInfraEnv(id): InInfraEnv,
) -> Result<Response, ApiError> {
    let ids = hosts.ids(id).await?;
    paged_list(ids, move |ids| {
        let hosts = Arc::clone(&hosts);
        async move { hosts.page(id, &ids).await }
    })
    .await
}

pub(crate) async fn get(
    State(hosts): State<Arc<Hosts>>,
    OfHost(infra_env, id): OfHost,
) -> Result<Json<Host>, ApiError> {
    Ok(Json(hosts.get(infra_env, id).await?))
}

pub(crate) async fn update(
    State(hosts): State<Arc<Hosts>>,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<(StatusCode, Json<Host>), ApiError> {
    let params = body.parse("host-update-params")?;
    Ok((
        StatusCode::CREATED,
        Json(hosts.update(infra_env, id, &params).await?),
    ))
}

pub(crate) async fn deregister(
    State(hosts): State<Arc<Hosts>>,
    OfHost(infra_env, id): OfHost,
) -> Result<StatusCode, ApiError> {
    hosts.deregister(infra_env, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn installer_args(
    State(hosts): State<Arc<Hosts>>,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<(StatusCode, Json<Host>), ApiError> {
    let params: InstallerArgsParams = body.parse("installer-args-params")?;
    let args = params.args.unwrap_or_default();
    Ok((
        StatusCode::CREATED,
        Json(hosts.set_installer_args(infra_env, id, &args).await?),
    ))
}

pub(crate) async fn bind(
    State(hosts): State<Arc<Hosts>>,
    State(access): State<Arc<AccessControl>>,
    caller: Caller,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<Json<Host>, ApiError> {
    let params: BindHostParams = body.parse("bind-host-params")?;
    access
        .check_named_cluster(&caller, params.cluster_id)
        .await?;
    Ok(Json(hosts.bind(infra_env, id, &params).await?))
}

pub(crate) async fn unbind(
    State(hosts): State<Arc<Hosts>>,
    OfHost(infra_env, id): OfHost,
) -> Result<Json<Host>, ApiError> {
    Ok(Json(hosts.unbind(infra_env, id).await?))
}

pub(crate) async fn install(
    State(hosts): State<Arc<Hosts>>,
    OfHost(infra_env, id): OfHost,
) -> Result<(StatusCode, Json<Host>), ApiError> {
    let host = hosts.install(infra_env, id).await?;
    Ok((StatusCode::ACCEPTED, Json(host)))
}

pub(crate) async fn reset(
    State(hosts): State<Arc<Hosts>>,
    OfHost(infra_env, id): OfHost,
) -> Result<Json<Host>, ApiError> {
    Ok(Json(hosts.reset(infra_env, id).await?))
}

/// Responds without a body, as the service that clients know does.
pub(crate) async fn reset_validation(
    State(hosts): State<Arc<Hosts>>,
    OfHost(infra_env, id): OfHost,
    OfValidation(validation): OfValidation,
) -> Result<StatusCode, ApiError> {
    hosts.reset_validation(infra_env, id, &validation).await?;
    Ok(StatusCode::OK)
}

pub(crate) async fn ignition(
    State(files): State<Arc<ClusterFiles>>,
    OfHost(infra_env, id): OfHost,
) -> Result<Json<HostIgnitionParams>, ApiError> {
    let config = files.rendered_host_ignition(infra_env, id).await?;
    Ok(Json(HostIgnitionParams { config }))
}

/// Responds without a body, as the API description has it.
pub(crate) async fn ignition_override(
    State(hosts): State<Arc<Hosts>>,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let params: HostIgnitionParams = body.parse("host-ignition-params")?;
    hosts.set_ignition(infra_env, id, &params.config).await?;
    Ok(StatusCode::CREATED)
}
