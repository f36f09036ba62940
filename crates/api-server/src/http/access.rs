//! The layer before every handler: credentials of the request, and access to the resource of its path.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::Error;
use model::ids::{ClusterId, HostId, InfraEnvId};

use super::audit;
use super::error::ApiError;
use super::extract::parse_uuid;
use super::query::Query;
use crate::app::access::{AccessControl, PathIds, SentCredentials};
use crate::app::audit::AuditQueue;
use crate::app::links::SentLink;
use crate::auth::{Caller, unauthenticated};
use crate::operations::Operation;
use crate::operations::access::{CredentialPlace, Scheme};

/// State of the layer of one operation.
#[derive(Debug, Clone)]
pub(crate) struct AccessLayer {
    pub(crate) access: Arc<AccessControl>,
    pub(crate) audit: Arc<AuditQueue>,
    pub(crate) operation: &'static Operation,
}

/// Refuses callers without access; the handler gets the [`Caller`].
pub(crate) async fn check_access(
    State(AccessLayer {
        access,
        audit,
        operation,
    }): State<AccessLayer>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let (ids, host) = path_ids(&mut parts).await;
    let caller = match authenticate(&access, operation, &mut parts, ids).await {
        Ok(caller) => caller,
        Err(refusal) => return ApiError::Domain(refusal).into_response(),
    };
    let record = audit::begin(&audit, operation, &caller, &parts, (ids, host));
    let response = match access.check_reach(&caller, operation, ids).await {
        Ok(()) => {
            parts.extensions.insert(caller);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refusal) => ApiError::Domain(refusal).into_response(),
    };
    if let Some(record) = record {
        let written = audit::end(record, &response);
        written.await;
    }
    response
}

async fn authenticate(
    access: &AccessControl,
    operation: &Operation,
    parts: &mut Parts,
    ids: PathIds,
) -> Result<Caller, Error> {
    let Ok(query) = Query::from_request_parts(parts, &()).await;
    let sent = credentials(operation, &parts.headers, &query)?;
    let link = SentLink {
        path: parts.uri.path(),
        query: query.pairs(),
    };
    access.authenticate(&sent, link, ids).await
}

/// The ids of the path. A malformed one is absent, and refused by the handler.
async fn path_ids(parts: &mut Parts) -> (PathIds, Option<HostId>) {
    let params = RawPathParams::from_request_parts(parts, &()).await;
    let id = |name: &str| {
        let params = params.as_ref().ok()?;
        let (_, value) = params.iter().find(|(key, _)| *key == name)?;
        parse_uuid(name, "path", value).ok()
    };
    let ids = PathIds {
        cluster: id("cluster_id").map(ClusterId),
        infra_env: id("infra_env_id").map(InfraEnvId),
    };
    (ids, id("host_id").map(HostId))
}

/// The credentials in the request that the operation accepts. An empty one is absent: agents send the header always.
fn credentials<'a>(
    operation: &Operation,
    headers: &'a HeaderMap,
    query: &'a Query,
) -> Result<SentCredentials<'a>, Error> {
    let mut sent = SentCredentials::default();
    for scheme in operation.access.schemes() {
        let text = match scheme.place() {
            CredentialPlace::Query(name) => query.text(name),
            CredentialPlace::Header(name) => match headers.get(name) {
                Some(value) => Some(value.to_str().map_err(|_| malformed(scheme))?.trim()),
                None => None,
            },
        };
        sent.0.extend(
            text.filter(|text| !text.is_empty())
                .map(|text| (scheme, text)),
        );
    }
    Ok(sent)
}

fn malformed(scheme: Scheme) -> Error {
    unauthenticated(format!("the credential of {} is not ASCII", scheme.name()))
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let missing = || Error::internal("identifying the caller", "the route has no access layer");
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiError::Domain(missing()))
    }
}
