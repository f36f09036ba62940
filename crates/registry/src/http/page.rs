//! HTML pages for browsers: repositories, tags, manifests and their content, blobs and their dependents.
//!
//! Rendered here, without scripts. Pushed content is text and nothing else: the templates escape, and
//! [`page::Shown`] bounds it.

mod blob;
mod config;
mod contents;
mod describe;
mod html;
mod manifest;
mod repositories;
mod repository;
mod route;
mod tags;
mod visit;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use service::page;

use super::guard::{self, Guard};
use super::headers::Answer;
use super::state::App;
use crate::auth::{Access, Action, Credentials, Gate};
use crate::error::RegistryError;
use crate::origin::Origins;
use crate::storage::Store;
use route::View;
use visit::{ROOT, Visit};

#[derive(Debug, Clone)]
struct Pages {
    store: Store,
    origins: Arc<Origins>,
    /// Whether there is anybody to log in as.
    has_users: bool,
}

/// Every page behind `gate`, if there is one.
pub(super) fn routes(app: &App, gate: Option<&Gate>) -> Router {
    let pages = Pages {
        store: app.store.clone(),
        origins: Arc::clone(&app.origins),
        has_users: matches!(gate, Some(Gate::Users(_))),
    };
    let routes = Router::new()
        .route("/", get(visited))
        .route(ROOT, get(visited))
        .route("/ui/{*path}", get(visited))
        .with_state(pages);
    let routes = match gate {
        None => routes.layer(Extension(Access::open())),
        Some(gate) => {
            let guard = Guard::new(app, gate.clone());
            routes.layer(middleware::from_fn_with_state(guard, check_visitor))
        }
    };
    routes
        .route(
            "/ui",
            get(async || (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, ROOT)])),
        )
        .layer(middleware::from_fn(browsers_only))
}

/// Requests for the root that accept no page are health checks of load balancers.
async fn browsers_only(request: Request, next: Next) -> Response {
    if request.uri().path() != "/" {
        return next.run(request).await;
    }
    let mut response = if wants_page(request.headers()) {
        next.run(request).await
    } else {
        StatusCode::OK.into_response()
    };
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().append(header::VARY, vary);
    response
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/html")
}

/// [`guard::check`] for people: all that browsers know are passwords.
async fn check_visitor(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let credentials = Credentials::of(&head.headers);
    let response = match guard.gate.admit(credentials, guard::address(&head)).await {
        Ok(access) => {
            let name = access.name();
            head.extensions.insert(access);
            guard::signed(next.run(Request::from_parts(head, body)).await, name)
        }
        Err(refusal) => html::refused(refusal),
    };
    guard::challenged(response, guard.gate.basic())
}

async fn visited(State(pages): State<Pages>, request: Request) -> Response {
    let head = request.into_parts().0;
    let shown = match guard::access(&head) {
        Ok(access) => {
            let visit = Visit {
                store: &pages.store,
                origins: &pages.origins,
                access,
                head: &head,
                may_log_in: pages.has_users && access.user().is_none(),
            };
            show(visit).await
        }
        Err(error) => Err(error),
    };
    shown.unwrap_or_else(html::refused)
}

async fn show(visit: Visit<'_>) -> Answer {
    let view = View::parse(visit.head.uri.path())?;
    if let Some(repository) = view.repository() {
        visit.access.demand(repository, Action::Pull)?;
    }
    let shown = match &view {
        View::Style => {
            return Ok(page::file(&visit.head.headers, "text/css", page::STYLE));
        }
        View::Icon => {
            return Ok(page::file(&visit.head.headers, "image/svg+xml", page::ICON));
        }
        // Where anonymous visitors are allowed, browsers send no password without a challenge.
        View::LogIn if visit.may_log_in => return Err(RegistryError::unauthorized()),
        View::LogIn => {
            return Ok((StatusCode::SEE_OTHER, [(header::LOCATION, ROOT)]).into_response());
        }
        View::Repositories => repositories::page(visit).await,
        View::Repository(name) => repository::page(visit, name).await,
        View::Manifest(name, target) => manifest::page(visit, name, target).await,
        View::Blob(name, digest) => blob::page(visit, name, digest).await,
    };
    Ok(page::page(&visit.head.headers, shown?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_browsers_want_a_page() {
        let wants = |accept: &'static str| {
            let value = HeaderValue::from_static(accept);
            wants_page(&HeaderMap::from_iter([(header::ACCEPT, value)]))
        };
        assert!(wants("text/html,application/xhtml+xml,*/*;q=0.8"));
        assert!(wants("application/json, text/html;q=0.5"));
        for other in ["*/*", "application/json", "text/htmlx", ""] {
            assert!(!wants(other), "{other}");
        }
        assert!(!wants_page(&HeaderMap::new()));
    }
}
