//! Handlers of expected hosts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::expected_hosts::{ExpectedHostList, ExpectedHostsParams};

use super::error::ApiError;
use super::extract::{InInfraEnv, JsonBody};
use crate::app::expected_hosts::ExpectedHosts;

pub(crate) async fn get(
    State(expected_hosts): State<Arc<ExpectedHosts>>,
    InInfraEnv(id): InInfraEnv,
) -> Result<Json<ExpectedHostList>, ApiError> {
    Ok(Json(expected_hosts.get(id).await?))
}

pub(crate) async fn set(
    State(expected_hosts): State<Arc<ExpectedHosts>>,
    InInfraEnv(id): InInfraEnv,
    body: JsonBody,
) -> Result<Json<ExpectedHostList>, ApiError> {
    let params: ExpectedHostsParams = body.parse("expected-hosts-params")?;
    Ok(Json(expected_hosts.set(id, params.hosts).await?))
}

pub(crate) async fn delete(
    State(expected_hosts): State<Arc<ExpectedHosts>>,
    InInfraEnv(id): InInfraEnv,
) -> Result<StatusCode, ApiError> {
    expected_hosts.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
