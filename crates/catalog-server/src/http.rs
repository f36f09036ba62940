//! What is answered to people and programs that do not speak gRPC: the query API, and the pages.

mod api;
mod page;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderName, StatusCode, header};
use catalog::cache::{CatalogCache, Damaged};
use service::health::Health;

use crate::ServedCatalog;

/// What the handlers share; clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct HttpApp(Arc<HttpState>);

#[derive(Debug)]
struct HttpState {
    catalogs: Vec<ListedCatalog>,
    health: Health,
}

/// A catalog and what it is called.
#[derive(Debug)]
pub(crate) struct ListedCatalog {
    pub(crate) name: String,
    /// Where it comes from, for people.
    pub(crate) source: String,
    pub(crate) catalog: ServedCatalog,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HttpError {
    /// There is nothing of that kind.
    NotFound(&'static str),
    /// What was asked makes no sense.
    BadRequest(String),
    /// The catalog is there, but not yet read.
    NotYet,
    /// Our fault, or the disk's.
    Broken,
}

impl HttpApp {
    pub(crate) fn new(catalogs: Vec<ListedCatalog>, health: Health) -> Self {
        Self(Arc::new(HttpState { catalogs, health }))
    }

    /// Errors: there is no such catalog, or nothing of it yet.
    fn cache(&self, name: &str) -> Result<Arc<CatalogCache>, HttpError> {
        let mut shelves = self.0.catalogs.iter();
        let shelf = shelves.find(|shelf| shelf.name == name);
        let shelf = shelf.ok_or(HttpError::NotFound("catalog"))?;
        shelf.catalog.current().ok_or(HttpError::NotYet)
    }
}

/// Every route.
pub(crate) fn router(app: HttpApp) -> Router {
    api::routes().merge(page::routes()).with_state(app)
}

impl HttpError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::NotYet => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// When to ask again, where that may change the answer.
    fn retry_after(&self) -> Option<[(HeaderName, &'static str); 1]> {
        (*self == Self::NotYet).then_some([(header::RETRY_AFTER, "2")])
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(kind) => write!(f, "There is no such {kind}."),
            Self::BadRequest(reason) => f.write_str(reason),
            Self::NotYet => f.write_str("The catalog is being read."),
            Self::Broken => f.write_str("The catalog cannot be read."),
        }
    }
}

impl From<Damaged> for HttpError {
    fn from(_: Damaged) -> Self {
        Self::Broken
    }
}
