//! Handlers of explanations.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use model::explain::{Explanation, ExplanationList};

use super::error::ApiError;
use super::extract::InCluster;
use super::query::Query;
use crate::app::explain::{Explanations, ListPosition, MAX_PAGE, PAGE};
use crate::auth::Caller;

pub(crate) async fn cluster(
    State(explanations): State<Arc<Explanations>>,
    InCluster(id): InCluster,
) -> Result<Json<Explanation>, ApiError> {
    Ok(Json(explanations.of_cluster(id).await?))
}

/// One page of everything that is not ready or stuck.
pub(crate) async fn list(
    State(explanations): State<Arc<Explanations>>,
    caller: Caller,
    query: Query,
) -> Result<Json<ExplanationList>, ApiError> {
    let limit = match query.integer("limit")? {
        None => PAGE,
        Some(limit) => usize::try_from(limit)
            .ok()
            .filter(|limit| (1..=MAX_PAGE).contains(limit))
            .ok_or_else(|| {
                let problem = format!("should be between 1 and {MAX_PAGE}: {limit}");
                ApiError::parameter("limit", "query", problem)
            })?,
    };
    let after = match query.text("after") {
        None => ListPosition::Cluster(None),
        Some(text) => text.parse::<ListPosition>().map_err(|()| {
            let problem = format!("should be a next value of an earlier page: {text:?}");
            ApiError::parameter("after", "query", problem)
        })?,
    };
    Ok(Json(explanations.list(&caller, after, limit).await?))
}
