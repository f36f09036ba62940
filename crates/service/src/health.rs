//! `/health` (the process works) and `/ready` (it can do its job), also as `/livez` and `/readyz`, as orchestrators
//! call them; and `/metrics`, by default on a listener of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// Readiness of a server: it is ready when no component is unready.
#[derive(Debug, Clone, Default)]
pub struct Health {
    waiting: Arc<Mutex<BTreeMap<String, String>>>,
    ailing: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Health {
    /// A server that is ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// Marks `component` as unready, with a reason for an operator, without secrets or addresses.
    pub fn unready(&self, component: impl Into<String>, why: impl Into<String>) {
        self.lock().insert(component.into(), why.into());
    }

    /// Marks `component` as not reached yet.
    pub fn starting(&self, component: &'static str) {
        self.unready(component, "not reached yet");
    }

    /// Marks `component` as ready.
    pub fn ready(&self, component: &str) {
        self.lock().remove(component);
    }

    /// Whether every component is ready.
    pub fn is_ready(&self) -> bool {
        self.lock().is_empty()
    }

    /// Reasons of unready components.
    pub fn waiting(&self) -> BTreeMap<String, String> {
        self.lock().clone()
    }

    /// Marks `component` as degraded: reported, but the server stays ready. Absent when it has recovered.
    pub fn ails(&self, component: impl Into<String>, why: Option<String>) {
        let mut ailing = self.ailing.lock().unwrap_or_else(PoisonError::into_inner);
        match why {
            Some(why) => ailing.insert(component.into(), why),
            None => ailing.remove(&component.into()),
        };
    }

    /// Reasons of degraded components.
    pub fn ailing(&self) -> BTreeMap<String, String> {
        let ailing = self.ailing.lock().unwrap_or_else(PoisonError::into_inner);
        ailing.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The routes every server has; `/metrics` answers 404 unless `serves_metrics`.
pub fn routes(health: Health, serves_metrics: bool) -> axum::Router {
    let metrics = if serves_metrics {
        get(metrics)
    } else {
        get(metrics_elsewhere)
    };
    axum::Router::new()
        .route("/health", get(alive))
        .route("/livez", get(alive))
        .route("/ready", get(ready))
        .route("/readyz", get(ready))
        .route("/metrics", metrics)
        .with_state(health)
}

async fn alive() -> StatusCode {
    StatusCode::OK
}

/// `GET /debug/health`: unready components by name. Source: distribution's `health` package.
pub fn debug_route(health: Health) -> axum::Router {
    axum::Router::new().route("/debug/health", get(debug).with_state(health))
}

/// The metrics at `path`.
pub fn metrics_route(path: &str) -> axum::Router {
    axum::Router::new().route(path, get(metrics))
}

async fn debug(State(health): State<Health>) -> Response {
    let waiting = health.waiting();
    if waiting.is_empty() {
        return Json(waiting).into_response();
    }
    unavailable(Json(waiting))
}

/// Value of `Retry-After`. Units: seconds.
const RETRY_AFTER: &str = "2";

/// 503 with Retry-After.
pub fn unavailable(body: impl IntoResponse) -> Response {
    let retry = [(header::RETRY_AFTER, RETRY_AFTER)];
    (StatusCode::SERVICE_UNAVAILABLE, retry, body).into_response()
}

async fn ready(State(health): State<Health>) -> Response {
    let waiting = health.waiting();
    let mut body = serde_json::json!({ "ready": waiting.is_empty(), "waiting": waiting });
    let ailing = health.ailing();
    if !ailing.is_empty() {
        body["ailing"] = serde_json::json!(ailing);
    }
    let body = Json(body);
    if waiting.is_empty() {
        return body.into_response();
    }
    unavailable(body)
}

async fn metrics() -> Response {
    match crate::metrics::render().await {
        Ok(text) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "metrics not rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn metrics_elsewhere() -> Response {
    let text = "metrics are not served on this port: set METRICS_ADDRESS, or METRICS_ON_PUBLIC_PORT=true\n";
    (StatusCode::NOT_FOUND, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn degraded_components_are_reported_and_the_server_stays_ready() {
        let health = Health::new();
        health.ails("catalog", Some("the old one is served".to_owned()));
        let response = ready(State(health.clone())).await;
        assert_eq!(response.status(), StatusCode::OK);
        let body = axum::body::to_bytes(response.into_body(), 1000).await;
        let body: serde_json::Value = serde_json::from_slice(&body.unwrap()).unwrap();
        assert_eq!(body["ailing"]["catalog"], "the old one is served");
        health.ails("catalog", None);
        assert!(health.ailing().is_empty());
        health.unready("catalog", "not there");
        for answer in [
            ready(State(health.clone())).await,
            debug(State(health)).await,
        ] {
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(answer.headers().contains_key(header::RETRY_AFTER));
        }
    }
}
