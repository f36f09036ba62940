//! Handlers of versions and components.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use model::versions::{ListVersions, OpenshiftVersion};
use serde_json::Value;

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

/// Empty: offline there is no update service with releases.
pub(crate) async fn release_sources() -> Json<Vec<Value>> {
    Json(Vec::new())
}

/// Empty: this server manages no DNS provider.
pub(crate) async fn managed_domains() -> Json<Vec<Value>> {
    Json(Vec::new())
}
