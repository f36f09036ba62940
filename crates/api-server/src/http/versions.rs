//! Handlers of versions and components.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use model::domains::ManagedDomain;
use model::versions::{ListVersions, OpenshiftVersion, ReleaseSource};

use super::query::Query;
use crate::app::offer::CurrentOffer;
use crate::app::versions;
use crate::settings::Settings;

pub(crate) async fn list(
    State(offer): State<Arc<CurrentOffer>>,
    query: Query,
) -> Json<BTreeMap<String, OpenshiftVersion>> {
    let query = rules::versions::Query {
        version: query.text("version").map(str::to_owned),
        only_latest: query.flag("only_latest"),
    };
    Json(versions::versions(&offer.get(), &query))
}

pub(crate) async fn components(State(settings): State<Arc<Settings>>) -> Json<ListVersions> {
    Json(versions::components(&settings))
}

pub(crate) async fn release_sources(
    State(settings): State<Arc<Settings>>,
) -> Json<Vec<ReleaseSource>> {
    Json(settings.release_sources.0.clone())
}

pub(crate) async fn managed_domains(
    State(settings): State<Arc<Settings>>,
) -> Json<Vec<ManagedDomain>> {
    Json(settings.base_dns_domains.0.clone())
}
