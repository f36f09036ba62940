//! Handlers of clusters.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use model::cluster::{Cluster, ClusterDefaultConfig};
use model::hardware::PreflightHardwareRequirements;
use model::host::{Host, HostRole};
use serde_json::Value;
use service::shared_body::SharedBody;

use super::audit::Created;
use super::encoded_json::EncodedJson;
use super::error::ApiError;
use super::extract::{InCluster, JsonBody};
use super::query::Query;
use crate::app::ApiServer;
use crate::app::clusters::ClusterListing;
use crate::app::offer::CurrentOffer;
use crate::auth::{Caller, OwnedResource};

/// A new cluster.
type CreatedCluster = (StatusCode, Extension<Created>, Json<Cluster>);

fn created(cluster: Cluster) -> CreatedCluster {
    let created = Created(OwnedResource::Cluster(cluster.id));
    (StatusCode::CREATED, Extension(created), Json(cluster))
}

pub(crate) async fn register(
    State(app): State<ApiServer>,
    caller: Caller,
    body: JsonBody,
) -> Result<CreatedCluster, ApiError> {
    let params = body.parse("new-cluster-params")?;
    Ok(created(app.register_cluster(&caller, params).await?))
}

pub(crate) async fn import(
    State(app): State<ApiServer>,
    caller: Caller,
    body: JsonBody,
) -> Result<CreatedCluster, ApiError> {
    let params = body.parse("new-import-cluster-params")?;
    Ok(created(app.import_cluster(&caller, params).await?))
}

pub(crate) async fn register_disconnected(
    State(app): State<ApiServer>,
    caller: Caller,
    body: JsonBody,
) -> Result<CreatedCluster, ApiError> {
    let params = body.parse("new-cluster-params")?;
    let cluster = app.register_disconnected_cluster(&caller, params).await?;
    Ok(created(cluster))
}

pub(crate) async fn allow_add_hosts(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<(StatusCode, Json<Cluster>), ApiError> {
    let cluster = app.allow_add_hosts(id).await?;
    Ok((StatusCode::ACCEPTED, Json(cluster)))
}

pub(crate) async fn list(
    State(app): State<ApiServer>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
) -> Result<EncodedJson<SharedBody>, ApiError> {
    let listing = ClusterListing {
        with_hosts: query.flag("with_hosts"),
        with_deleted: with_deleted(&caller, &headers),
        openshift_cluster_id: query.id("openshift_cluster_id")?,
        owner: query.text("owner").map(str::to_owned),
        ams_subscription_ids: query.texts("ams_subscription_ids"),
    };
    Ok(EncodedJson(app.list_clusters(&caller, listing).await?))
}

pub(crate) async fn get(
    State(app): State<ApiServer>,
    caller: Caller,
    InCluster(id): InCluster,
    query: Query,
    headers: HeaderMap,
) -> Result<EncodedJson<SharedBody>, ApiError> {
    let with_hosts = !query.flag("exclude-hosts");
    let with_deleted = with_deleted(&caller, &headers);
    let cluster = app.cluster(id, with_hosts, with_deleted).await?;
    Ok(EncodedJson(cluster))
}

/// Whether the request includes deleted clusters, which administrators may read.
fn with_deleted(caller: &Caller, headers: &HeaderMap) -> bool {
    let wanted = headers.get("get_unregistered_clusters");
    caller.oversees() && wanted.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

pub(crate) async fn update(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<(StatusCode, Json<Cluster>), ApiError> {
    let params = body.parse("cluster-update-params")?;
    Ok((
        StatusCode::CREATED,
        Json(app.update_cluster(id, &params).await?),
    ))
}

pub(crate) async fn deregister(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<StatusCode, ApiError> {
    app.deregister_cluster(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Hosts of a cluster; empty for an unknown one, because the installer polls before and after a cluster's life. Any
/// status is accepted.
pub(crate) async fn hosts(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Json<Vec<Host>>, ApiError> {
    let role = query.one_of::<HostRole>("role")?;
    let status = query.text("status");
    let with_inventory = query.flag("with-inventory");
    let with_connectivity = query.flag("with-connectivity");
    let mut hosts = app.hosts_of_cluster(id).await?;
    hosts.retain(|host| {
        role.is_none_or(|role| host.role == Some(role))
            && status.is_none_or(|status| host.status.as_str() == status)
    });
    for host in &mut hosts {
        if !with_inventory {
            host.inventory.clear();
        }
        if !with_connectivity {
            host.connectivity.clear();
        }
    }
    Ok(Json(hosts))
}

pub(crate) async fn default_config(
    State(offer): State<Arc<CurrentOffer>>,
) -> Json<ClusterDefaultConfig> {
    Json(rules::cluster::create::default_config(&offer.get()))
}

pub(crate) async fn preflight_requirements(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<Json<PreflightHardwareRequirements>, ApiError> {
    Ok(Json(app.preflight_requirements(id).await?))
}

pub(crate) async fn ui_settings(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<Json<String>, ApiError> {
    Ok(Json(app.ui_settings(id).await?))
}

pub(crate) async fn set_ui_settings(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let text: String = body.parse("ui-settings")?;
    app.set_ui_settings(id, &text).await?;
    Ok(Json(text))
}

pub(crate) async fn ignored_validations(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(app.ignored_validations(id).await?))
}

pub(crate) async fn set_ignored_validations(
    State(app): State<ApiServer>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let params = body.parse("ignored_validations")?;
    Ok((
        StatusCode::CREATED,
        Json(app.set_ignored_validations(id, &params).await?),
    ))
}
