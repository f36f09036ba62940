//! Listings: tags, catalog, referrers, and deletion.

use model::Error;
use reqwest::header::LINK;
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::addresses::{Addresses as _, Scope};
use super::body::collect;
use super::{Client, error, origin};
use crate::mirrors::RequestKind;
use oci::{Digest, Reference, Referrer, Tag};

/// Units: bytes. Limit of all pages of a listing, with some million names.
const LIST_LIMIT_BYTES: usize = 64 << 20;
/// Limit of pages of one listing: some servers put a hundred entries on each.
const PAGES_LIMIT: usize = 10_000;

/// A page of a listing.
trait ListPage: DeserializeOwned {
    type Entry;

    fn entries(self) -> Vec<Self::Entry>;
}

#[derive(Deserialize)]
struct RepositoryList {
    #[serde(alias = "repositories")]
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Referrers {
    manifests: Option<Vec<Referrer>>,
}

impl ListPage for RepositoryList {
    type Entry = String;

    fn entries(self) -> Vec<String> {
        self.tags.unwrap_or_default()
    }
}

impl ListPage for Referrers {
    type Entry = Referrer;

    fn entries(self) -> Vec<Referrer> {
        self.manifests.unwrap_or_default()
    }
}

impl Client {
    /// Every tag of the repository of `reference`.
    ///
    /// Errors: NotFound – no such repository; others as [`Self::pull_manifest`].
    pub async fn tags(&self, reference: &Reference) -> Result<Vec<Tag>, Error> {
        let tags = self.tags_within(reference, PAGES_LIMIT).await?;
        let endless = || error::protocol_error(&reference.registry, "its list does not end");
        tags.ok_or_else(endless)
    }

    /// Every tag of the repository of `reference`, or `None` when the registry needs more than `pages` pages.
    ///
    /// Errors: as [`Self::tags`].
    pub async fn tags_within(
        &self,
        reference: &Reference,
        pages: usize,
    ) -> Result<Option<Vec<Tag>>, Error> {
        if let Some(local) = self.local(reference) {
            return local.tags().await.map(Some);
        }
        let mut places = self.places(reference, RequestKind::Rest)?;
        let names = loop {
            let place = places.current();
            let (scope, path) = (place.scope("pull"), place.path("tags/list"));
            let id = place.repository.as_str();
            let listed = self.pages::<RepositoryList>(&scope, path, "repository", id, pages);
            match listed.await {
                Ok(names) => break names,
                Err(error) => places.pass(error)?,
            }
        };
        let parsed = |names: Vec<String>| names.iter().map(|name| name.parse()).collect();
        names.map(parsed).transpose()
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
        let path = "/v2/_catalog".to_owned();
        let names = self
            .pages::<RepositoryList>(&scope, path, "catalog", registry, PAGES_LIMIT)
            .await?;
        names.ok_or_else(|| error::protocol_error(registry, "its list does not end"))
    }

    /// Deletes a tag, or with a digest a manifest and its tags.
    ///
    /// Errors: NotFound; Conflict – deletion is disabled; others as [`Self::pull_manifest`].
    pub async fn delete_manifest(&self, reference: &Reference) -> Result<(), Error> {
        if let Some(local) = self.local(reference) {
            return local.delete().await;
        }
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
            _ => Err(error::image_refused(reference, response).await),
        }
    }

    /// The referrers of `subject` in the repository of `reference`, by the referrers API or else by the referrers tag
    /// schema.
    ///
    /// Errors: as [`Self::pull_manifest`].
    pub async fn referrers(
        &self,
        reference: &Reference,
        subject: &Digest,
    ) -> Result<Vec<Referrer>, Error> {
        if let Some(listed) = self.listed_referrers(reference, subject).await? {
            return Ok(listed);
        }
        let index = Reference {
            tag: Some(referrers_tag(subject)?),
            digest: None,
            ..reference.clone()
        };
        match self.pull_manifest(&index).await {
            Ok(manifest) => serde_json::from_slice::<Referrers>(&manifest.bytes)
                .map(ListPage::entries)
                .map_err(|e| unreadable(&reference.scope("pull").place(), &e)),
            Err(Error::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The referrers of `subject` in the repository of `reference` by the referrers API; `None` without the API.
    ///
    /// Errors: as [`Self::pull_manifest`].
    pub async fn listed_referrers(
        &self,
        reference: &Reference,
        subject: &Digest,
    ) -> Result<Option<Vec<Referrer>>, Error> {
        if reference.registry.folder().is_some() {
            return Ok(None);
        }
        let what = format!("referrers/{subject}");
        let mut places = self.places(reference, RequestKind::Rest)?;
        loop {
            let place = places.current();
            let (scope, path) = (place.scope("pull"), place.path(&what));
            let id = place.blob_id(subject);
            let listed = self.pages::<Referrers>(&scope, path, "subject", &id, PAGES_LIMIT);
            let passed = match listed.await {
                Ok(Some(listed)) => return Ok(Some(listed)),
                Ok(None) => places.pass(error::protocol_error(
                    scope.place(),
                    "its list does not end",
                )),
                Err(error) => places.pass(error),
            };
            match passed {
                Ok(()) => {}
                Err(Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// All pages; `None` beyond `limit` pages. Errors: TooLarge – beyond the total size.
    async fn pages<P: ListPage>(
        &self,
        scope: &Scope,
        first: String,
        kind: &'static str,
        id: &str,
        limit: usize,
    ) -> Result<Option<Vec<P::Entry>>, Error> {
        let (mut found, mut path, mut size) = (Vec::new(), first, 0);
        for _ in 0..limit {
            let response = self
                .send(scope, Method::GET, &path, |request| request)
                .await?;
            if response.status() != StatusCode::OK {
                return Err(error::refused(&scope.registry, response, kind, id).await);
            }
            let next = next_page(&response);
            let bytes = collect(&scope.place(), response, LIST_LIMIT_BYTES).await?;
            size += bytes.len();
            if size > LIST_LIMIT_BYTES {
                return Err(Error::TooLarge {
                    what: "the registry's list",
                    limit: LIST_LIMIT_BYTES as u64,
                });
            }
            let page: P =
                serde_json::from_slice(&bytes).map_err(|e| unreadable(&scope.place(), &e))?;
            found.extend(page.entries());
            match next {
                Some(next) => path = next,
                None => return Ok(Some(found)),
            }
        }
        Ok(None)
    }
}

/// The tag of the list of referrers on registries without the referrers API.
///
/// Errors: Invalid – the digest is too long for a tag. Source: distribution-spec, referrers tag schema.
pub fn referrers_tag(subject: &Digest) -> Result<Tag, Error> {
    let (algorithm, hex) = (subject.algorithm().as_str(), subject.hex());
    format!("{algorithm}-{}", &hex[..hex.len().min(64)]).parse()
}

fn unreadable(place: &str, error: &serde_json::Error) -> Error {
    error::protocol_error(place, format!("its list cannot be read: {error}"))
}

/// The target of a `Link` header with `rel="next"`, as a path or URL of the same server.
fn next_page(response: &Response) -> Option<String> {
    let link = response.headers().get(LINK)?.to_str().ok()?;
    let target = target_of(link)?;
    origin::same_server(response.url(), target).map(String::from)
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
