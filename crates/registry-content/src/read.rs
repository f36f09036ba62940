//! Reading of a registry: all repositories, or those that changed.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use oci::{Reference, Registry};
use oci_client::Client;
use semver::Version;

use crate::payload::{Candidate, PayloadReader, is_closed};
use crate::tag::release_of;
use crate::{HeldRelease, RegistryContent, RejectedImage};

/// Repositories whose tags are listed at a time.
const CONCURRENT: usize = 8;
/// Pages of tags that a repository of releases has at most.
const TAG_PAGES: usize = 100;
/// Candidates of a registry at most, the newest ones. A release has one for each architecture.
const MAX_CANDIDATES: usize = 1_000;

/// Reader of the content of a registry.
#[derive(Debug)]
pub struct ContentReader {
    /// Client with a login that may list and pull.
    pub client: Client,
    /// The registry.
    pub registry: Registry,
    /// Repositories below it are read; empty for all.
    pub namespace: String,
}

impl ContentReader {
    /// Reads the registry. Releases in `known` are not read again while their tags have the same digest; the images that
    /// they lack are looked for again, and rejected images are read again.
    ///
    /// Errors: those of the registry.
    pub async fn read(&self, known: &RegistryContent) -> Result<RegistryContent, Error> {
        let host = self.registry.to_string();
        let mut repositories = self.client.catalog(&host).await?;
        repositories.retain(|name| self.is_inside(name));
        let known = RegistryContent {
            rejected: Vec::new(),
            ..known.clone()
        };
        self.read_repositories(&known, &repositories.into_iter().collect())
            .await
    }

    /// Reads these repositories alone; releases of others stay as they are known, but for the images that they lack.
    ///
    /// Errors: those of the registry.
    pub async fn read_changed(
        &self,
        known: &RegistryContent,
        changed: &BTreeSet<String>,
    ) -> Result<RegistryContent, Error> {
        let mut repositories: BTreeSet<String> = changed.clone();
        repositories.retain(|name| self.is_inside(name));
        let own = known.releases.iter().map(|release| &release.image);
        let own = own.chain(known.rejected.iter().map(|image| &image.image));
        let of = |image: &String| Some(image.parse::<Reference>().ok()?.repository.to_string());
        let others: BTreeSet<String> = own.filter_map(of).collect();
        repositories.extend(others);
        self.read_repositories(known, &repositories).await
    }

    fn is_inside(&self, repository: &str) -> bool {
        let rest = repository.strip_prefix(self.namespace.as_str());
        self.namespace.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
    }

    async fn read_repositories(
        &self,
        known: &RegistryContent,
        repositories: &BTreeSet<String>,
    ) -> Result<RegistryContent, Error> {
        let listed = repositories.iter().map(|name| self.candidates(name));
        let listed: Vec<_> = listed.collect();
        let listed: Vec<Vec<_>> = stream::iter(listed)
            .buffered(CONCURRENT)
            .try_collect()
            .await?;
        let mut candidates = listed.concat();
        candidates.sort_by(|a, b| (&b.0, &b.1.image).cmp(&(&a.0, &a.1.image)));
        candidates.truncate(MAX_CANDIDATES);
        candidates.reverse();
        let known_releases: BTreeMap<&str, &HeldRelease> = known
            .releases
            .iter()
            .map(|release| (release.image.as_str(), release))
            .collect();
        let mut content = RegistryContent::default();
        let mut seen = BTreeSet::new();
        for (_, mut candidate) in candidates {
            let digest = self.client.manifest_digest(&candidate.image).await?;
            // Deleted meanwhile.
            let Some(digest) = digest else { continue };
            candidate.digest = digest.to_string();
            // A release in two namespaces is one.
            if !seen.insert((candidate.digest.clone(), candidate.architecture.to_string())) {
                continue;
            }
            let image = candidate.image.to_string();
            let before = known_releases.get(image.as_str());
            let before = before.filter(|release| release.digest == candidate.digest);
            let rejected = |it: &&RejectedImage| it.image == image && it.digest == candidate.digest;
            if let Some(rejected) = known.rejected.iter().find(rejected) {
                content.rejected.push(rejected.clone());
                continue;
            }
            match self.release(&candidate, before.copied()).await {
                Ok(release) => content.releases.push(release),
                // Of this image alone; the registry answers.
                Err(error @ (Error::Invalid { .. } | Error::NotFound { .. })) => {
                    content.rejected.push(RejectedImage {
                        image,
                        digest: candidate.digest,
                        reason: error.chain(),
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(content)
    }

    async fn release(
        &self,
        candidate: &Candidate,
        known: Option<&HeldRelease>,
    ) -> Result<HeldRelease, Error> {
        let reader = PayloadReader {
            client: &self.client,
            namespace: &self.namespace,
        };
        match known {
            None => reader.release(candidate).await,
            Some(known) if known.missing.is_empty() => Ok(known.clone()),
            Some(known) => {
                let missing = known.missing.clone();
                let sought = reader.sought(&candidate.image, missing).await?;
                if sought.missing == known.missing {
                    return Ok(known.clone());
                }
                // Its boot images may be there now.
                reader.release(candidate).await
            }
        }
    }

    /// Images of a repository with tags of releases.
    async fn candidates(&self, repository: &str) -> Result<Vec<(Version, Candidate)>, Error> {
        let place = format!("{}/{repository}", self.registry);
        // A name that no tool could pull.
        let Ok(place) = place.parse::<Reference>() else {
            return Ok(Vec::new());
        };
        let tags = match self.client.tags_within(&place, TAG_PAGES).await {
            Ok(tags) => tags.unwrap_or_default(),
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) if is_closed(&error) => Vec::new(),
            Err(error) => return Err(error),
        };
        let found = tags.into_iter().filter_map(|tag| {
            let (version, architecture) = release_of(tag.as_str())?;
            let candidate = Candidate {
                version: version.to_string(),
                architecture,
                digest: String::new(),
                image: Reference {
                    tag: Some(tag),
                    ..place.clone()
                },
            };
            Some((version, candidate))
        });
        Ok(found.collect())
    }
}
