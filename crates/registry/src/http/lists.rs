//! Lists of tags and repositories, page by page.

use std::sync::Arc;

use axum::Json;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri, header};
use axum::response::IntoResponse;
use blob_store::ContentStore as _;
use oci::{Repository, Tag};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::headers::{Answer, UNCONFIRMED};
use super::query;
use crate::auth::{Access, Action};
use crate::error::RegistryError;
use crate::origin::Origins;
use crate::storage::Store;
use crate::upstream::Upstreams;

/// Most entries of a page that no setting bounds.
pub(super) const PAGE_LIMIT: usize = 1000;

/// State of listings.
#[derive(Debug)]
pub(super) struct ListState {
    pub(super) store: Store,
    pub(super) upstreams: Upstreams,
    pub(super) origins: Arc<Origins>,
    /// Most entries of a page of repositories.
    pub(super) catalog_limit: usize,
    /// Most entries of a page of tags.
    pub(super) tags_limit: usize,
}

pub(super) async fn tags(state: &ListState, name: &Repository, head: &Parts) -> Answer {
    let page = Page::parse(&head.uri)?;
    // Without a number all are wanted, though there be many.
    let limit = page.limit(usize::MAX - 1, state.tags_limit);
    let (tags, is_unconfirmed) = match state.upstreams.find(name) {
        Some(source) => source.tags(&page.last, limit + 1).await?,
        None => (state.store.tags(name, &page.last, limit + 1).await?, false),
    };
    let part = Part::cut(&tags, limit, Tag::as_str);
    let body = Json(json!({ "name": name, "tags": part.entries }));
    let warning = is_unconfirmed.then_some(UNCONFIRMED);
    Ok((warning, part.link(&state.origins.path(head), ""), body).into_response())
}

pub(super) async fn catalog(state: &ListState, access: &Access, head: &Parts) -> Answer {
    let page = Page::parse(&head.uri)?;
    // Clients without pagination miss the entries after that many.
    let limit = page.limit(state.catalog_limit, state.catalog_limit);
    let names = visible(&state.store, access, page.last, limit + 1, |_| true).await?;
    let part = Part::cut(&names, limit, Repository::as_str);
    let body = Json(json!({ "repositories": part.entries }));
    Ok((part.link(&state.origins.path(head), ""), body).into_response())
}

/// Up to `limit` repositories after `after` that `fit` and that the user may pull.
pub(super) async fn visible(
    store: &Store,
    access: &Access,
    mut after: String,
    limit: usize,
    fit: impl Fn(&Repository) -> bool,
) -> Result<Vec<Repository>, RegistryError> {
    let is_free = access.allows_everywhere(Action::Pull);
    let batch = if is_free { limit } else { PAGE_LIMIT };
    let mut found = Vec::new();
    loop {
        let names = store.repositories(&after, batch).await?;
        let is_end = names.len() < batch;
        if let Some(last) = names.last() {
            after = last.to_string();
        }
        let names = names.into_iter();
        found.extend(names.filter(|name| (is_free || access.lists(name)) && fit(name)));
        if is_end || found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
        // So many rows are read without waiting for anything.
        tokio::task::yield_now().await;
    }
}

/// A header with the address of another page.
pub(super) type LinkHeader = [(header::HeaderName, HeaderValue); 1];

/// Pagination parameters of a request.
#[derive(Debug)]
pub(super) struct Page {
    n: Option<usize>,
    /// Entries up to this one are not wanted.
    pub(super) last: String,
}

/// A part of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'a, T> {
    pub(super) entries: &'a [T],
    /// `last` and `n` of the page after this one.
    next: Option<(&'a str, usize)>,
}

impl Page {
    pub(super) fn parse(uri: &Uri) -> Result<Self, RegistryError> {
        let n = match query::value(uri, "n") {
            Some(text) if !text.is_empty() => {
                Some(text.parse().map_err(|_| RegistryError::page(&text))?)
            }
            _ => None,
        };
        Ok(Self {
            n,
            last: query::value(uri, "last").unwrap_or_default(),
        })
    }

    /// How many entries are answered at the most.
    pub(super) fn limit(&self, without_n: usize, most: usize) -> usize {
        self.n.map_or(without_n, |n| n.min(most))
    }
}

impl<'a, T> Part<'a, T> {
    /// Up to `limit` of the entries, which are more when there is another page.
    pub(super) fn cut(found: &'a [T], limit: usize, name: impl Fn(&'a T) -> &'a str) -> Self {
        let entries = &found[..limit.min(found.len())];
        let next = entries
            .last()
            .filter(|_| entries.len() < found.len())
            .map(|last| (name(last), limit));
        Self { entries, next }
    }

    /// The header that leads to the next page; see [`link`].
    pub(super) fn link(&self, path: &str, more: &str) -> Option<LinkHeader> {
        let (last, n) = self.next?;
        link(path, last, n, more)
    }
}

/// The header that leads to the page of `n` entries after `last`; `more` are further parameters, each with its `&`.
pub(super) fn link(path: &str, last: &str, n: usize, more: &str) -> Option<LinkHeader> {
    let last = utf8_percent_encode(last, NON_ALPHANUMERIC);
    let link = format!("<{path}?last={last}&n={n}{more}>; rel=\"next\"");
    let value = HeaderValue::from_str(&link).ok()?;
    Some([(header::LINK, value)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        let page = |query: &str| Page::parse(&format!("/x?{query}").parse().unwrap());
        for (query, limit, last) in [
            ("", 7, ""),
            ("n=", 7, ""),
            ("n=0", 0, ""),
            ("n=2&last=b%2Fc", 2, "b/c"),
            ("n=99999", PAGE_LIMIT, ""),
        ] {
            let page = page(query).unwrap();
            assert_eq!(
                (page.limit(7, PAGE_LIMIT), page.last.as_str()),
                (limit, last),
                "{query}"
            );
        }
        for wrong in ["n=-1", "n=x", "n=1.5"] {
            assert!(page(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_link_leads_on_where_there_is_more() {
        let found = ["a", "b/c", "d"];
        let cut = |limit| Part::cut(&found, limit, |name| name);
        assert_eq!(cut(2).entries, ["a", "b/c"]);
        let link = cut(2).link("/v2/_catalog", "&artifactType=x").unwrap();
        assert_eq!(
            link[0].1,
            "</v2/_catalog?last=b%2Fc&n=2&artifactType=x>; rel=\"next\""
        );
        assert!(cut(3).link("/v2/_catalog", "").is_none());
        assert!(cut(0).link("/v2/_catalog", "").is_none());
    }
}
