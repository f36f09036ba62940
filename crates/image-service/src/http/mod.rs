//! Routes, and how answers look.

mod admission;
mod answer;
mod artifacts;
mod credentials;
mod error;
mod images;
mod range;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use model::Error;
use service::health::{self, Health};

pub(crate) use admission::Admission;

use crate::App;
use crate::content::Content;
use crate::image::CannotCustomise;

/// The whole table of routes. What is neither GET nor HEAD gets 405 from the router.
pub(crate) fn router(app: App, health: Health) -> Router {
    // Its own /health is never reached: ours comes first.
    let shared = health::routes(health.clone()).fallback(error::unknown_path);
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
fn ready(health: &Health) -> StatusCode {
    if health.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

/// Packing compresses, which takes longer than a task may hold its thread.
async fn in_background(
    compose: impl FnOnce() -> Result<Content, CannotCustomise> + Send + 'static,
) -> Result<Content, error::Answer> {
    match tokio::task::spawn_blocking(compose).await {
        Ok(content) => Ok(content?),
        Err(panic) => Err(Error::internal("customising the image", panic).into()),
    }
}
