//! The routes. Names hold slashes, so everything below `/v2/` is taken apart here and not by the router.

mod blobs;
mod enforcement;
mod guard;
mod headers;
mod lists;
mod maintenance;
mod manifest_list;
mod manifests;
mod page;
mod query;
mod referrers;
mod route;
mod state;
mod uploads;
mod usage;

use std::sync::Arc;

use axum::extract::{FromRef as _, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Extension, Json, Router};
use serde_json::json;

use crate::auth::{Access, Gate};
use crate::error::RegistryError;
use crate::origin::Origins;
use crate::upstream::Upstreams;
use guard::Guard;
use headers::Answer;
pub(crate) use manifest_list::limits;
use route::Route;
use state::ExtraHeaders;
pub(crate) use state::{App, Parts as AppParts};

/// Header: the protocol version. Source: distribution, on every answer.
const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");
/// Which registry a client means. Source: distribution-spec, registry proxying.
const NAMESPACE: HeaderName = HeaderName::from_static("oci-namespace");
/// Every route; those below `/v2/` and the pages behind `gate`, if there is one.
pub(crate) fn router(app: &App, gate: Option<Gate>) -> Router {
    let pages = page::routes(app, gate.as_ref());
    let registry = Router::new()
        .route("/v2/", any(dispatch))
        .route("/v2/{*path}", any(dispatch))
        .with_state(app.clone());
    let registry = match gate {
        None => registry.layer(Extension(Access::open())),
        Some(gate) => {
            let guard = Guard::new(app, gate);
            let users = guard.users().cloned();
            let registry = registry.layer(middleware::from_fn_with_state(guard, guard::check));
            match users {
                Some(users) => {
                    registry.route(guard::TOKEN_PATH, get(guard::token).with_state(users))
                }
                None => registry,
            }
        }
    };
    let registry = registry
        .route("/v2", any(to_base).with_state(app.clone()))
        .layer(middleware::from_fn_with_state(
            ExtraHeaders::from_ref(app),
            add_headers,
        ));
    let registry = match app.origins.prefix.as_str() {
        "" => registry,
        prefix => Router::new()
            .route(&format!("{prefix}/"), get(async || StatusCode::OK))
            .nest(prefix, registry),
    };
    registry.merge(pages)
}

async fn to_base(State(origins): State<Arc<Origins>>) -> impl IntoResponse {
    let base = format!("{}/v2/", origins.prefix);
    (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, base)])
}

async fn add_headers(
    State(ExtraHeaders(extra)): State<ExtraHeaders>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(API_VERSION, HeaderValue::from_static("registry/2.0"));
    for (name, value) in &*extra {
        headers.append(name, value.clone());
    }
    response
}

async fn dispatch(State(app): State<App>, request: Request) -> Response {
    let is_head = request.method() == Method::HEAD;
    let namespace = query::value(request.uri(), "ns");
    let mut response = answer(&app, request)
        .await
        .unwrap_or_else(RegistryError::answer);
    if let Some(namespace) = namespace.and_then(|text| HeaderValue::from_str(&text).ok()) {
        response.headers_mut().insert(NAMESPACE, namespace);
    }
    if is_head {
        *response.body_mut() = axum::body::Body::empty();
    }
    response
}

