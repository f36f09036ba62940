//! Handlers of monitored operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::operators::MonitoredOperator;

use super::error::ApiError;
use super::extract::{InCluster, JsonBody};
use super::query::Query;
use crate::app::ApiServer;

pub(crate) async fn list(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Json<Vec<MonitoredOperator>>, ApiError> {
    Ok(Json(app.operators(id, query.text("operator_name")).await?))
}

pub(crate) async fn report(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    app.report_operator(id, &body.parse("report-params")?)
        .await?;
    Ok(StatusCode::OK)
}
