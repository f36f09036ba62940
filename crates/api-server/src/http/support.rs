//! Handlers of support levels.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use model::cluster::PlatformType;
use model::support::{DetailedSupportedFeatures, SupportedArchitectures, SupportedFeatures};
use rules::operators::support::SupportQuery;

use super::error::ApiError;
use super::extract::InCluster;
use super::query::Query;
use crate::app::ClusterStore;
use crate::app::clusters::supported_platforms;

/// The members of a query that select support levels, for a version.
pub(super) fn support_query(query: &Query, version: &str) -> Result<SupportQuery, ApiError> {
    Ok(SupportQuery::new(
        version,
        query.one_of("cpu_architecture")?,
        query.one_of("platform_type")?,
        query.text("external_platform_name"),
    )?)
}

pub(crate) async fn features(query: Query) -> Result<Json<SupportedFeatures>, ApiError> {
    let selected = support_query(&query, query.required("openshift_version")?)?;
    let features = rules::operators::support::features(&selected);
    let features = features.into_iter();
    Ok(Json(SupportedFeatures {
        features: features.map(|one| (one.id, one.support_level)).collect(),
    }))
}

pub(crate) async fn detailed_features(
    query: Query,
) -> Result<Json<DetailedSupportedFeatures>, ApiError> {
    let selected = support_query(&query, query.required("openshift_version")?)?;
    Ok(Json(rules::operators::detailed_features(&selected)?))
}

pub(crate) async fn architectures(query: Query) -> Result<Json<SupportedArchitectures>, ApiError> {
    let selected = support_query(&query, query.required("openshift_version")?)?;
    Ok(Json(SupportedArchitectures {
        architectures: rules::operators::support::architectures(selected.version),
    }))
}

pub(crate) async fn platforms(
    State(clusters): State<Arc<ClusterStore>>,
    InCluster(id): InCluster,
) -> Result<Json<Vec<PlatformType>>, ApiError> {
    Ok(Json(supported_platforms(&clusters, id).await?))
}
