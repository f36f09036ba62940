//! Lists of tags and repositories, page by page.

use axum::Json;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri, header};
use axum::response::IntoResponse;
use oci::Repository;
use oci::store::BlobStore as _;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::{Answer, RegistryError, query};
use crate::app::App;

/// Most entries of a page, and of a catalog that is asked for without a number: clients that cannot page lose
/// what comes after.
const PAGE_LIMIT: usize = 1000;

pub(super) async fn tags(app: &App, name: &Repository, head: &Parts) -> Answer {
    let tags = app.store.tags(name).await?;
    let tags: Vec<&str> = tags.iter().map(oci::Tag::as_str).collect();
    let page = Page::parse(&head.uri)?.cut(&tags, usize::MAX);
    let body = Json(json!({ "name": name.as_str(), "tags": page.entries }));
    Ok((page.link(head.uri.path()), body).into_response())
}

pub(super) async fn catalog(app: &App, head: &Parts) -> Answer {
    let names = app.store.repositories().await?;
    let names: Vec<&str> = names.iter().map(Repository::as_str).collect();
    let page = Page::parse(&head.uri)?.cut(&names, PAGE_LIMIT);
    let body = Json(json!({ "repositories": page.entries }));
    Ok((page.link(head.uri.path()), body).into_response())
}

/// What a request asks for.
#[derive(Debug)]
struct Page {
    n: Option<usize>,
    last: String,
}

/// A part of a list.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    entries: &'a [&'a str],
    /// `last` and `n` of the page after this one.
    next: Option<(&'a str, usize)>,
}

impl Page {
    fn parse(uri: &Uri) -> Result<Self, RegistryError> {
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

    /// The entries strictly after `last`, which need not be one, of a list sorted by bytes.
    fn cut<'a>(&self, sorted: &'a [&'a str], without_n: usize) -> Part<'a> {
        let start =
            sorted.partition_point(|entry| *entry <= self.last.as_str() && !self.last.is_empty());
        let n = self.n.map_or(without_n, |n| n.min(PAGE_LIMIT));
        let rest = &sorted[start..];
        let entries = &rest[..n.min(rest.len())];
        let next = entries
            .last()
            .filter(|_| entries.len() < rest.len())
            .map(|last| (*last, n));
        Part { entries, next }
    }
}

impl Part<'_> {
    fn link(&self, path: &str) -> Option<[(header::HeaderName, HeaderValue); 1]> {
        let (last, n) = self.next?;
        let last = utf8_percent_encode(last, NON_ALPHANUMERIC);
        let link = format!("<{path}?last={last}&n={n}>; rel=\"next\"");
        HeaderValue::from_str(&link)
            .ok()
            .map(|value| [(header::LINK, value)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(query: &str) -> Page {
        Page::parse(&format!("/x?{query}").parse().unwrap()).unwrap()
    }

    #[test]
    fn pages() {
        let list = ["a", "b/c", "d"];
        assert_eq!(
            page("").cut(&list, 10),
            Part {
                entries: &list,
                next: None
            }
        );
        assert_eq!(
            page("").cut(&list, 2),
            Part {
                entries: &list[..2],
                next: Some(("b/c", 2))
            }
        );
        assert_eq!(
            page("n=0").cut(&list, 10),
            Part {
                entries: &[],
                next: None
            }
        );
        assert_eq!(
            page("n=2").cut(&list, 10),
            Part {
                entries: &list[..2],
                next: Some(("b/c", 2))
            }
        );
        assert_eq!(
            page("n=2&last=b%2Fc").cut(&list, 10),
            Part {
                entries: &list[2..],
                next: None
            }
        );
        assert_eq!(
            page("last=b").cut(&list, 10),
            Part {
                entries: &list[1..],
                next: None
            }
        );
        assert_eq!(
            page("last=z").cut(&list, 10),
            Part {
                entries: &[],
                next: None
            }
        );
        let link = page("n=2").cut(&list, 10).link("/v2/_catalog").unwrap();
        assert_eq!(link[0].1, "</v2/_catalog?last=b%2Fc&n=2>; rel=\"next\"");
        for wrong in ["n=-1", "n=x", "n=1.5"] {
            assert!(Page::parse(&format!("/x?{wrong}").parse().unwrap()).is_err());
        }
    }

    proptest! {
        #[test]
        fn pages_make_up_the_list(list in prop::collection::btree_set("[a-c/]{1,6}", 0..20), n in 1_usize..5) {
            let list: Vec<&str> = list.iter().map(String::as_str).collect();
            let (mut seen, mut last) = (Vec::new(), String::new());
            loop {
                let part = Page { n: Some(n), last: last.clone() };
                let part = part.cut(&list, 100);
                seen.extend_from_slice(part.entries);
                match part.next {
                    Some((next, _)) => last = next.to_owned(),
                    None => break,
                }
            }
            prop_assert_eq!(&seen, &list);
        }
    }
}
