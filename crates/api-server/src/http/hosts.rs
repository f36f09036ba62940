//! Handlers of users about hosts.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::host::{Host, HostIgnitionParams, InstallerArgsParams};

use super::error::Refusal;
use super::extract::{Body, InInfraEnv, OfHost};
use crate::app::App;

pub(crate) async fn list(
    State(app): State<App>,
    InInfraEnv(id): InInfraEnv,
) -> Result<Json<Vec<Host>>, Refusal> {
    Ok(Json(app.list_hosts(id).await?))
}

pub(crate) async fn get(
    State(app): State<App>,
    OfHost(infra_env, id): OfHost,
) -> Result<Json<Host>, Refusal> {
    Ok(Json(app.host(infra_env, id).await?))
}

pub(crate) async fn update(
    State(app): State<App>,
    OfHost(infra_env, id): OfHost,
    body: Body,
) -> Result<(StatusCode, Json<Host>), Refusal> {
    let params = body.parse("host-update-params")?;
    Ok((
        StatusCode::CREATED,
        Json(app.update_host(infra_env, id, &params).await?),
    ))
}

pub(crate) async fn deregister(
    State(app): State<App>,
    OfHost(infra_env, id): OfHost,
) -> Result<StatusCode, Refusal> {
    app.deregister_host(infra_env, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn installer_args(
    State(app): State<App>,
    OfHost(infra_env, id): OfHost,
    body: Body,
) -> Result<(StatusCode, Json<Host>), Refusal> {
    let params: InstallerArgsParams = body.parse("installer-args-params")?;
    let args = params.args.unwrap_or_default();
    Ok((
        StatusCode::CREATED,
        Json(app.set_installer_args(infra_env, id, &args).await?),
    ))
}

/// The description has no body in this answer.
pub(crate) async fn ignition_override(
    State(app): State<App>,
    OfHost(infra_env, id): OfHost,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let params: HostIgnitionParams = body.parse("host-ignition-params")?;
    app.set_host_ignition(infra_env, id, &params.config).await?;
    Ok(StatusCode::CREATED)
}
