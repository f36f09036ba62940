//! HTTP: the query API and pages.

mod api;
mod app;
mod page;

use axum::Router;

pub(crate) use app::{HttpApp, ListedCatalog};

/// All routes.
pub(crate) fn router(app: HttpApp) -> Router {
    api::routes().merge(page::routes()).with_state(app)
}
