//! Extractor of downloads that may be requested by a signed link.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::error::ApiError;
use super::extract::InCluster;
use super::query::Query;
use crate::app::ApiServer;
use crate::app::links::SentLink;

/// A download whose link is valid, if it is signed. Unsigned requests pass: callers are not authenticated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckedLink;

impl FromRequestParts<ApiServer> for CheckedLink {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &ApiServer) -> Result<Self, ApiError> {
        let Ok(query) = Query::from_request_parts(parts, app).await;
        let path = parts.uri.path().to_owned();
        let link = SentLink {
            path: &path,
            query: query.pairs(),
        };
        if link.is_signed() {
            let InCluster(id) = InCluster::from_request_parts(parts, app).await?;
            app.check_link(id, link).await?;
        }
        Ok(Self)
    }
}
