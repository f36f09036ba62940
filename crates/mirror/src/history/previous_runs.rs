//! From one run to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::Error;
use model::image_set::MirrorSelection;
use model::mirror_metadata::{Association, CatalogStart, ChannelStart, MirrorMetadata, PastMirror};
use oci::{Digest, Reference, Repository};
use uuid::Uuid;

use super::association::{self, AssociationKey};
use super::blob_list;
use super::store::MetadataStore;
use crate::content::{ImageContent, ResolvedImage, SelectedImage};
use crate::publish::MirrorTarget;
use crate::section::Section;
use oci::artifact_tag;

/// Message for runs without new content. Source: the peer.
const NOTHING_NEW: &str = "No new images detected, process stopping";

/// History of a set.
#[derive(Debug, Default)]
pub struct PreviousRuns {
    metadata: Option<MirrorMetadata>,
    /// Images that need not be mirrored again, with the mirrored parts of indexes.
    keys: BTreeMap<AssociationKey, BTreeSet<String>>,
    /// Content of archives of the peer's v2 in the same workspace, with the time of the last one. Units: seconds since 1970.
    peers: Option<(i64, BTreeSet<Digest>)>,
    /// Whether all of it is mirrored again.
    is_forgotten: bool,
}

/// A run that is planned.
#[derive(Debug)]
pub struct PlannedRun<'a> {
    /// Identifier of a set without previous runs.
    pub uid: Uuid,
    /// Whether the run is not recorded.
    pub is_single_use: bool,
    /// Units: seconds since 1970.
    pub timestamp: i64,
    /// The configuration, with the selected versions.
    pub mirror: MirrorSelection,
    pub operators: Vec<CatalogStart>,
    pub platforms: Vec<ChannelStart>,
    /// Content that it mirrors.
    pub content: &'a ImageContent,
    /// Selected images that previous runs mirrored.
    pub mirrored: &'a [ResolvedImage],
    /// Images that were unavailable. Their associations of previous runs stay: they are still selected.
    pub absent: &'a [SelectedImage],
    /// Whether charts could not be read. Their images are unknown, so all associations stay that may be theirs.
    pub has_unread_charts: bool,
    /// The destination; none for an archive.
    pub target: Option<&'a MirrorTarget>,
}

/// Metadata of the next run.
#[derive(Debug)]
pub struct NextMetadata {
    pub metadata: MirrorMetadata,
    /// Content of previous runs that is still selected: archives leave it out.
    pub carried: BTreeSet<Digest>,
    has_news: bool,
}

impl PreviousRuns {
    pub fn new(metadata: Option<MirrorMetadata>) -> Self {
        let past = metadata.iter().flat_map(|it| &it.past_associations);
        let parts = |it: &Association| it.manifest_digests.iter().cloned().collect();
        let keys = past
            .map(|it| (association::key_of(it), parts(it)))
            .collect();
        Self {
            metadata,
            keys,
            peers: None,
            is_forgotten: false,
        }
    }

    /// The history of a workspace of the peer's v2, whose lists are in the folder: the last one, or the last one before a
    /// time. Units: seconds since 1970.
    ///
    /// Blocking. Errors: Internal – the folder cannot be read.
    pub fn of_peer(folder: &Path, before: Option<i64>) -> Result<Self, Error> {
        Ok(Self {
            peers: blob_list::newest(folder, before)?,
            ..Self::default()
        })
    }

    /// Time of the last run. Units: seconds since 1970.
    pub(crate) fn time(&self) -> Option<i64> {
        let own = self.metadata.as_ref().map(|it| it.past_mirror.timestamp);
        own.or_else(|| Some(self.peers.as_ref()?.0))
    }

    /// Mirrors everything again; the run is the next one of the set all the same.
    #[must_use]
    pub fn forgotten(mut self) -> Self {
        self.keys.clear();
        self.is_forgotten = true;
        self
    }

    /// The history of the next run, whose images are compared with those of an `earlier` run. Without one, all are mirrored
    /// again.
    #[must_use]
    pub fn since(last: MirrorMetadata, earlier: Option<MirrorMetadata>) -> Self {
        let Some(mut earlier) = earlier.filter(|it| it.uid == last.uid) else {
            return Self::new(Some(last)).forgotten();
        };
        earlier.past_mirror.sequence = last.past_mirror.sequence;
        Self::new(Some(earlier))
    }

