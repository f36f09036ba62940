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
use crate::app::ApiServer;
use crate::app::access::AccessControl;
use crate::auth::Caller;

pub(crate) async fn list(
    State(app): State<ApiServer>,
    InInfraEnv(id): InInfraEnv,
) -> Result<Response, ApiError> {
    let ids = app.host_ids(id).await?;
    paged_list(ids, move |ids| {
        let app = app.clone();
        async move { app.page_of_hosts(id, &ids).await }
    })
    .await
}

pub(crate) async fn get(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
) -> Result<Json<Host>, ApiError> {
    Ok(Json(app.host(infra_env, id).await?))
}

pub(crate) async fn update(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<(StatusCode, Json<Host>), ApiError> {
    let params = body.parse("host-update-params")?;
    Ok((
        StatusCode::CREATED,
        Json(app.update_host(infra_env, id, &params).await?),
    ))
}

pub(crate) async fn deregister(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
) -> Result<StatusCode, ApiError> {
    app.deregister_host(infra_env, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn installer_args(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<(StatusCode, Json<Host>), ApiError> {
    let params: InstallerArgsParams = body.parse("installer-args-params")?;
    let args = params.args.unwrap_or_default();
    Ok((
        StatusCode::CREATED,
        Json(app.set_installer_args(infra_env, id, &args).await?),
    ))
}

pub(crate) async fn bind(
    State(app): State<ApiServer>,
    State(access): State<Arc<AccessControl>>,
    caller: Caller,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<Json<Host>, ApiError> {
    let params: BindHostParams = body.parse("bind-host-params")?;
    access
        .check_named_cluster(&caller, params.cluster_id)
        .await?;
    Ok(Json(app.bind_host(infra_env, id, &params).await?))
}

pub(crate) async fn unbind(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
) -> Result<Json<Host>, ApiError> {
    Ok(Json(app.unbind_host(infra_env, id).await?))
}

pub(crate) async fn install(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
) -> Result<(StatusCode, Json<Host>), ApiError> {
    let host = app.install_host(infra_env, id).await?;
    Ok((StatusCode::ACCEPTED, Json(host)))
}

pub(crate) async fn reset(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
) -> Result<Json<Host>, ApiError> {
    Ok(Json(app.reset_host(infra_env, id).await?))
}

/// Responds without a body, as the service that clients know does.
pub(crate) async fn reset_validation(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
    OfValidation(validation): OfValidation,
) -> Result<StatusCode, ApiError> {
    app.reset_host_validation(infra_env, id, &validation)
        .await?;
    Ok(StatusCode::OK)
}

pub(crate) async fn ignition(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
) -> Result<Json<HostIgnitionParams>, ApiError> {
    let config = app.rendered_host_ignition(infra_env, id).await?;
    Ok(Json(HostIgnitionParams { config }))
}

/// Responds without a body, as the API description has it.
pub(crate) async fn ignition_override(
    State(app): State<ApiServer>,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    let params: HostIgnitionParams = body.parse("host-ignition-params")?;
    app.set_host_ignition(infra_env, id, &params.config).await?;
    Ok(StatusCode::CREATED)
}
