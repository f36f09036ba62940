//! State shared by handlers, and their errors.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderName, StatusCode, header};
use catalog::cache::{CatalogCache, Damaged};
use service::health::Health;

use crate::ServedCatalog;

/// State shared by handlers; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct HttpApp(pub(super) Arc<HttpState>);

#[derive(Debug)]
pub(super) struct HttpState {
    pub(super) catalogs: Vec<ListedCatalog>,
    pub(super) health: Health,
}

/// A catalog with its name and source.
#[derive(Debug)]
pub(crate) struct ListedCatalog {
    pub(crate) name: String,
    /// Source for display.
    pub(crate) source: String,
    pub(crate) catalog: ServedCatalog,
}

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HttpError {
    /// No such object.
    NotFound(&'static str),
    /// Malformed request.
    BadRequest(String),
    /// The catalog is not loaded yet.
    NotYet,
    /// Internal error: damaged cache.
    Broken,
}

impl HttpApp {
    pub(crate) fn new(catalogs: Vec<ListedCatalog>, health: Health) -> Self {
        Self(Arc::new(HttpState { catalogs, health }))
    }

    /// Errors: an unknown catalog, or one not loaded yet.
    pub(super) fn cache(&self, name: &str) -> Result<Arc<CatalogCache>, HttpError> {
        let mut catalogs = self.0.catalogs.iter();
        let listed = catalogs.find(|it| it.name == name);
        let listed = listed.ok_or(HttpError::NotFound("catalog"))?;
        listed.catalog.current().ok_or(HttpError::NotYet)
    }
}

impl HttpError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::NotYet => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// `Retry-After` for transient errors. Units: seconds.
    pub(super) fn retry_after(&self) -> Option<[(HeaderName, &'static str); 1]> {
        (*self == Self::NotYet).then_some([(header::RETRY_AFTER, "2")])
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(kind) => write!(f, "Unknown {kind}."),
            Self::BadRequest(reason) => f.write_str(reason),
            Self::NotYet => f.write_str("The catalog is loading."),
            Self::Broken => f.write_str("The catalog cannot be read."),
        }
    }
}

impl From<Damaged> for HttpError {
    fn from(_: Damaged) -> Self {
        Self::Broken
    }
}
