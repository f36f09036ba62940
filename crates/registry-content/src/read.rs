//! Reading of a registry: all repositories, or those that changed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use oci::artifact_tag::signed;
use oci::live_image;
use oci::{Digest, Reference, Registry, Repository};
use oci_client::Client;
use semver::Version;

use crate::catalogs::{CatalogReader, platform_version};
use crate::live_images::{self, MAX_LIVE_IMAGES};
use crate::payload::{Candidate, PayloadReader, is_closed};
use crate::tag::release_of;
use crate::{RegistryContent, RejectedImage};

/// Repositories whose tags are listed at a time.
const CONCURRENT: usize = 8;
/// Pages of tags that a repository of releases has at most.
const TAG_PAGES: usize = 100;
/// Readings by turns of which one asks for a thing that nothing says to have changed: with one an hour, every two days.
const ROUND: u64 = 48;
/// Catalogs of a registry at most.
const MAX_CATALOGS: usize = 100;
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
    /// Folder for the files of one catalog at a time. It is emptied, and removed.
    pub scratch: PathBuf,
}

/// Images whose tags are those of releases, of catalogs or of live images.
#[derive(Debug, Default)]
struct TaggedImages {
    releases: Vec<(Version, Candidate)>,
    /// With the version of the platform.
    catalogs: Vec<(String, Reference)>,
    live_images: Vec<Reference>,
    /// Images in repositories of releases that have a signature, by digest.
    signed: BTreeSet<Reference>,
}

impl TaggedImages {
    fn repositories(&self) -> BTreeSet<String> {
        let releases = self.releases.iter().map(|(_, it)| &it.image);
        let images = releases.chain(self.catalogs.iter().map(|(_, image)| image));
        let images = images.chain(&self.live_images);
        images.map(|image| image.repository.to_string()).collect()
    }
}

/// Earlier readings of a registry: spares most of the next one.
#[derive(Debug, Default)]
pub struct EarlierReadings {
    /// Number of readings.
    count: u64,
    /// Repositories without tags of releases, catalogs and live images.
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

/// Repositories of all known images.
fn repositories(content: &RegistryContent) -> BTreeSet<String> {
    let images = content.releases.iter().map(|release| &release.image);
    let images = images.chain(content.rejected.iter().map(|image| &image.image));
    let images = images.chain(content.catalogs.iter().map(|catalog| &catalog.image));
    let images = images.chain(content.live_images.keys());
    let images = images.chain(content.others.keys());
    let of = |image: &String| Some(image.parse::<Reference>().ok()?.repository.to_string());
    images.filter_map(of).collect()
}

impl ContentReader {
    /// Reads the registry: repositories that are new or have releases, catalogs or live images, and by turns the others.
    /// Images in `known` are not read again while their tags have the same digest, for which by turns is asked, too; the
    /// images that they lack are looked for each time, those of catalogs in repositories that are there.
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
        let tagged = self.tagged(&asked).await?;
        let of_interest = tagged.repositories();
        let mut known = known.clone();
        known.rejected.retain(|it| !earlier.is_due(&it.image));
        let is_due = |image: &Reference| earlier.is_due(&image.to_string());
        let content = self.content(&known, tagged, &all, is_due).await?;
        *earlier = EarlierReadings {
            count: earlier.count + 1,
            plain: &all - &of_interest,
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
        let tagged = self.tagged(&asked).await?;
        let has_changed = |image: &Reference| changed.contains(&image.repository.to_string());
        self.content(known, tagged, changed, has_changed).await
    }

    fn is_inside(&self, repository: &str) -> bool {
        let rest = repository.strip_prefix(self.namespace.as_str());
        self.namespace.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
    }

    async fn tagged(&self, repositories: &BTreeSet<String>) -> Result<TaggedImages, Error> {
        let listed = repositories.iter().map(|name| self.tagged_in(name));
        let listed: Vec<_> = listed.collect();
        let mut listed = stream::iter(listed).buffered(CONCURRENT);
        let mut tagged = TaggedImages::default();
        while let Some(more) = listed.try_next().await? {
            tagged.releases.extend(more.releases);
            tagged.catalogs.extend(more.catalogs);
            tagged.live_images.extend(more.live_images);
            tagged.signed.extend(more.signed);
        }
        let releases = &mut tagged.releases;
        releases.sort_by(|a, b| (&b.0, &b.1.image).cmp(&(&a.0, &a.1.image)));
        releases.truncate(MAX_CANDIDATES);
        releases.reverse();
        tagged.catalogs.truncate(MAX_CATALOGS);
        tagged.live_images.truncate(MAX_LIVE_IMAGES);
        Ok(tagged)
    }

