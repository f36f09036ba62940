//! Handlers about monitored operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::operators::MonitoredOperator;

use super::error::Refusal;
use super::extract::{Body, InCluster};
use super::query::Query;
use crate::app::App;

pub(crate) async fn list(
    State(app): State<App>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Json<Vec<MonitoredOperator>>, Refusal> {
    Ok(Json(app.operators(id, query.text("operator_name")).await?))
}

pub(crate) async fn report(
    State(app): State<App>,
    InCluster(id): InCluster,
    body: Body,
) -> Result<StatusCode, Refusal> {
    app.report_operator(id, &body.parse("report-params")?)
        .await?;
    Ok(StatusCode::OK)
}
