//! Referrers of a manifest: signatures, attestations, bills of materials.

use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::IntoResponse;
use blob_store::ContentStore as _;
use oci::{Digest, Referrer, Repository, media_type};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::headers::{Answer, UNCONFIRMED};
use super::lists::{ListState, PAGE_LIMIT, Page, Part};
use super::query;

/// Header: the filters that were applied. Source: distribution-spec, listing referrers.
const FILTERS_APPLIED: HeaderName = HeaderName::from_static("oci-filters-applied");
const ARTIFACT_TYPE: &str = "artifactType";

/// An index of them, empty when there is none: never 404.
pub(super) async fn list(
    state: &ListState,
    name: &Repository,
    subject: &Digest,
    head: &Parts,
) -> Answer {
    let wanted = query::values(&head.uri, ARTIFACT_TYPE);
    let page = Page::parse(&head.uri)?;
    let limit = page.limit(PAGE_LIMIT, PAGE_LIMIT);
    let (mut found, is_unconfirmed) = match state.upstreams.find(name) {
        Some(source) => source.referrers(subject).await?,
        None => (state.store.referrers(name, subject).await?, false),
    };
    found.retain(|referrer| is_wanted(referrer, &wanted));
    let found: Vec<_> = found
        .into_iter()
        .map(|referrer| (referrer.digest.to_string(), referrer))
        .filter(|(digest, _)| *digest > page.last)
        .take(limit + 1)
        .collect();
    let part = Part::cut(&found, limit, |(digest, _)| digest);
    let manifests: Vec<_> = part.entries.iter().map(|(_, referrer)| referrer).collect();
    let index = json!({
        "schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": manifests,
    });
    let mut filters = String::new();
    for value in &wanted {
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
        filters.extend(["&", ARTIFACT_TYPE, "=", &value]);
    }
    let kind = [(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type::OCI_INDEX),
    )];
    let warning = is_unconfirmed.then_some(UNCONFIRMED);
    let link = part.link(&state.origins.path(head), &filters);
    let mut response = (warning, link, kind, index.to_string()).into_response();
    if !wanted.is_empty() {
        let applied = HeaderValue::from_static(ARTIFACT_TYPE);
        response.headers_mut().insert(FILTERS_APPLIED, applied);
    }
    Ok(response)
}

fn is_wanted(referrer: &Referrer, wanted: &[String]) -> bool {
    wanted.is_empty()
        || wanted
            .iter()
            .any(|kind| referrer.artifact_type.as_deref() == Some(kind))
}
