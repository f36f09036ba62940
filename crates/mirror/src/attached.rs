//! Attached artifacts of images: signatures, attestations, SBOMs.
//!
//! They are found under the tags that cosign derives from an image's digest, and in the registry's list of referrers. Such
//! a list becomes an index under its referrers tag, so that archives can carry it, and targets without the referrers API
//! have it all the same.
//!
//! Source: cosign, `specs/SIGNATURE_SPEC.md`; distribution-spec, referrers tag schema.

mod in_target;
mod index;
mod lists;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::StreamExt as _;
use model::Error;
use oci::{Digest, Manifest, Reference, Repository, Tag};
use oci_client::Client;
use oci_client::client::referrers_tag;

pub(crate) use self::in_target::attached_there;
use self::lists::Lists;
use crate::content::{ImageContent, ResolvedImage, SelectedImage, SourceRepository, Why};
use crate::parallel::RegistryLimit;
use crate::progress::{Amount, Phase, RunProgress};
use crate::resolve::{Resolved, resolve_with};
use oci::artifact_tag::{SUFFIXES, stands_in_for};

/// Levels of attachment: artifacts of images, and artifacts of those, such as the signature of an attestation.
const DEPTH: usize = 2;

/// Artifacts that could not be attached.
#[derive(Debug, Default)]
pub struct Attached {
    /// Transient failures: another run may attach these.
    pub failed: Vec<(SelectedImage, Error)>,
    /// Permanent failures, the first of each repository: the registry refuses them, or their form is unknown.
    pub refused: Vec<(SelectedImage, Error)>,
}

/// Adds the attached artifacts of its images and of their parts to `content`, with at most `parallel` requests at a time to
/// each registry.
///
/// The tags of a repository are listed once; single images are queried only where the registry has the referrers API, or
/// the tags are too many.
pub async fn attach(
    client: &Client,
    content: &mut ImageContent,
    parallel: usize,
    progress: &RunProgress,
) -> Attached {
    let mut finder = Finder {
        client,
        parallel,
        lists: Lists::default(),
        taken: content.images.iter().map(place).collect(),
    };
    let mut attached = Attached::default();
    let mut begin = 0;
    for _ in 0..DEPTH {
        let subjects = subjects(content, begin);
        begin = content.images.len();
        let found = finder.find(&subjects, content, progress).await;
        attached.add(found.failed);
        if found.wanted.is_empty() {
            break;
        }
        let resolved = resolve_with(client, found.wanted, found.indexes, parallel, progress).await;
        let Resolved {
            content: mut news,
            failed,
        } = resolved;
        attached.add(failed);
        index::leave_out_others(&mut news);
        content.extend(news);
    }
    attached
}

impl Attached {
    fn add(&mut self, failed: Vec<(SelectedImage, Error)>) {
        for (wanted, error) in failed {
            let repository =
                |it: &SelectedImage| (it.source.registry.clone(), it.source.repository.clone());
            match error {
                Error::Unavailable { .. } => self.failed.push((wanted, error)),
                _ if self
                    .refused
                    .iter()
                    .any(|(it, _)| repository(it) == repository(&wanted)) => {}
                _ => self.refused.push((wanted, error)),
            }
        }
    }
}

/// Manifests to which something may be attached, by where they are; with the images they belong to, by place in the content.
type Subjects = BTreeMap<(SourceRepository, Digest), Vec<usize>>;

/// Subjects of all images from `begin` on.
fn subjects(content: &ImageContent, begin: usize) -> Subjects {
    let mut subjects = Subjects::new();
    for (number, image) in content.images.iter().enumerate().skip(begin) {
        let origin = SourceRepository::of(&image.wanted.source);
        for manifest in content.manifests_of(&image.digest) {
            // A referrers index is no image: nothing is attached to it. It lists artifacts of another digest than its own.
            let is_index = stands_in_for(&image.wanted.tag).is_some_and(|it| it != image.digest);
            if manifest.digest == image.digest && is_index {
                continue;
            }
            let subject = (origin.clone(), manifest.digest.clone());
            subjects.entry(subject).or_default().push(number);
        }
    }
    subjects
}

/// Name of an image below the target's namespace.
fn place(image: &ResolvedImage) -> (Repository, Tag) {
    (image.wanted.repository.clone(), image.wanted.tag.clone())
}

#[derive(Debug, Default)]
struct FoundArtifacts {
    wanted: Vec<SelectedImage>,
    /// Indexes made of referrers lists.
    indexes: BTreeMap<Digest, Manifest>,
    failed: Vec<(SelectedImage, Error)>,
}