async fn answer(app: &App, request: Request) -> Answer {
    // Apart, since a body may not be looked at by two threads, and handlers wait with the head in hand.
    let (head, body) = request.into_parts();
    let mut route = route(&app.upstreams, &head)?;
    let method = head.method.clone();
    let access = guard::access(&head)?;
    let is_copy = route
        .repository_mut()
        .is_some_and(|name| app.upstreams.find(name).is_some());
    guard::authorize(access, &route, &method)?;
    let allowed = route.methods();
    if !allowed.contains(&method) {
        return Ok(not_allowed(&allowed));
    }
    check_enabled(app, &route, &method, is_copy)?;
    match (route, method) {
        (Route::Base, _) => {
            Ok(([(header::CONTENT_TYPE, "application/json")], "{}").into_response())
        }
        (Route::Catalog, _) => lists::catalog(&app.lists, access, &head).await,
        (Route::Tags { name }, _) => lists::tags(&app.lists, &name, &head).await,
        (Route::ManifestList { name }, _) => manifest_list::list(&app.lists, &name, &head).await,
        (Route::Gc, _) => {
            let is_dry = query::value(&head.uri, "dryrun").is_some_and(|value| value != "false");
            Ok(maintenance::collect(Arc::clone(&app.collector), is_dry))
        }
        (Route::Usage, _) => usage::answer(app).await,
        (Route::Scrub, method) => Ok(maintenance::scrub(&app.scrub, &method)),
        (Route::Reindex, method) => maintenance::reindex(&app.store, &method),
        (Route::Extensions, _) => Ok(Json(json!({ "extensions": [] })).into_response()),
        (Route::Referrers { name, digest }, _) => {
            referrers::list(&app.lists, &name, &digest, &head).await
        }
        (Route::Manifest { name, target }, Method::PUT) => {
            manifests::put(&app.manifests, &name, &target, &head, body).await
        }
        (Route::Manifest { name, target }, Method::DELETE) => {
            manifests::delete(&app.manifests, &name, &target, &head).await
        }
        (Route::Manifest { name, target }, _) => {
            manifests::get(&app.manifests, &name, &target, &head).await
        }
        (Route::Blob { name, digest }, Method::DELETE) => {
            blobs::delete(&app.blobs, &name, &digest, &head).await
        }
        (Route::Blob { name, digest }, _) => blobs::get(&app.blobs, &name, &digest, &head).await,
        (Route::Uploads { name }, _) => {
            uploads::start(&app.uploads, access, &name, &head, body).await
        }
        (Route::Upload { name, id }, Method::PATCH) => {
            uploads::append(&app.uploads, &name, id, &head, body).await
        }
        (Route::Upload { name, id }, Method::PUT) => {
            uploads::finish(&app.uploads, &name, id, &head, body).await
        }
        (Route::Upload { name, id }, Method::DELETE) => {
            uploads::cancel(&app.uploads, &name, id).await
        }
        (Route::Upload { name, id }, _) => uploads::status(&app.uploads, &name, id, &head).await,
    }
}

/// Refuses changes that the settings switch off.
fn check_enabled(
    app: &App,
    route: &Route,
    method: &Method,
    is_copy: bool,
) -> Result<(), RegistryError> {
    if is_copy && ![Method::GET, Method::HEAD].contains(method) {
        return Err(RegistryError::unsupported(
            "the repository is a copy of another registry's: push and delete there",
        ));
    }
    if let Some(why) = &app.read_only
        && !method.is_safe()
    {
        let message = format!("the registry is read-only: {why}");
        return Err(RegistryError::unsupported(&message));
    }
    let is_delete = *method == Method::DELETE && !matches!(route, Route::Upload { .. });
    if is_delete && !app.is_delete_enabled {
        return Err(RegistryError::unsupported(
            "deleting is switched off: REGISTRY_STORAGE_DELETE_ENABLED",
        ));
    }
    Ok(())
}

/// The route of a request. With the parameter `ns`, the repository has its local name.
fn route(upstreams: &Upstreams, head: &Parts) -> Result<Route, RegistryError> {
    let mut route = Route::of(&head.uri)?;
    if let Some(name) = route.repository_mut()
        && let Some(namespace) = query::value(&head.uri, "ns")
        && let Some(local) = upstreams.local_name(name, &namespace)
    {
        *name = local;
    }
    Ok(route)
}

fn not_allowed(allowed: &[Method]) -> Response {
    let allow: Vec<_> = allowed.iter().map(Method::as_str).collect();
    let mut response = RegistryError::unsupported("this address does not take the method").answer();
    if let Ok(value) = HeaderValue::from_str(&allow.join(", ")) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}