    /// Only associations that the target has as well: images deleted there are mirrored again.
    ///
    /// Errors: as [`MetadataStore::read`].
    pub async fn in_target(mut self, target: &MirrorTarget) -> Result<Self, Error> {
        if let Some(metadata) = &mut self.metadata {
            let there = MetadataStore::in_target(target, metadata.uid)?
                .read()
                .await?;
            let there = there.iter().flat_map(|it| &it.past_associations);
            let there: BTreeSet<AssociationKey> = there.map(association::key_of).collect();
            let past = &mut metadata.past_associations;
            past.retain(|it| there.contains(&association::key_of(it)));
            self.keys.retain(|key, _| there.contains(key));
        }
        Ok(self)
    }

    /// The tags that images of previous runs have, each with its place and the repository of its source.
    pub(crate) fn tag_owners(&self) -> impl Iterator<Item = (String, String, String)> {
        let past = self.metadata.iter().flat_map(|it| &it.past_associations);
        let images = past.filter(|it| !association::is_part(it));
        images.map(|it| {
            let source = association::repository_of(&it.name).to_owned();
            (
                association::place_of(it).to_owned(),
                it.tag_symlink.clone(),
                source,
            )
        })
    }

    /// Metadata of the previous run.
    pub fn metadata(&self) -> Option<&MirrorMetadata> {
        self.metadata.as_ref()
    }

    /// Splits off images that previous runs mirrored. The digest of a tag is not known yet: such images are among the
    /// others.
    ///
    /// Errors: Invalid – a name does not fit into the target.
    pub fn split_pinned(
        &self,
        wanted: Vec<SelectedImage>,
        target: Option<&MirrorTarget>,
    ) -> Result<(Vec<ResolvedImage>, Vec<SelectedImage>), Error> {
        let (mut known, mut others) = (Vec::new(), Vec::new());
        for wanted in wanted {
            // Nor is it known whether the right parts of an index were mirrored.
            let digest = wanted.source.digest.clone();
            let Some(digest) = digest.filter(|_| wanted.platforms.is_empty()) else {
                others.push(wanted);
                continue;
            };
            let image = ResolvedImage { wanted, digest };
            if self.knows(&image, &[], target)? {
                known.push(image);
            } else {
                others.push(image.wanted);
            }
        }
        Ok((known, others))
    }

    /// The source of an image that previous runs mirrored under the same name, with that layer.
    ///
    /// Errors: Invalid – a name does not fit into the target.
    pub(crate) fn with_layer(
        &self,
        wanted: &SelectedImage,
        layer: &Digest,
        target: Option<&MirrorTarget>,
    ) -> Result<Option<Reference>, Error> {
        let place = association::place(&wanted.repository, target)?;
        let layer = layer.to_string();
        let mut past = self.metadata.iter().flat_map(|it| &it.past_associations);
        let known = past.find(|it| {
            association::place_of(it) == place
                && it.tag_symlink == wanted.tag.as_str()
                && it.layer_digests.contains(&layer)
                && self.keys.contains_key(&association::key_of(it))
        });
        Ok(known.and_then(|it| Reference::parse_local(&it.name).ok()))
    }

    /// Takes images out of the content that previous runs mirrored.
    ///
    /// Errors: Invalid – a name does not fit into the target.
    pub fn take_mirrored(
        &self,
        content: &mut ImageContent,
        target: Option<&MirrorTarget>,
    ) -> Result<Vec<ResolvedImage>, Error> {
        let (mut known, mut others) = (Vec::new(), Vec::new());
        for image in std::mem::take(&mut content.images) {
            let parts = match content.manifests.get(&image.digest) {
                Some(manifest) => association::parts(manifest, content),
                None => Vec::new(),
            };
            if self.knows(&image, &parts, target)? {
                known.push(image);
            } else {
                others.push(image);
            }
        }
        content.images = others;
        if !known.is_empty() {
            content.forget_unused();
        }
        Ok(known)
    }

