//! Whether a target has everything of a set, and has it intact.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use futures_util::TryStreamExt as _;
use futures_util::stream::{self, StreamExt as _};
use model::Error;
use model::image_set::MirrorSelection;
use model::mirror_metadata::MirrorMetadata;
use oci::{Descriptor, Digest, Manifest, Platform, Reference, Repository, media_type};
use oci_client::Client;

use crate::attached::attached_there;
use crate::history::repository_in;
use crate::platform::ReleaseSources;
use crate::progress::{Amount, Phase, RunProgress};
use crate::publish::MirrorTarget;
use crate::resolve;
use crate::run::RunContext;
use crate::select::SelectOptions;
use crate::target_view;

/// Levels of nested indexes.
const INDEX_DEPTH: usize = 4;

/// An image that has to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// In the target, by digest or tag.
    pub image: Reference,
    pub parts: ExpectedParts,
    /// Whether its source may lack it, too: charts name such images.
    pub may_be_missing: bool,
}

/// Expected parts of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedParts {
    All,
    /// Mirrored parts.
    These(BTreeSet<Digest>),
    /// Parts of one of these platforms.
    For(Vec<Platform>),
}

/// Report about a target.
#[derive(Debug, Default)]
pub struct TargetReport {
    /// Images that have to be there.
    pub images: usize,
    /// Manifests with the right digest.
    pub manifests: usize,
    /// Blobs in their repositories.
    pub blobs: usize,
    /// Bytes of blobs that were compared with their digests.
    pub hashed_bytes: u64,
    /// Missing images that are optional.
    pub absent: Vec<Reference>,
    /// Missing or damaged content, by the image that needs it.
    pub faults: Vec<(Reference, Error)>,
}

/// Expected images of the target's metadata.
///
/// Errors: Invalid – metadata with a malformed path or digest; NotFound – a catalog; those of the target.
pub async fn remembered(
    metadata: &MirrorMetadata,
    target: &MirrorTarget,
) -> Result<Vec<Expected>, Error> {
    let mut expected = Vec::new();
    for association in &metadata.past_associations {
        let digests = association.manifest_digests.iter();
        let parts = digests
            .map(|digest| digest.parse())
            .collect::<Result<_, _>>()?;
        let image = Reference {
            registry: target.registry.clone(),
            repository: repository_in(association, target)?,
            tag: None,
            digest: Some(association.id.parse()?),
        };
        expected.push(Expected {
            parts: ExpectedParts::These(parts),
            ..Expected::whole(image)
        });
    }
    expected.extend(made_for(&metadata.past_mirror.mirror, target).await?);
    Ok(expected)
}

/// Expected images of a configuration, with the attached artifacts in the target. Operators are selected in the catalogs of
/// the target, releases by their update service, and read in the target or else at their sources.
///
/// Errors: a missing catalog or release; Invalid – a package that the catalog does not have; Unavailable – the update
/// service, or a repository of charts.
pub async fn configured(
    client: &Client,
    platform: &ReleaseSources,
    context: RunContext<'_>,
    mirror: &MirrorSelection,
    target: &MirrorTarget,
) -> Result<Vec<Expected>, Error> {
    let scratch = tempfile::tempdir_in(context.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let options = SelectOptions {
        scratch: scratch.path(),
        platform,
        skip_missing: false,
        continue_on_error: false,
    };
    let releases = target_view::releases(client, mirror, target, scratch.path());
    let releases = releases.chosen(platform).await?;
    if let Some(unread) = releases.unread.into_iter().next() {
        return Err(unread);
    }
    let selected = target_view::images(context, mirror, releases.wanted, target, options).await?;
    let mut expected = made_for(mirror, target).await?;
    for wanted in selected.wanted {
        expected.push(Expected {
            image: target_view::place_of(&wanted, target)?,
            parts: ExpectedParts::For(wanted.platforms),
            may_be_missing: wanted.may_be_missing,
        });
    }
    let images: Vec<_> = expected.iter().map(|it| it.image.clone()).collect();
    let attached = attached_there(target, &images, context.limits.parallel).await?;
    let attached = attached
        .into_iter()
        .map(|(_, image)| Expected::whole(image));
    expected.extend(attached);
    Ok(expected)
}

/// Images that are built for the target: pruned catalogs, and the upgrade graph.
async fn made_for(mirror: &MirrorSelection, target: &MirrorTarget) -> Result<Vec<Expected>, Error> {
    let mut made = Vec::new();
    for operator in &mirror.operators {
        let catalogs = target_view::catalogs_of(operator, target).await?;
        if catalogs.is_empty() {
            return Err(Error::not_found("catalog", &operator.catalog));
        }
        made.extend(catalogs);
    }
    if mirror.platform.graph {
        made.push(target_view::graph(target)?);
    }
    Ok(made.into_iter().map(Expected::whole).collect())
}

impl Expected {
    fn whole(image: Reference) -> Self {
        Self {
            image,
            parts: ExpectedParts::All,
            may_be_missing: false,
        }
    }
}

impl ExpectedParts {
    /// Expected parts of an index.
    fn of(&self, index: &Manifest) -> Vec<Digest> {
        let all = index.required_manifests();
        match self {
            Self::All => all.cloned().collect(),
            Self::These(carried) => all.filter(|it| carried.contains(*it)).cloned().collect(),
            Self::For(platforms) => resolve::parts(index, platforms),
        }
    }
}

/// Verifies the images, with at most `parallel` requests at a time: manifests are compared with their digests, blobs with
/// their sizes, and if `is_deep` with their digests.
pub async fn check(
    target: &MirrorTarget,
    expected: &[Expected],
    is_deep: bool,
    parallel: usize,
    progress: &RunProgress,
) -> TargetReport {
    let items = expected.len() as u64;
    progress.begin(Phase::Surveying, Amount { items, bytes: 0 });
    let mut report = TargetReport {
        images: expected.len(),
        ..TargetReport::default()
    };
    let checker = Checker {
        target,
        is_deep,
        progress,
        hashed: Mutex::default(),
    };
    let mut blobs = BTreeMap::new();
    let mut manifests = BTreeSet::new();
    let looking = &checker;
    let mut lookups = stream::iter(expected)
        .map(|it| async move {
            let found = looking.manifests(it).await;
            progress.add_items(1);
            (it, found)
        })
        .buffered(parallel.max(1));
    while let Some((it, found)) = lookups.next().await {
        let image = &it.image;
        match found {
            Ok(found) => {
                for manifest in found {
                    for blob in needed(&manifest) {
                        let key = (image.repository.clone(), blob.digest.clone());
                        blobs
                            .entry(key)
                            .or_insert_with(|| (image.clone(), blob.clone()));
                    }
                    manifests.insert((image.repository.clone(), manifest.digest));
                }
            }
            Err(Error::NotFound { .. }) if it.may_be_missing => report.absent.push(image.clone()),
            Err(error) => report.faults.push((image.clone(), error)),
        }
    }
    drop(lookups);
    report.manifests = manifests.len();
    checker.blobs(blobs, parallel, &mut report).await;
    report
}

fn needed(manifest: &Manifest) -> impl Iterator<Item = &Descriptor> {
    let blobs = manifest.blobs();
    blobs.filter(|blob| !media_type::is_nondistributable(&blob.media_type))
}

/// Blobs by their repositories, each with an image that needs it.
type RepositoryBlobs = BTreeMap<(Repository, Digest), (Reference, Descriptor)>;

struct Checker<'a> {
    target: &'a MirrorTarget,
    is_deep: bool,
    progress: &'a RunProgress,
    /// Verified blobs: a registry stores each once for all repositories.
    hashed: Mutex<BTreeSet<Digest>>,
}