    /// The content, if `tagged` are all. A known digest is believed, but for images that are `due`, and these
    /// `repositories` may have images that were missing.
    async fn content(
        &self,
        known: &RegistryContent,
        tagged: TaggedImages,
        repositories: &BTreeSet<String>,
        is_due: impl Fn(&Reference) -> bool,
    ) -> Result<RegistryContent, Error> {
        let mut reading = Reading {
            reader: self,
            known,
            digests: digests(known),
            repositories,
            is_due,
            content: RegistryContent::default(),
        };
        let mut seen = BTreeSet::new();
        for (_, mut candidate) in tagged.releases {
            let Some(digest) = reading.digest(&candidate.image).await? else {
                continue;
            };
            candidate.digest = digest.to_string();
            let is_signed = tagged.signed.contains(&candidate.image.with_digest(digest));
            // A release in two namespaces is one.
            if seen.insert((candidate.digest.clone(), candidate.architecture.to_string())) {
                reading.release(candidate, is_signed).await?;
            }
        }
        for (version, image) in tagged.catalogs {
            if let Some(digest) = reading.digest(&image).await? {
                reading.catalog(&version, &image, &digest).await?;
            }
        }
        for image in tagged.live_images {
            if let Some(digest) = reading.digest(&image).await? {
                reading.live_image(&image, &digest).await?;
            }
        }
        Ok(reading.content)
    }

    async fn tagged_in(&self, repository: &str) -> Result<TaggedImages, Error> {
        let place = format!("{}/{repository}", self.registry);
        // A name that no tool could pull.
        let Ok(place) = place.parse::<Reference>() else {
            return Ok(TaggedImages::default());
        };
        let tags = match self.client.tags_within(&place, TAG_PAGES).await {
            Ok(tags) => tags.unwrap_or_default(),
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) if is_closed(&error) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut tagged = TaggedImages::default();
        if live_image::is_repository(repository) {
            // Their tags look like those of releases.
            let images = tags.into_iter().filter(live_image::is_tag);
            let images = images.map(|tag| Reference {
                tag: Some(tag),
                ..place.clone()
            });
            tagged.live_images = images.collect();
            return Ok(tagged);
        }
        for tag in tags {
            if let Some(digest) = signed(&tag) {
                tagged.signed.insert(place.with_digest(digest));
                continue;
            }
            let version = platform_version(tag.as_str()).map(str::to_owned);
            let release = release_of(tag.as_str());
            let image = Reference {
                tag: Some(tag),
                ..place.clone()
            };
            if let Some((version, architecture)) = release {
                let candidate = Candidate {
                    version: version.to_string(),
                    architecture,
                    digest: String::new(),
                    image,
                };
                tagged.releases.push((version, candidate));
            } else if let Some(version) = version {
                tagged.catalogs.push((version, image));
            }
        }
        if tagged.releases.is_empty() {
            tagged.signed.clear();
        }
        Ok(tagged)
    }
}

/// The known images, with their digests.
fn digests(content: &RegistryContent) -> BTreeMap<&str, &str> {
    let releases = content.releases.iter();
    let releases = releases.map(|it| (it.image.as_str(), it.digest.as_str()));
    let catalogs = content.catalogs.iter();
    let catalogs = catalogs.map(|it| (it.image.as_str(), it.digest.as_str()));
    let rejected = content.rejected.iter();
    let rejected = rejected.map(|it| (it.image.as_str(), it.digest.as_str()));
    let others = content.others.iter();
    let others = others.map(|(image, digest)| (image.as_str(), digest.as_str()));
    let live_images = content.live_images.iter();
    let live_images = live_images.map(|(image, it)| (image.as_str(), it.digest.as_str()));
    let all = releases.chain(catalogs).chain(rejected).chain(others);
    all.chain(live_images).collect()
}

/// A reading of images, one after the other.
struct Reading<'a, F> {
    reader: &'a ContentReader,
    known: &'a RegistryContent,
    digests: BTreeMap<&'a str, &'a str>,
    /// Those that may have images that were missing.
    repositories: &'a BTreeSet<String>,
    is_due: F,
    content: RegistryContent,
}

