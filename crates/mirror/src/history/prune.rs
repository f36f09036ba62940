//! Pruning: images leave a target when no configuration selects them any more.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};
use model::Error;
use model::mirror_metadata::{Association, MirrorMetadata};
use oci::{Digest, Repository};
use serde::Serialize;
use uuid::Uuid;

use super::association;
use super::store::MetadataStore;
use crate::publish::MirrorTarget;
use crate::section::Section;

/// Most images that are pruned without consent.
const IMAGES_WITHOUT_CONSENT: usize = 25;

/// Manifests to be deleted in a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruning {
    /// Manifests by their repositories.
    pub deletions: BTreeMap<Repository, BTreeSet<Digest>>,
    /// Number of images, without their parts.
    pub images: usize,
    /// Parts of the configuration of which nothing stays.
    pub emptied: Vec<Section>,
    /// Their associations in the target's metadata.
    pub remembered: Vec<Association>,
}

/// A plan in the peer's form.
#[derive(Serialize)]
struct PruningDocument<'a> {
    registry: String,
    repositories: Vec<Leaving<'a>>,
}

/// Manifests that leave a repository.
#[derive(Serialize)]
struct Leaving<'a> {
    name: &'a Repository,
    manifests: &'a BTreeSet<Digest>,
}

impl Pruning {
    /// As [`Self::new`] for the set `uid`; images of the target's other sets stay.
    ///
    /// Errors: as [`Self::new`]; those of the target.
    pub async fn plan(
        uid: Uuid,
        there: &[Association],
        coming: &[Association],
        target: &MirrorTarget,
    ) -> Result<Self, Error> {
        let pruning = Self::new(there, coming, &[], target)?;
        if pruning.is_empty() {
            return Ok(pruning);
        }
        let mut others = MetadataStore::all_in_target(target).await?;
        others.retain(|other| other.uid != uid);
        Self::new(there, coming, &others, target)
    }

    /// Associations of the target's metadata that neither the next metadata nor `others` have.
    ///
    /// Errors: Invalid – metadata with a malformed path or digest.
    pub fn new(
        there: &[Association],
        coming: &[Association],
        others: &[MirrorMetadata],
        target: &MirrorTarget,
    ) -> Result<Self, Error> {
        let place = |it: &Association| {
            let digest: Digest = it.id.parse()?;
            Ok((association::repository_in(it, target)?, digest))
        };
        let others = others.iter().flat_map(|other| &other.past_associations);
        let staying = coming
            .iter()
            .chain(others)
            .map(place)
            .collect::<Result<BTreeSet<_>, Error>>()?;
        let mut pruning = Self::default();
        for old in there {
            let gone = place(old)?;
            if staying.contains(&gone) {
                continue;
            }
            pruning.images += usize::from(!association::is_part(old));
            pruning.remembered.push(old.clone());
            let (repository, digest) = gone;
            pruning
                .deletions
                .entry(repository)
                .or_default()
                .insert(digest);
        }
        let (before, after) = (sections(there), sections(coming));
        pruning.emptied = before.difference(&after).copied().collect();
        Ok(pruning)
    }

    /// The target's associations of those manifests.
    ///
    /// Errors: Invalid – metadata with a malformed path.
    pub fn remembered_of(
        &self,
        manifests: &[&oci::Reference],
        target: &MirrorTarget,
    ) -> Result<Vec<Association>, Error> {
        let mut found = Vec::new();
        for association in &self.remembered {
            let repository = association::repository_in(association, target)?;
            let is_meant = |it: &&&oci::Reference| {
                let digest = it.digest.as_ref().map(ToString::to_string);
                it.repository == repository && digest.as_ref() == Some(&association.id)
            };
            if manifests.iter().any(|it| is_meant(&it)) {
                found.push(association.clone());
            }
        }
        Ok(found)
    }

    pub fn is_empty(&self) -> bool {
        self.deletions.is_empty()
    }

    /// Whether it may come from a mistake in the configuration and needs the user's consent.
    pub fn needs_consent(&self) -> bool {
        self.images > IMAGES_WITHOUT_CONSENT || !self.emptied.is_empty()
    }

    /// The plan as the peer's dry runs write it, in `pruning-plan.json`.
    ///
    /// Errors: Internal.
    pub fn to_json(&self, target: &MirrorTarget) -> Result<String, Error> {
        let repositories = self.deletions.iter();
        let plan = PruningDocument {
            registry: target.registry.to_string(),
            repositories: repositories
                .map(|(name, manifests)| Leaving { name, manifests })
                .collect(),
        };
        let mut text = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
        plan.serialize(&mut serializer)
            .map_err(|e| Error::internal("writing the pruning plan", e))?;
        String::from_utf8(text).map_err(|e| Error::internal("writing the pruning plan", e))
    }
}

/// Deletes the manifests, at most `parallel` at a time; returns failures. Missing manifests count as deleted.
pub async fn prune(
    pruning: &Pruning,
    target: &MirrorTarget,
    parallel: usize,
) -> Vec<(oci::Reference, Error)> {
    let manifests = pruning.deletions.iter().flat_map(|(repository, digests)| {
        digests.iter().map(move |digest| oci::Reference {
            registry: target.registry.clone(),
            repository: repository.clone(),
            tag: None,
            digest: Some(digest.clone()),
        })
    });
    stream::iter(manifests)
        .map(|manifest| async move {
            match target.client.delete_manifest(&manifest).await {
                Ok(()) | Err(Error::NotFound { .. }) => None,
                Err(error) => Some((manifest, error)),
            }
        })
        .buffer_unordered(parallel.max(1))
        .filter_map(std::future::ready)
        .collect()
        .await
}

fn sections(associations: &[Association]) -> BTreeSet<Section> {
    let sections = associations.iter().filter_map(|it| Section::of(it.kind));
    sections.collect()
}
