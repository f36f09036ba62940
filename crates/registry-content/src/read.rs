//! Reading of a registry: all repositories, or those that changed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

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
/// Readings by turns of which one asks for a thing that nothing says to have changed: with one an hour, every two days.
const ROUND: u64 = 48;
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

/// Earlier readings of a registry: spares most of the next one.
#[derive(Debug, Default)]
pub struct EarlierReadings {
    /// Number of readings.
    count: u64,
    /// Repositories without tags of releases.
    plain: BTreeSet<String>,
}

impl EarlierReadings {
    /// These repositories have changed.
    pub fn forget<'a>(&mut self, repositories: impl IntoIterator<Item = &'a String>) {
        for repository in repositories {
            self.plain.remove(repository);
        }
    }

    /// Whether the next reading asks for it, although nothing says that it has changed: the first one for all.
    fn is_due(&self, name: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        self.count == 0 || hasher.finish() % ROUND == self.count % ROUND
    }
}

/// Repositories of the releases, and of the images that are left out.
fn repositories(content: &RegistryContent) -> BTreeSet<String> {
    let images = content.releases.iter().map(|release| &release.image);
    let images = images.chain(content.rejected.iter().map(|image| &image.image));
    let of = |image: &String| Some(image.parse::<Reference>().ok()?.repository.to_string());
    images.filter_map(of).collect()
}

impl ContentReader {
    /// Reads the registry: repositories that are new or have releases, and by turns those without any. Releases in `known`
    /// are not read again while their tags have the same digest, for which by turns is asked, too; the images that they
    /// lack are looked for each time.
    ///
    /// Errors: those of the registry.
    pub async fn read(
        &self,
        known: &RegistryContent,
        earlier: &mut EarlierReadings,
    ) -> Result<RegistryContent, Error> {
        let host = self.registry.to_string();
        let mut all = self.client.catalog(&host).await?;
        all.retain(|name| self.is_inside(name));
        let all: BTreeSet<String> = all.into_iter().collect();
        let held = repositories(known);
        let is_asked = |name: &&String| {
            !earlier.plain.contains(*name) || held.contains(*name) || earlier.is_due(name)
        };
        let asked: BTreeSet<String> = all.iter().filter(is_asked).cloned().collect();
        let candidates = self.all_candidates(&asked).await?;
        let mut known = known.clone();
        known.rejected.retain(|it| !earlier.is_due(&it.image));
        let is_due = |image: &Reference| earlier.is_due(&image.to_string());
        let content = self.content(&known, candidates.clone(), is_due).await?;
        let of_releases = candidates
            .iter()
            .map(|(_, it)| it.image.repository.to_string());
        let of_releases: BTreeSet<String> = of_releases.collect();
        *earlier = EarlierReadings {
            count: earlier.count + 1,
            plain: &all - &of_releases,
        };
        Ok(content)
    }

    /// Reads these repositories alone; releases of others stay as they are known, but for the images that they lack.
    ///
    /// Errors: those of the registry.
    pub async fn read_changed(
        &self,
        known: &RegistryContent,
        changed: &BTreeSet<String>,
    ) -> Result<RegistryContent, Error> {
        let mut asked: BTreeSet<String> = changed.clone();
        asked.retain(|name| self.is_inside(name));
        asked.extend(repositories(known));
        let candidates = self.all_candidates(&asked).await?;
        let has_changed = |image: &Reference| changed.contains(&image.repository.to_string());
        self.content(known, candidates, has_changed).await
    }

    fn is_inside(&self, repository: &str) -> bool {
        let rest = repository.strip_prefix(self.namespace.as_str());
        self.namespace.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
    }

    async fn all_candidates(
        &self,
        repositories: &BTreeSet<String>,
    ) -> Result<Vec<(Version, Candidate)>, Error> {
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
        Ok(candidates)
    }

    /// The content, if `candidates` are all. A known digest is believed, but for those that are `due`.
    async fn content(
        &self,
        known: &RegistryContent,
        candidates: Vec<(Version, Candidate)>,
        is_due: impl Fn(&Reference) -> bool,
    ) -> Result<RegistryContent, Error> {
        let releases = known.releases.iter();
        let releases = releases.map(|release| (release.image.as_str(), release));
        let releases: BTreeMap<&str, &HeldRelease> = releases.collect();
        let rejected = known.rejected.iter();
        let rejected = rejected.map(|rejected| (rejected.image.as_str(), rejected));
        let rejected: BTreeMap<&str, &RejectedImage> = rejected.collect();
        let mut content = RegistryContent::default();
        let mut seen = BTreeSet::new();
        for (_, mut candidate) in candidates {
            let image = candidate.image.to_string();
            let release = releases.get(image.as_str()).copied();
            let reject = rejected.get(image.as_str()).copied();
            let digest = release.map(|it| &it.digest).or(reject.map(|it| &it.digest));
            candidate.digest = match digest.filter(|_| !is_due(&candidate.image)) {
                Some(digest) => digest.clone(),
                None => match self.client.manifest_digest(&candidate.image).await? {
                    Some(digest) => digest.to_string(),
                    // Deleted meanwhile.
                    None => continue,
                },
            };
            // A release in two namespaces is one.
            if !seen.insert((candidate.digest.clone(), candidate.architecture.to_string())) {
                continue;
            }
            if let Some(reject) = reject.filter(|it| it.digest == candidate.digest) {
                content.rejected.push(reject.clone());
                continue;
            }
            let release = release.filter(|release| release.digest == candidate.digest);
            match self.release(&candidate, release).await {
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