impl<F: Fn(&Reference) -> bool> Reading<'_, F> {
    /// The digest of a tag; none if it was deleted meanwhile.
    async fn digest(&self, image: &Reference) -> Result<Option<Digest>, Error> {
        let known = self.digests.get(image.to_string().as_str());
        let known = known.and_then(|digest| digest.parse().ok());
        match known.filter(|_| !(self.is_due)(image)) {
            Some(digest) => Ok(Some(digest)),
            None => self.reader.client.manifest_digest(image).await,
        }
    }

    async fn release(&mut self, candidate: Candidate, is_signed: bool) -> Result<(), Error> {
        let image = candidate.image.to_string();
        let digest = candidate.digest.clone();
        if self.is_rejected(&image, &digest) {
            return Ok(());
        }
        let reader = PayloadReader {
            client: &self.reader.client,
            namespace: &self.reader.namespace,
        };
        let mut known = self.known.releases.iter();
        let known = known.find(|release| release.image == image && release.digest == digest);
        let read = match known {
            None => reader.release(&candidate).await,
            Some(known) if known.missing.is_empty() => Ok(known.clone()),
            Some(known) => {
                let missing = known.missing.clone();
                let sought = reader.sought(&candidate.image, missing).await?;
                if sought.missing == known.missing {
                    Ok(known.clone())
                } else {
                    // Its boot images may be there now.
                    reader.release(&candidate).await
                }
            }
        };
        if let Some(mut release) = self.accepted(image, digest, read)? {
            release.is_signed = is_signed;
            self.content.releases.push(release);
        }
        Ok(())
    }

    async fn catalog(
        &mut self,
        version: &str,
        image: &Reference,
        digest: &Digest,
    ) -> Result<(), Error> {
        let (name, digest_text) = (image.to_string(), digest.to_string());
        if self.is_rejected(&name, &digest_text) {
            return Ok(());
        }
        if self.known.others.get(&name) == Some(&digest_text) {
            self.content.others.insert(name, digest_text);
            return Ok(());
        }
        let reader = CatalogReader {
            client: &self.reader.client,
            namespace: &self.reader.namespace,
            scratch: &self.reader.scratch,
        };
        let mut known = self.known.catalogs.iter();
        let known = known.find(|catalog| catalog.image == name && catalog.digest == digest_text);
        let read = match known {
            None => reader.catalog(image, version, digest).await,
            Some(known) => {
                let mut catalog = known.clone();
                let repositories = self.repositories;
                let may_have = |it: &Repository| repositories.contains(it.as_str());
                reader.complete(image, &mut catalog, may_have).await?;
                Ok(Some(catalog))
            }
        };
        match self.accepted(name.clone(), digest_text.clone(), read)? {
            Some(Some(catalog)) => self.content.catalogs.push(catalog),
            Some(None) => {
                self.content.others.insert(name, digest_text);
            }
            None => {}
        }
        Ok(())
    }

    async fn live_image(&mut self, image: &Reference, digest: &Digest) -> Result<(), Error> {
        let (name, digest_text) = (image.to_string(), digest.to_string());
        if self.is_rejected(&name, &digest_text) {
            return Ok(());
        }
        let known = self.known.live_images.get(&name);
        let read = match known.filter(|known| known.digest == digest_text) {
            Some(known) => Ok(known.clone()),
            None => live_images::read(&self.reader.client, image, digest).await,
        };
        if let Some(held) = self.accepted(name.clone(), digest_text, read)? {
            self.content.live_images.insert(name, held);
        }
        Ok(())
    }

    /// Whether an image was rejected before, and still is.
    fn is_rejected(&mut self, image: &str, digest: &str) -> bool {
        let mut rejected = self.known.rejected.iter();
        let found = rejected.find(|it| it.image == image && it.digest == digest);
        self.content.rejected.extend(found.cloned());
        found.is_some()
    }

    /// The content of an image; none if the image is rejected.
    ///
    /// Errors: those that are not of this image alone: the registry does not answer.
    fn accepted<T>(
        &mut self,
        image: String,
        digest: String,
        read: Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(
                error @ (Error::Invalid { .. } | Error::NotFound { .. } | Error::TooLarge { .. }),
            ) => {
                self.content.rejected.push(RejectedImage {
                    image,
                    digest,
                    reason: error.chain(),
                });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
