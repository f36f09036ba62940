//! What a registry holds.

use model::Error;
use reqwest::header::LINK;
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;

use super::access::Scope;
use super::{Client, error, pull};
use crate::{Reference, Repository, Tag};

/// Units: bytes. Largest page of a listing.
const PAGE_LIMIT_BYTES: usize = 64 << 20;
/// Pages of one listing: with 1000 entries each, ten million.
const PAGES_LIMIT: usize = 10_000;

#[derive(Deserialize)]
struct Page {
    #[serde(alias = "repositories")]
    tags: Option<Vec<String>>,
}

impl Client {
    /// Every tag of a repository.
    ///
    /// Errors: NotFound – no such repository; others as [`Self::pull_manifest`].
    pub async fn tags(&self, registry: &str, repository: &Repository) -> Result<Vec<Tag>, Error> {
        let scope = Scope {
            registry: registry.to_owned(),
            repository: Some(repository.clone()),
            actions: "pull",
        };
        let path = format!("/v2/{repository}/tags/list");
        let names = self
            .pages(&scope, path, "repository", repository.as_str())
            .await?;
        names.iter().map(|name| name.parse()).collect()
    }

    /// Every repository of a registry.
    ///
    /// Errors: as [`Self::pull_manifest`].
    pub async fn catalog(&self, registry: &str) -> Result<Vec<String>, Error> {
        let scope = Scope {
            registry: registry.to_owned(),
            repository: None,
            actions: "*",
        };
        self.pages(&scope, "/v2/_catalog".to_owned(), "catalog", registry)
            .await
    }

    /// Takes a tag, or with a digest a manifest and its tags, out of the registry.
    ///
    /// Errors: NotFound; Conflict – the registry does not delete; others as [`Self::pull_manifest`].
    pub async fn delete_manifest(&self, reference: &Reference) -> Result<(), Error> {
        let path = reference.path(&format!("manifests/{}", reference.target()));
        let response = self
            .send(
                &reference.scope("delete"),
                Method::DELETE,
                &path,
                |request| request,
            )
            .await?;
        match response.status() {
            StatusCode::OK | StatusCode::ACCEPTED => Ok(()),
            _ => Err(error::refused(
                &reference.registry,
                response,
                "image",
                &reference.to_string(),
            )
            .await),
        }
    }

    async fn pages(
        &self,
        scope: &Scope,
        first: String,
        kind: &'static str,
        id: &str,
    ) -> Result<Vec<String>, Error> {
        let (mut names, mut path) = (Vec::new(), first);
        for _ in 0..PAGES_LIMIT {
            let response = self
                .send(scope, Method::GET, &path, |request| request)
                .await?;
            if response.status() != StatusCode::OK {
                return Err(error::refused(&scope.registry, response, kind, id).await);
            }
            let next = next_page(&response);
            let bytes = pull::collect(&scope.registry, response, PAGE_LIMIT_BYTES).await?;
            let page: Page = serde_json::from_slice(&bytes).map_err(|e| {
                error::strange(&scope.registry, format!("its list cannot be read: {e}"))
            })?;
            names.extend(page.tags.unwrap_or_default());
            match next {
                Some(next) => path = next,
                None => return Ok(names),
            }
        }
        Err(error::strange(&scope.registry, "its list does not end"))
    }
}

/// The target of a `Link` header with `rel="next"`, as a path or URL of the same server.
fn next_page(response: &Response) -> Option<String> {
    let link = response.headers().get(LINK)?.to_str().ok()?;
    let target = target_of(link)?;
    let url = response.url().join(target).ok()?;
    let is_same = url.origin() == response.url().origin();
    is_same.then(|| url.to_string())
}

fn target_of(link: &str) -> Option<&str> {
    let (target, rest) = link.trim_start().strip_prefix('<')?.split_once('>')?;
    let is_next = rest
        .split(';')
        .any(|parameter| matches!(parameter.trim(), r#"rel="next""# | "rel=next"));
    is_next.then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_the_next_page() {
        assert_eq!(
            target_of(r#"</v2/_catalog?last=a&n=1>; rel="next""#),
            Some("/v2/_catalog?last=a&n=1")
        );
        assert_eq!(target_of("<x>;rel=next"), Some("x"));
        for none in ["", "x", "<x", r#"<x>; rel="prev""#, "<x>"] {
            assert_eq!(target_of(none), None, "{none}");
        }
    }
}
