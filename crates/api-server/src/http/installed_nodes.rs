//! Handlers of the nodes of installed clusters.

use axum::Json;
use axum::extract::State;
use model::cluster_nodes::NodesReport;
use model::node_replacement::{NodeReplacement, NodeReplacementPlan, ReplacementPlanParams};

use super::error::ApiError;
use super::extract::{InCluster, JsonBody};
use crate::app::ApiServer;

pub(crate) async fn list(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<Json<NodesReport>, ApiError> {
    Ok(Json(app.installed_nodes(id).await?))
}

pub(crate) async fn replacement(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<Json<NodeReplacement>, ApiError> {
    Ok(Json(app.node_replacement(id).await?))
}

pub(crate) async fn plan(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<Json<NodeReplacementPlan>, ApiError> {
    let params: ReplacementPlanParams = body.parse("node-replacement-plan-params")?;
    Ok(Json(app.plan_node_replacement(id, params).await?))
}