struct Finder<'a> {
    client: &'a Client,
    parallel: usize,
    lists: Lists,
    /// Names that the target's images have already.
    taken: BTreeSet<(Repository, Tag)>,
}

/// An artifact's tag, and whether the registry has it.
type TagLookup = (Tag, Result<Option<Artifact>, Error>);

/// An artifact that was found.
enum Artifact {
    Tagged,
    Listed(Box<Manifest>),
}

impl Finder<'_> {
    async fn find(
        &mut self,
        subjects: &Subjects,
        content: &ImageContent,
        progress: &RunProgress,
    ) -> FoundArtifacts {
        let items = subjects.len() as u64;
        progress.begin(Phase::Attaching, Amount { items, bytes: 0 });
        self.lists
            .read(self.client, subjects.keys(), self.parallel)
            .await;
        let mut found = FoundArtifacts::default();
        let this = &*self;
        let limit = RegistryLimit::new(self.parallel);
        let registry =
            |((origin, _), _): &(&(SourceRepository, Digest), _)| origin.registry.clone();
        let lookups = limit.work(subjects, registry, async |((origin, digest), images)| {
            let found_tags = this.find_artifacts(origin, digest).await;
            progress.add_items(1);
            (images, digest, found_tags)
        });
        let lookups: BTreeMap<_, _> = lookups.collect().await;
        for (images, digest, found_tags) in lookups.into_values() {
            for (tag, there) in found_tags {
                let mut wanted = images
                    .iter()
                    .map(|number| wanted(&content.images[*number], digest, &tag))
                    .filter(|it| self.taken.insert((it.repository.clone(), it.tag.clone())));
                match there {
                    Ok(None) => {}
                    Ok(Some(Artifact::Tagged)) => found.wanted.extend(wanted),
                    Ok(Some(Artifact::Listed(index))) => {
                        let pinned = wanted.map(|it| SelectedImage {
                            source: it.source.with_digest(index.digest.clone()),
                            ..it
                        });
                        found.wanted.extend(pinned);
                        found.indexes.insert(index.digest.clone(), *index);
                    }
                    Err(error) => {
                        found
                            .failed
                            .extend(wanted.next().map(|wanted| (wanted, error)));
                    }
                }
            }
        }
        found
    }

    /// Artifacts of a manifest.
    async fn find_artifacts(&self, origin: &SourceRepository, subject: &Digest) -> Vec<TagLookup> {
        let mut found_tags = Vec::new();
        // Tags cannot hold digests of this algorithm.
        let Ok(own) = referrers_tag(subject) else {
            return found_tags;
        };
        let keeps_lists = self.lists.has_referrers(&origin.registry);
        for tag in tags(&own, keeps_lists) {
            let there = match self.lists.tags_of(origin) {
                Some(tags) => Ok(tags.contains(&tag)),
                None => self.has(origin, &tag).await,
            };
            let there = there.map(|is_there| is_there.then_some(Artifact::Tagged));
            found_tags.push((tag, there));
        }
        if keeps_lists {
            let reference = origin.reference(subject);
            let listed = self.client.listed_referrers(&reference, subject).await;
            let listed = listed.and_then(|listed| index::of(listed.unwrap_or_default()));
            let listed = listed.map(|index| index.map(|index| Artifact::Listed(Box::new(index))));
            found_tags.push((own, listed));
        }
        found_tags
    }

    async fn has(&self, origin: &SourceRepository, tag: &Tag) -> Result<bool, Error> {
        let tagged = origin.tagged(tag);
        Ok(self.client.manifest_digest(&tagged).await?.is_some())
    }
}

/// Tags of artifacts; without the referrers tag where the registry has the referrers API.
fn tags(own: &Tag, keeps_lists: bool) -> Vec<Tag> {
    let suffixed = SUFFIXES
        .iter()
        .filter_map(|suffix| format!("{own}.{suffix}").parse().ok());
    let stands_in = (!keeps_lists).then(|| own.clone());
    suffixed.chain(stands_in).collect()
}

/// An image with `tag` in the repository of `image`, with its destination and kind.
fn wanted(image: &ResolvedImage, subject: &Digest, tag: &Tag) -> SelectedImage {
    let source = &image.wanted.source;
    SelectedImage {
        source: Reference {
            tag: Some(tag.clone()),
            digest: None,
            ..source.clone()
        },
        repository: image.wanted.repository.clone(),
        tag: tag.clone(),
        kind: image.wanted.kind,
        why: vec![Why::Attached {
            to: source.with_digest(subject.clone()),
        }],
        platforms: Vec::new(),
        may_be_missing: true,
    }
}
