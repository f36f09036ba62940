//! Handlers of versions and components.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use model::domains::ManagedDomain;
use model::versions::{ListVersions, OpenshiftVersion, ReleaseSource};

use super::query::Query;
use crate::app::ApiServer;

pub(crate) async fn list(
    State(app): State<ApiServer>,
    query: Query,
) -> Json<BTreeMap<String, OpenshiftVersion>> {
    let query = rules::versions::Query {
        version: query.text("version").map(str::to_owned),
        only_latest: query.flag("only_latest"),
    };
    Json(app.versions(&query))
}

pub(crate) async fn components(State(app): State<ApiServer>) -> Json<ListVersions> {
    Json(app.components())
}

pub(crate) async fn release_sources(State(app): State<ApiServer>) -> Json<Vec<ReleaseSource>> {
    Json(app.settings.release_sources.0.clone())
}

pub(crate) async fn managed_domains(State(app): State<ApiServer>) -> Json<Vec<ManagedDomain>> {
    Json(app.settings.base_dns_domains.0.clone())
}
