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
use crate::app::clusters::{ClusterListing, Clusters, hosts_of_cluster};
use crate::app::offer::CurrentOffer;
use crate::app::{self, ClusterStore};
use crate::auth::{Caller, OwnedResource};

/// A new cluster.
type CreatedCluster = (StatusCode, Extension<Created>, Json<Cluster>);

fn created(cluster: Cluster) -> CreatedCluster {
    let created = Created(OwnedResource::Cluster(cluster.id));
    (StatusCode::CREATED, Extension(created), Json(cluster))
}

pub(crate) async fn register(
    State(clusters): State<Arc<Clusters>>,
    caller: Caller,
    body: JsonBody,
) -> Result<CreatedCluster, ApiError> {
    let params = body.parse("new-cluster-params")?;
    Ok(created(clusters.register(&caller, params).await?))
}

pub(crate) async fn import(
    State(clusters): State<Arc<Clusters>>,
    caller: Caller,
    body: JsonBody,
) -> Result<CreatedCluster, ApiError> {
    let params = body.parse("new-import-cluster-params")?;
    Ok(created(clusters.import(&caller, params).await?))
}

pub(crate) async fn register_disconnected(
    State(clusters): State<Arc<Clusters>>,
    caller: Caller,
    body: JsonBody,
) -> Result<CreatedCluster, ApiError> {
    let params = body.parse("new-cluster-params")?;
    let cluster = clusters.register_disconnected(&caller, params).await?;
    Ok(created(cluster))
}

pub(crate) async fn allow_add_hosts(
    State(clusters): State<Arc<ClusterStore>>,
    InCluster(id): InCluster,
) -> Result<(StatusCode, Json<Cluster>), ApiError> {
    let cluster = app::day2::allow_add_hosts(&clusters, id).await?;
    Ok((StatusCode::ACCEPTED, Json(cluster)))
}

pub(crate) async fn list(
    State(clusters): State<Arc<Clusters>>,
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
    Ok(EncodedJson(clusters.list(&caller, listing).await?))
}

pub(crate) async fn get(
    State(clusters): State<Arc<Clusters>>,
    caller: Caller,
    InCluster(id): InCluster,
    query: Query,
    headers: HeaderMap,
) -> Result<EncodedJson<SharedBody>, ApiError> {
    let with_hosts = !query.flag("exclude-hosts");
    let with_deleted = with_deleted(&caller, &headers);
    let cluster = clusters.get(id, with_hosts, with_deleted).await?;
    Ok(EncodedJson(cluster))
}

/// Whether the request includes deleted clusters, which administrators may read.
fn with_deleted(caller: &Caller, headers: &HeaderMap) -> bool {
    let wanted = headers.get("get_unregistered_clusters");
    caller.oversees() && wanted.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

pub(crate) async fn update(
    State(clusters): State<Arc<Clusters>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<(StatusCode, Json<Cluster>), ApiError> {
    let params = body.parse("cluster-update-params")?;
    Ok((
        StatusCode::CREATED,
        Json(clusters.update(id, &params).await?),
    ))
}

pub(crate) async fn deregister(
    State(clusters): State<Arc<Clusters>>,
    InCluster(id): InCluster,
) -> Result<StatusCode, ApiError> {
    clusters.deregister(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Hosts of a cluster; empty for an unknown one, because the installer polls before and after a cluster's life. Any
/// status is accepted.
pub(crate) async fn hosts(
    State(clusters): State<Arc<ClusterStore>>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Json<Vec<Host>>, ApiError> {
    let role = query.one_of::<HostRole>("role")?;
    let status = query.text("status");
    let with_inventory = query.flag("with-inventory");
    let with_connectivity = query.flag("with-connectivity");
    let mut hosts = hosts_of_cluster(&clusters, id).await?;
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
    State(clusters): State<Arc<ClusterStore>>,
    InCluster(id): InCluster,
) -> Result<Json<PreflightHardwareRequirements>, ApiError> {
    Ok(Json(
        app::clusters::preflight_requirements(&clusters, id).await?,
    ))
}

pub(crate) async fn ui_settings(
    State(clusters): State<Arc<Clusters>>,
    InCluster(id): InCluster,
) -> Result<Json<String>, ApiError> {
    Ok(Json(clusters.ui_settings(id).await?))
}

pub(crate) async fn set_ui_settings(
    State(clusters): State<Arc<Clusters>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let text: String = body.parse("ui-settings")?;
    clusters.set_ui_settings(id, &text).await?;
    Ok(Json(text))
}

pub(crate) async fn ignored_validations(
    State(clusters): State<Arc<ClusterStore>>,
    InCluster(id): InCluster,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(
        app::ignored_validations::ignored_validations(&clusters, id).await?,
    ))
}

pub(crate) async fn set_ignored_validations(
    State(clusters): State<Arc<ClusterStore>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let params = body.parse("ignored_validations")?;
    let ignored = app::ignored_validations::set_ignored_validations(&clusters, id, &params);
    Ok((StatusCode::CREATED, Json(ignored.await?)))
}
