//! Routes.

mod app;
mod boot_artifacts;
pub(crate) mod composed;
mod cors;
mod credentials;
mod error;
mod images;
mod measurements;
mod recipe;
mod recipes;
mod response;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use service::health::{self, Health};

pub(crate) use app::ImageApp;
pub(crate) use measurements::declare;

use crate::Settings;
use crate::catalog::ImageCatalog;
use crate::installer_api::RequestCredentials;

const BY_ID: &str = "/byid/{image_id}/{version}/{arch}/{filename}";
const BY_API_KEY: &str = "/byapikey/{image_id}/{version}/{arch}/{filename}";
const BY_TOKEN: &str = "/bytoken/{image_id}/{version}/{arch}/{filename}";

/// A route below that of an image.
fn of(route: &str) -> String {
    format!("{route}/{{of}}")
}

/// All routes. Other methods than GET and HEAD get 405 from the router; assisted-image-service streams to any method.
pub(crate) fn router(app: ImageApp, health: Health, settings: &Settings) -> Router {
    let catalog = Arc::clone(&app.catalog);
    // The route /health below precedes the shared one.
    let serves_metrics = settings.http.metrics_on_public_port;
    let shared = health::routes(health.clone(), serves_metrics).fallback(error::unknown_path);
    let by_api_key = images::by_token(RequestCredentials::ApiKey);
    let by_token = images::by_token(RequestCredentials::ImageToken);
    let images = Router::new()
        .route(BY_ID, get(images::by_id))
        .route(BY_API_KEY, by_api_key.clone())
        .route(BY_TOKEN, by_token.clone())
        .route(&of(BY_ID), get(images::by_id))
        .route(&of(BY_API_KEY), by_api_key)
        .route(&of(BY_TOKEN), by_token)
        .route("/images/{image_id}", get(images::by_query))
        .route(
            "/images/{image_id}/pxe-initrd",
            get(boot_artifacts::pxe_initrd),
        )
        .route(
            "/images/{image_id}/s390x-initrd-addrsize",
            get(boot_artifacts::initrd_addrsize),
        )
        .route("/boot-artifacts/{name}", get(boot_artifacts::boot_artifact))
        .route("/recipes/{digest}", get(recipes::recipe))
        .route("/recipes/{digest}/{name}", get(recipes::file))
        .with_state(app);
    cors::allow(measurements::measured(images), &settings.allowed_domains)
        .route("/live", get(|| async { StatusCode::OK }))
        .route(
            "/health",
            get(move || async move { ready(&health, &catalog) }),
        )
        .fallback_service(shared)
}

/// Readiness as a status, for probes of deployments; for people, the progress of downloads. Source: `/health` of
/// assisted-image-service.
fn ready(health: &Health, catalog: &ImageCatalog) -> Response {
    if health.is_ready() {
        return StatusCode::OK.into_response();
    }
    let waiting = catalog.waiting().into_iter();
    health::unavailable(waiting.map(|image| image + "\n").collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_routes_are_masked() {
        for route in [BY_API_KEY, BY_TOKEN] {
            let path = route.replace("{image_id}", "s3cret");
            let masked = net::masks::masked(&path);
            assert_eq!(masked, route.replace("{image_id}", net::masks::HIDDEN));
            assert_eq!(net::masks::masked(&of(&path)), of(&masked));
        }
    }
}