impl Checker<'_> {
    /// The manifest of an image, and those of its parts.
    async fn manifests(&self, expected: &Expected) -> Result<Vec<Manifest>, Error> {
        let client = &self.target.client;
        let mut found = vec![client.pull_manifest(&expected.image).await?];
        let (mut next, mut end) = (0, 1);
        for _ in 0..INDEX_DEPTH {
            for index in next..end {
                for part in expected.parts.of(&found[index]) {
                    let part = expected.image.with_digest(part);
                    found.push(client.pull_manifest(&part).await?);
                }
            }
            (next, end) = (end, found.len());
        }
        Ok(found)
    }

    async fn blobs(&self, blobs: RepositoryBlobs, parallel: usize, report: &mut TargetReport) {
        let whole = Amount {
            items: blobs.len() as u64,
            bytes: if self.is_deep {
                let sizes: BTreeMap<_, _> = blobs
                    .iter()
                    .map(|((_, digest), (_, blob))| (digest, blob.size))
                    .collect();
                sizes.values().sum()
            } else {
                0
            },
        };
        self.progress.begin(Phase::Verifying, whole);
        let mut lookups = stream::iter(blobs.values())
            .map(|(image, blob)| async move {
                let found = self.blob(image, blob).await;
                self.progress.add_items(1);
                (image, found)
            })
            .buffered(parallel.max(1));
        while let Some((image, found)) = lookups.next().await {
            match found {
                Ok(hashed) => {
                    report.blobs += 1;
                    report.hashed_bytes += hashed;
                }
                Err(error) => report.faults.push((image.clone(), error)),
            }
        }
    }

    /// Bytes that were hashed.
    async fn blob(&self, image: &Reference, blob: &Descriptor) -> Result<u64, Error> {
        let client = &self.target.client;
        let digest = &blob.digest;
        let is_new = || {
            let hashed = self.hashed.lock();
            hashed
                .unwrap_or_else(PoisonError::into_inner)
                .insert(digest.clone())
        };
        if self.is_deep && is_new() {
            let stream = client.blob_stream(image, blob).await?;
            let count = |chunk: bytes::Bytes| {
                self.progress.add_bytes(chunk.len() as u64);
                std::future::ready(Ok(()))
            };
            return stream.try_for_each(count).await.map(|()| blob.size);
        }
        match client.blob_size(image, digest).await? {
            None => Err(Error::not_found("blob", digest)),
            Some(size) if size == blob.size => Ok(0),
            Some(size) => {
                let reason = format!("it has {size} bytes, its manifest says {}", blob.size);
                Err(Error::invalid(format!("blob {digest}"), reason))
            }
        }
    }
}
