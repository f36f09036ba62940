//! Handlers of operators, bundles, and monitored operators.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use model::Error;
use model::operators::{BundleDescription, MonitoredOperator};
use serde_json::Value;

use super::error::ApiError;
use super::extract::{InCluster, JsonBody};
use super::query::Query;
use super::support::support_query;
use crate::app::{ClusterStore, operators};

pub(crate) async fn list(
    State(clusters): State<Arc<ClusterStore>>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Json<Vec<MonitoredOperator>>, ApiError> {
    Ok(Json(
        operators::operators(&clusters, id, query.text("operator_name")).await?,
    ))
}

pub(crate) async fn report(
    State(clusters): State<Arc<ClusterStore>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    operators::report_operator(&clusters, id, &body.parse("report-params")?).await?;
    Ok(StatusCode::OK)
}

/// Names of the operators that can be chosen.
pub(crate) async fn supported() -> Json<Vec<&'static str>> {
    Json(rules::operators::operator_names())
}

/// Properties of an operator that a request may set: no operator has any.
pub(crate) async fn properties(Path(name): Path<String>) -> Result<Json<Vec<Value>>, ApiError> {
    match rules::operators::operator(&name) {
        Some(_) => Ok(Json(Vec::new())),
        None => Err(Error::not_found("operator", name).into()),
    }
}

/// Bundles; a version selects those that it supports.
pub(crate) async fn bundles(query: Query) -> Result<Json<Vec<BundleDescription>>, ApiError> {
    let features = query.some_of("feature_ids")?;
    let selected = query.text("openshift_version");
    let selected = selected.map(|version| support_query(&query, version));
    let selected = selected.transpose()?;
    Ok(Json(rules::operators::bundles(
        selected.as_ref(),
        &features,
    )?))
}

pub(crate) async fn bundle(
    Path(id): Path<String>,
    query: Query,
) -> Result<Json<BundleDescription>, ApiError> {
    let features = query.some_of("feature_ids")?;
    Ok(Json(rules::operators::bundle(&id, &features)?))
}
