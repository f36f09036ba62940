//! The audit log: its records around changes, and its export.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt as _;
use model::audit::AuditRecord;
use model::ids::HostId;
use service::layers::RequestId;

use super::dry_run;
use super::error::ApiError;
use super::query::Query;
use crate::app::access::PathIds;
use crate::app::audit::{AuditQueue, AuditRecords, PendingRecord, json_lines};
use crate::auth::{Caller, OwnedResource};
use crate::operations::{Operation, ResponseContent};

/// Longest stored path: those of operations are shorter. Units: characters.
const PATH_LENGTH: usize = 512;

/// The resource that a request created; an extension of its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Created(pub(crate) OwnedResource);

/// The record of a change by a user; none for reads, dry runs, and changes by hosts and clusters, whose replies would
/// push out those of users: without authentication their caller is the administrator, too.
pub(super) fn begin(
    queue: &Arc<AuditQueue>,
    operation: &Operation,
    caller: &Caller,
    parts: &Parts,
    (ids, host): (PathIds, Option<HostId>),
) -> Option<PendingRecord> {
    let is_of_users = !operation.access.roles.is_empty();
    if !is_of_users
        || operation.method == "GET"
        || dry_run::is_requested(&parts.uri).unwrap_or(false)
    {
        return None;
    }
    let (user_name, org_id) = match caller {
        Caller::Operator(name) => (name.to_string(), String::new()),
        Caller::User(user) => (user.name.clone(), user.org_id.clone()),
        _ => return None,
    };
    let record = AuditRecord {
        time: service::clock::now().into(),
        user_name,
        org_id,
        operation: operation.id.to_owned(),
        method: operation.method.to_owned(),
        path: parts.uri.path().chars().take(PATH_LENGTH).collect(),
        cluster_id: ids.cluster,
        infra_env_id: ids.infra_env,
        host_id: host,
        request_id: parts.extensions.get::<RequestId>().map(|id| id.0),
        ..AuditRecord::default()
    };
    Some(PendingRecord::new(Arc::clone(queue), record))
}

/// Writes the record with its outcome.
pub(super) fn end(pending: PendingRecord, response: &Response) -> impl Future<Output = ()> + use<> {
    let created = response.extensions().get::<Created>().copied();
    let status = response.status().as_u16();
    let complete = move |record: &mut AuditRecord| {
        record.status = status;
        match created {
            Some(Created(OwnedResource::Cluster(id))) => record.cluster_id = Some(id),
            Some(Created(OwnedResource::InfraEnv(id))) => record.infra_env_id = Some(id),
            None => {}
        }
    };
    pending.write(complete)
}

/// One JSON object per line, oldest first: all records, or those with ids above `after`.
pub(crate) async fn export(
    State(records): State<Arc<AuditRecords>>,
    query: Query,
) -> Result<Response, ApiError> {
    let after = query.integer("after")?.unwrap_or(0);
    let pages = records.since(after);
    let lines = pages.map_ok(|page| Bytes::from(json_lines(page.iter())));
    let kind = ResponseContent::JsonLines.media_type();
    Ok(([(CONTENT_TYPE, kind)], Body::from_stream(lines)).into_response())
}
