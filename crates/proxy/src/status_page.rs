//! The status page: routes, replicas, certificates, connections and the last reload, as HTML and as JSON.
//!
//! On a loopback address: it names addresses of the site. It shows no header, no path and no request of a client.

mod html;
mod report;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderMap, header};

use crate::files::page_headers;

pub(crate) use report::{ReloadLog, ReloadOutcome, StatusSources};

/// Routes of the page.
pub(crate) fn router(sources: StatusSources) -> Router {
    Router::new()
        .route("/", get(status))
        .route("/status.json", get(json))
        .with_state(sources)
}

/// HTML for browsers, JSON for programs.
async fn status(State(sources): State<StatusSources>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/html")) {
        let page = html::page(&sources.report().await);
        return (page_headers(), page.into_string()).into_response();
    }
    json(State(sources)).await
}

async fn json(State(sources): State<StatusSources>) -> Response {
    let uncached = [(header::CACHE_CONTROL, "no-store")];
    (uncached, Json(sources.report().await)).into_response()
}