    /// The metadata after a run.
    ///
    /// Errors: NotFound – an image has no manifest; Invalid – a name does not fit into the target.
    pub fn next(&self, run: PlannedRun<'_>) -> Result<NextMetadata, Error> {
        let associations = association::associations(run.content, run.target)?;
        let kept = self.kept(&run, &associations)?;
        let carried = if self.is_forgotten {
            BTreeSet::new()
        } else {
            let peers = self.peers.iter().flat_map(|(_, blobs)| blobs.clone());
            carried(&kept).into_iter().chain(peers).collect()
        };
        let past_associations = kept.into_iter().chain(&associations).cloned().collect();
        let mut metadata = match &self.metadata {
            Some(previous) => MirrorMetadata::new(previous.uid, run.is_single_use),
            None => MirrorMetadata::new(run.uid, run.is_single_use),
        };
        let previous = self.metadata.as_ref();
        metadata.past_mirror = PastMirror {
            timestamp: run.timestamp,
            sequence: previous
                .map_or(0, |it| it.past_mirror.sequence)
                .saturating_add(1),
            mirror: run.mirror,
            operators: run.operators,
            platforms: run.platforms,
            associations,
        };
        metadata.past_associations = past_associations;
        let has_news = previous.is_none_or(|it| is_news(&metadata.past_mirror, &it.past_mirror));
        Ok(NextMetadata {
            metadata,
            carried,
            has_news,
        })
    }

    /// Whether previous runs mirrored the image, with those parts.
    fn knows(
        &self,
        image: &ResolvedImage,
        parts: &[String],
        target: Option<&MirrorTarget>,
    ) -> Result<bool, Error> {
        if !association::is_remembered(image) {
            return Ok(false);
        }
        let known = self.keys.get(&association::key(image, target)?);
        Ok(known.is_some_and(|known| parts.iter().all(|it| known.contains(it))))
    }

    /// Associations of previous runs that are still selected, with their parts, without those that are mirrored again.
    fn kept(&self, run: &PlannedRun<'_>, new: &[Association]) -> Result<Vec<&Association>, Error> {
        let mut keys = BTreeSet::new();
        for image in run.mirrored {
            keys.insert(association::key(image, run.target)?);
        }
        let mut absent = BTreeSet::new();
        for wanted in run.absent {
            let source = wanted.source.to_string();
            let source = association::repository_of(&source).to_owned();
            let place = association::place(&wanted.repository, run.target)?;
            // The target's tag may come from the digest of the time, which is unknown now.
            let tag = wanted.source.digest.as_ref();
            absent.insert((source, place, tag.map(|_| wanted.tag.to_string())));
        }
        let is_absent = |(name, place, tag): AssociationKey| {
            let source = association::repository_of(&name).to_owned();
            let tags = [Some(tag), None];
            let mut keys = tags
                .map(|tag| (source.clone(), place.clone(), tag))
                .into_iter();
            keys.any(|key| absent.contains(&key))
        };
        let is_wanted = |it: &&Association| {
            let key = association::key_of(it);
            let may_be_of_chart = Section::of(it.kind) == Some(Section::Generic);
            keys.contains(&key) || is_absent(key) || (run.has_unread_charts && may_be_of_chart)
        };
        let past = self.metadata.iter().flat_map(|it| &it.past_associations);
        let (kept, others): (Vec<&Association>, Vec<_>) =
            past.partition(|it| !association::is_part(it) && is_wanted(it));
        let kept = with_belongings(kept, others);
        let own: BTreeSet<(&str, &str)> = new.iter().map(name_and_path).collect();
        Ok(kept
            .into_iter()
            .filter(|it| !own.contains(&name_and_path(it)))
            .collect())
    }
}

impl NextMetadata {
    /// Keeps all associations of previous runs with operators. The images of packages that cannot be read are unknown, and
    /// are not pruned.
    #[must_use]
    pub(crate) fn keeping_operators(mut self, previous: &PreviousRuns) -> Self {
        let past = previous
            .metadata
            .iter()
            .flat_map(|it| &it.past_associations);
        let own: BTreeSet<(String, String)> = self
            .metadata
            .past_associations
            .iter()
            .map(|it| (it.name.clone(), it.path.clone()))
            .collect();
        let is_kept = |it: &&Association| {
            let key = (it.name.clone(), it.path.clone());
            Section::of(it.kind) == Some(Section::Operator) && !own.contains(&key)
        };
        let kept: Vec<_> = past.filter(is_kept).cloned().collect();
        self.metadata.past_associations.extend(kept);
        self
    }

