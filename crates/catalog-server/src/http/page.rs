//! HTML pages: catalogs, packages, channels with their upgrade graphs, bundles with their images and dependencies.
//!
//! Catalogs are untrusted input: the templates escape their strings, and [`page::Shown`] bounds them.

mod bundle;
mod channel;
mod document;
mod drawing;
mod lists;
mod package;
mod route;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use catalog::content::PackageModel;
use maud::html;
use serde::Deserialize;
use service::page;

use super::app::{HttpApp, HttpError};
use document::{PageResult, SITE};
use route::PageRoute;

/// Query of a search.
#[derive(Debug, Default, Deserialize)]
struct SearchQuery {
    #[serde(default)]
    q: String,
}

pub(super) fn routes() -> Router<HttpApp> {
    let style = |headers: HeaderMap| async move { page::file(&headers, "text/css", page::STYLE) };
    let icon =
        |headers: HeaderMap| async move { page::file(&headers, "image/svg+xml", page::ICON) };
    let home = || async { (StatusCode::SEE_OTHER, [(header::LOCATION, SITE.root)]) };
    Router::new()
        .route("/", get(home))
        .route("/ui", get(home))
        .route("/ui/", get(catalogs))
        .route("/ui/style.css", get(style))
        .route("/ui/icon.svg", get(icon))
        .route("/ui/{catalog}/", get(packages))
        .route("/ui/{catalog}/package/{package}", get(package))
        .route("/ui/{catalog}/channel/{package}/{channel}", get(channel))
        .route("/ui/{catalog}/bundle/{package}/{bundle}", get(bundle))
}

async fn catalogs(State(app): State<HttpApp>, headers: HeaderMap) -> Response {
    answer(&headers, Ok(lists::catalogs(&app)))
}

async fn packages(
    State(app): State<HttpApp>,
    Path(catalog): Path<String>,
    Query(search): Query<SearchQuery>,
    headers: HeaderMap,
) -> Response {
    let shown = blocking(move || lists::packages(&app, &catalog, &search.q)).await;
    answer(&headers, shown)
}

async fn package(
    State(app): State<HttpApp>,
    Path((catalog, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let page = |catalog: &str, package: &PackageModel<'_>| Ok(package::page(catalog, package));
    let shown = package_page(app, catalog, name, page).await;
    answer(&headers, shown)
}

async fn channel(
    State(app): State<HttpApp>,
    Path((catalog, name, channel)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let page = move |catalog: &str, package: &PackageModel<'_>| {
        let channel = package.channel(&channel);
        let channel = channel.ok_or(HttpError::NotFound("channel"))?;
        Ok(channel::page(catalog, package, channel))
    };
    let shown = package_page(app, catalog, name, page).await;
    answer(&headers, shown)
}

async fn bundle(
    State(app): State<HttpApp>,
    Path((catalog, name, bundle)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let page = move |catalog: &str, package: &PackageModel<'_>| {
        let bundle = package.bundle(&bundle);
        let bundle = bundle.ok_or(HttpError::NotFound("bundle"))?;
        Ok(bundle::page(catalog, package, bundle))
    };
    let shown = package_page(app, catalog, name, page).await;
    answer(&headers, shown)
}

/// Renders a page of a package, assembled from its documents.
async fn package_page(
    app: HttpApp,
    catalog: String,
    name: String,
    page: impl FnOnce(&str, &PackageModel<'_>) -> PageResult + Send + 'static,
) -> PageResult {
    blocking(move || {
        let cache = app.cache(&catalog)?;
        let documents = cache.documents(&name)?;
        match PackageModel::assemble(&documents) {
            Ok(Some(package)) => page(&catalog, &package),
            // The package is left out, or the name is one of custom documents only.
            Ok(None) | Err(_) => Err(HttpError::NotFound("package")),
        }
    })
    .await
}

/// Runs `work` on the blocking pool: reading a large package takes milliseconds.
async fn blocking(work: impl FnOnce() -> PageResult + Send + 'static) -> PageResult {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.unwrap_or(Err(HttpError::Broken))
}

fn answer(request: &HeaderMap, shown: PageResult) -> Response {
    let refusal = match shown {
        Ok(markup) => return page::page(request, markup),
        Err(refusal) => refusal,
    };
    let title = refusal.status().canonical_reason().unwrap_or("Error");
    let text = page::framed(
        &SITE,
        title,
        &html! {},
        &html! {
            h1 { (title) }
            p { (refusal.to_string()) }
            p { a href=(PageRoute::Catalogs.path()) { "All catalogs" } }
        },
    );
    let retry_after = refusal.retry_after();
    let mut response = (refusal.status(), retry_after, text.into_string()).into_response();
    page::describe(&mut response, "text/html; charset=utf-8");
    response
}
