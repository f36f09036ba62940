//! Services of the site beside the installer API: which there are, and the catalog server's query API.

use axum::routing::{any, get};
use axum::{Json, Router};
use http::StatusCode;
use serde::Serialize;
use service::forward::{self, Forward};

use crate::settings::Settings;

/// Services that the UI shows or links to.
#[derive(Debug, Clone, Serialize)]
struct SiteServices {
    /// Whether a catalog server is configured; it may be stopped.
    catalogs: bool,
    /// URL of the registry's pages.
    registry: Option<String>,
    /// URL of the site's downloads.
    downloads: Option<String>,
}

/// Routes below `/services`.
pub(crate) fn routes(settings: &Settings, catalogs: Option<Forward>) -> Router {
    let list = SiteServices {
        catalogs: catalogs.is_some(),
        registry: settings.registry_page_url.clone(),
        downloads: settings.downloads_url.clone(),
    };
    let router = Router::new()
        .route("/", get(async || Json(list)))
        .fallback(async || StatusCode::NOT_FOUND);
    match catalogs {
        Some(catalogs) => router.merge(
            Router::new()
                .route("/catalogs", any(forward::forward))
                .route("/catalogs/{*path}", any(forward::forward))
                .with_state(catalogs),
        ),
        None => router,
    }
}
