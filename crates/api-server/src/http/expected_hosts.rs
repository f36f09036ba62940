//! Handlers of expected hosts.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::expected_hosts::{ExpectedHostList, ExpectedHostsParams};

use super::error::ApiError;
use super::extract::{InInfraEnv, JsonBody};
use crate::app::ApiServer;

pub(crate) async fn get(
    State(app): State<ApiServer>,
    InInfraEnv(id): InInfraEnv,
) -> Result<Json<ExpectedHostList>, ApiError> {
    Ok(Json(app.expected_hosts(id).await?))
}

pub(crate) async fn set(
    State(app): State<ApiServer>,
    InInfraEnv(id): InInfraEnv,
    body: JsonBody,
) -> Result<Json<ExpectedHostList>, ApiError> {
    let params: ExpectedHostsParams = body.parse("expected-hosts-params")?;
    Ok(Json(app.set_expected_hosts(id, params.hosts).await?))
}

pub(crate) async fn delete(
    State(app): State<ApiServer>,
    InInfraEnv(id): InInfraEnv,
) -> Result<StatusCode, ApiError> {
    app.delete_expected_hosts(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
