//! Handlers of the nodes of installed clusters.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use model::cluster_nodes::NodesReport;
use model::node_replacement::{NodeReplacement, NodeReplacementPlan, ReplacementPlanParams};

use super::error::ApiError;
use super::extract::{InCluster, JsonBody};
use crate::app::installed_nodes::InstalledNodes;

pub(crate) async fn list(
    State(nodes): State<Arc<InstalledNodes>>,
    InCluster(id): InCluster,
) -> Result<Json<NodesReport>, ApiError> {
    Ok(Json(nodes.report(id).await?))
}

pub(crate) async fn replacement(
    State(nodes): State<Arc<InstalledNodes>>,
    InCluster(id): InCluster,
) -> Result<Json<NodeReplacement>, ApiError> {
    Ok(Json(nodes.replacement(id).await?))
}

pub(crate) async fn plan(
    State(nodes): State<Arc<InstalledNodes>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<Json<NodeReplacementPlan>, ApiError> {
    let params: ReplacementPlanParams = body.parse("node-replacement-plan-params")?;
    Ok(Json(nodes.plan(id, params).await?))
}