    /// The message where nothing is to be done: the run has no new image, and the same selection as the previous one.
    /// Source: the peer.
    pub fn reason_to_stop(&self) -> Option<&'static str> {
        (!self.has_news).then_some(NOTHING_NEW)
    }
}

/// Whether a run differs from the one before it. An image that is known under another name is new, and so is a catalog that
/// has other bundles of which all images are known; the peer passes over both.
fn is_news(run: &PastMirror, before: &PastMirror) -> bool {
    // As metadata has it: that lacks members which the peer's v1 does not know.
    let stored = |mirror: &MirrorSelection| serde_json::to_value(mirror).ok();
    !run.associations.is_empty()
        || stored(&run.mirror) != stored(&before.mirror)
        || run.operators != before.operators
        || run.platforms != before.platforms
}

/// The images with the parts of indexes and their attached artifacts.
fn with_belongings<'a>(
    mut kept: Vec<&'a Association>,
    mut others: Vec<&'a Association>,
) -> Vec<&'a Association> {
    let (mut parts, mut subjects) = (BTreeSet::new(), BTreeSet::new());
    let mut end = 0;
    // An index may be a part as well, and an artifact may have artifacts.
    while end < kept.len() {
        for it in &kept[end..] {
            let digests = it.manifest_digests.iter();
            parts.extend(digests.map(|digest| (digest.as_str(), it.path.as_str())));
            subjects.insert((it.id.clone(), association::place_of(it)));
        }
        end = kept.len();
        let belongs = |it: &&Association| {
            let subject = artifact_tag::subject(&it.tag_symlink).map(|it| it.to_string());
            parts.contains(&name_and_path(it))
                || subject.is_some_and(|id| subjects.contains(&(id, association::place_of(it))))
        };
        let (found, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(belongs);
        kept.extend(found);
        others = rest;
    }
    kept
}

/// The associations without deleted images and their parts.
///
/// Errors: Invalid – a malformed path.
pub(crate) fn without(
    past: Vec<Association>,
    gone: &BTreeSet<(Repository, Digest)>,
    target: &MirrorTarget,
) -> Result<Vec<Association>, Error> {
    let mut there = Vec::new();
    for association in past {
        let place = association::repository_in(&association, target)?;
        let digest = association.id.parse();
        if !digest.is_ok_and(|digest| gone.contains(&(place, digest))) {
            there.push(association);
        }
    }
    let (parts, images): (Vec<_>, Vec<_>) = there.iter().partition(|it| association::is_part(it));
    Ok(with_belongings(images, parts)
        .into_iter()
        .cloned()
        .collect())
}

/// Key of this run's associations for readers of archives. Source: `archive::Set::content`.
fn name_and_path(association: &Association) -> (&str, &str) {
    (&association.name, &association.path)
}

/// All that the images consist of.
fn carried(kept: &[&Association]) -> BTreeSet<Digest> {
    let digests = kept.iter().flat_map(|it| {
        let own = std::iter::once(&it.id);
        own.chain(&it.manifest_digests).chain(&it.layer_digests)
    });
    // Malformed digests name no content to leave out.
    digests.filter_map(|digest| digest.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Configuration};

    #[test]
    fn members_that_metadata_lacks_are_no_news() {
        let text = b"kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n  - name: r.example/a/b:1\n    targetTag: x\n";
        let Ok(Configuration::Mirror(set)) = config::parse(text) else {
            panic!("not read")
        };
        let run = PastMirror {
            mirror: set.mirror,
            ..PastMirror::default()
        };
        let stored = serde_json::to_string(&run).unwrap();
        let before: PastMirror = serde_json::from_str(&stored).unwrap();
        assert_ne!(run.mirror, before.mirror);
        assert!(!is_news(&run, &before));
        let mut other = run.clone();
        other.mirror.additional_images.clear();
        assert!(is_news(&other, &before));
    }
}
