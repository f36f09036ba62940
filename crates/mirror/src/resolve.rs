//! Resolves images: their manifests are fetched, their blobs are not.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use futures_util::stream::StreamExt as _;
use model::Error;
use oci::{Descriptor, Digest, Kind, Manifest, Platform, Reference, media_type};
use oci_client::Client;

use crate::content::{ImageContent, ResolvedImage, SelectedImage, SourceBlob, SourceRepository};
use crate::parallel::RegistryLimit;
use crate::progress::{Amount, Phase, RunProgress};

/// Levels of nested indexes.
const INDEX_DEPTH: usize = 4;

/// Images that were resolved, and failures.
#[derive(Debug, Default)]
pub struct Resolved {
    pub content: ImageContent,
    /// Images that were not resolved, with the cause.
    pub failed: Vec<(SelectedImage, Error)>,
}

/// Fetches the manifests of images, at most `parallel` at a time from each registry. All failures are returned, those of
/// images that may be missing too.
pub async fn resolve(
    client: &Client,
    wanted: Vec<SelectedImage>,
    parallel: usize,
    progress: &RunProgress,
) -> Resolved {
    resolve_with(client, wanted, BTreeMap::new(), parallel, progress).await
}

/// As [`resolve`], where some manifests are known.
pub(crate) async fn resolve_with(
    client: &Client,
    wanted: Vec<SelectedImage>,
    manifests: BTreeMap<Digest, Manifest>,
    parallel: usize,
    progress: &RunProgress,
) -> Resolved {
    let items = wanted.len() as u64;
    progress.begin(Phase::Surveying, Amount { items, bytes: 0 });
    let known = ManifestCache {
        client,
        manifests: Mutex::new(manifests),
    };
    let lookup = async |wanted: SelectedImage| {
        let found = known.image(&wanted).await;
        progress.add_items(1);
        (wanted, found)
    };
    let limit = RegistryLimit::new(parallel);
    let lookups = limit.work(wanted, |it| it.source.registry.clone(), &lookup);
    let lookups: BTreeMap<_, _> = lookups.collect().await;
    let mut resolved = Resolved::default();
    for (wanted, found) in lookups.into_values() {
        match found {
            Ok(manifests) => resolved.content.add(wanted, manifests),
            Err(error) => resolved.failed.push((wanted, error)),
        }
    }
    resolved
}

/// Fetched manifests: a digest is fetched once.
struct ManifestCache<'a> {
    client: &'a Client,
    manifests: Mutex<BTreeMap<Digest, Manifest>>,
}

impl ManifestCache<'_> {
    /// The manifest of an image, and after it those of its parts.
    async fn image(&self, wanted: &SelectedImage) -> Result<Vec<Manifest>, Error> {
        let own = self.manifest(&wanted.source).await?;
        has_platform(&own, wanted)?;
        let mut found = vec![own];
        let (mut next, mut end) = (0, 1);
        for _ in 0..INDEX_DEPTH {
            for index in next..end {
                for part in parts(&found[index], &wanted.platforms) {
                    let part = wanted.source.with_digest(part);
                    found.push(self.manifest(&part).await?);
                }
            }
            (next, end) = (end, found.len());
            if next == end {
                return Ok(found);
            }
        }
        let reason = format!("{}: indexes are nested too deep", wanted.source);
        Err(Error::invalid("image", reason))
    }

    async fn manifest(&self, reference: &Reference) -> Result<Manifest, Error> {
        let known = |digest: &Digest| {
            let manifests = self.manifests.lock();
            let manifests = manifests.unwrap_or_else(PoisonError::into_inner);
            manifests.get(digest).cloned()
        };
        if let Some(manifest) = reference.digest.as_ref().and_then(known) {
            return Ok(manifest);
        }
        let manifest = self.client.pull_manifest(reference).await?;
        let manifests = self.manifests.lock();
        let mut manifests = manifests.unwrap_or_else(PoisonError::into_inner);
        manifests.insert(manifest.digest.clone(), manifest.clone());
        Ok(manifest)
    }
}

/// Errors: Invalid – an index that has no image for any of the wanted platforms.
fn has_platform(manifest: &Manifest, wanted: &SelectedImage) -> Result<(), Error> {
    let Kind::Index { manifests } = &manifest.kind else {
        return Ok(());
    };
    if manifests.is_empty() || !parts(manifest, &wanted.platforms).is_empty() {
        return Ok(());
    }
    let list = |platforms: &mut dyn Iterator<Item = &Platform>| {
        let names: BTreeSet<_> = platforms
            .map(|it| format!("{}/{}", it.os, it.architecture))
            .collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let chosen = list(&mut wanted.platforms.iter());
    let known = list(&mut manifests.iter().filter_map(|it| it.platform.as_ref()));
    let reason = format!(
        "{} has no image for {chosen}, only for {known}: correct `platforms` in the configuration",
        wanted.source
    );
    Err(Error::invalid("platforms", reason))
}

/// The parts of an index that are for one of `platforms`, or do not say for which; all parts where none is named.
pub(crate) fn parts(manifest: &Manifest, platforms: &[Platform]) -> Vec<Digest> {
    let Kind::Index { manifests } = &manifest.kind else {
        return Vec::new();
    };
    let is_wanted = |part: &&Descriptor| {
        platforms.is_empty()
            || part
                .platform
                .as_ref()
                .is_none_or(|it| platforms.contains(it))
    };
    let parts = manifests.iter().filter(is_wanted);
    parts.map(|part| part.digest.clone()).collect()
}

impl ImageContent {
    /// Adds an image with its manifests, the first of which is its own.
    fn add(&mut self, wanted: SelectedImage, manifests: Vec<Manifest>) {
        let origin = SourceRepository {
            registry: wanted.source.registry.clone(),
            repository: wanted.source.repository.clone(),
        };
        let Some(digest) = manifests.first().map(|manifest| manifest.digest.clone()) else {
            return;
        };
        for manifest in manifests {
            for blob in manifest.blobs() {
                if !media_type::is_nondistributable(&blob.media_type) {
                    self.add_blob(blob, &origin);
                }
            }
            self.manifests.insert(manifest.digest.clone(), manifest);
        }
        self.images.push(ResolvedImage { wanted, digest });
    }

    fn add_blob(&mut self, blob: &Descriptor, origin: &SourceRepository) {
        let known = match self.blobs.entry(blob.digest.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(SourceBlob {
                size: blob.size,
                sources: BTreeSet::new(),
                file: None,
            }),
        };
        known.sources.insert(origin.clone());
    }
}
