//! Routes, and how answers look.

mod admission;
mod answer;
mod artifacts;
mod credentials;
mod error;
mod images;
mod packing;
mod range;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use service::health::{self, Health};

pub(crate) use admission::{Admission, LONGEST_WAIT};
pub(crate) use packing::Packing;

use crate::App;

/// The whole table of routes. What is neither GET nor HEAD gets 405 from the router.
pub(crate) fn router(app: App, health: Health, serves_metrics: bool) -> Router {
    // Its own /health is never reached: ours comes first.
    let shared = health::routes(health.clone(), serves_metrics).fallback(error::unknown_path);
    Router::new()
        .route(
            "/byid/{image_id}/{version}/{arch}/{filename}",
            get(images::by_id),
        )
        .route(
            "/byapikey/{api_key}/{version}/{arch}/{filename}",
            get(images::by_api_key),
        )
        .route(
            "/bytoken/{token}/{version}/{arch}/{filename}",
            get(images::by_token),
        )
        .route("/images/{image_id}", get(images::by_query))
        .route("/images/{image_id}/pxe-initrd", get(artifacts::pxe_initrd))
        .route("/boot-artifacts/{name}", get(artifacts::boot_artifact))
        .with_state(app)
        .route("/live", get(|| async { StatusCode::OK }))
        .route("/health", get(move || async move { ready(&health) }))
        .fallback_service(shared)
}

/// Says without a body whether images can be had, as probes of existing deployments ask it.
fn ready(health: &Health) -> Response {
    if health.is_ready() {
        StatusCode::OK.into_response()
    } else {
        health::unavailable(())
    }
}
