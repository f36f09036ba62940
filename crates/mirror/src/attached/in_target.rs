//! Attached artifacts in a target, by their tags.

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use oci::{Digest, Reference, Tag};

use super::DEPTH;
use crate::publish::MirrorTarget;
use oci::artifact_tag::subject;

/// Artifacts of `images` and their parts in the target: by tag, each with the position of its image. At most `parallel`
/// repositories are queried at a time.
///
/// Errors: those of the target.
pub(crate) async fn attached_there(
    target: &MirrorTarget,
    images: &[Reference],
    parallel: usize,
) -> Result<Vec<(usize, Reference)>, Error> {
    let mut repositories = BTreeMap::<_, ImagesByDigest>::new();
    for (number, image) in images.iter().enumerate() {
        let digest = match &image.digest {
            Some(digest) => Some(digest.clone()),
            None => target.client.manifest_digest(image).await?,
        };
        if let Some(digest) = digest {
            let owners = repositories.entry(image.without_version()).or_default();
            owners.entry(digest).or_insert(number);
        }
    }
    let found: Vec<_> = stream::iter(repositories)
        .map(|(repository, owners)| of_repository(target, repository, owners, images))
        .buffered(parallel.max(1))
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// Images by their manifests.
type ImagesByDigest = BTreeMap<Digest, usize>;

async fn of_repository(
    target: &MirrorTarget,
    repository: Reference,
    mut owners: ImagesByDigest,
    images: &[Reference],
) -> Result<Vec<(usize, Reference)>, Error> {
    let mut tags = tags(target, &repository).await?;
    if tags
        .iter()
        .any(|(_, subject)| !owners.contains_key(subject))
    {
        add_parts(target, &mut owners, images).await?;
    }
    let mut found = Vec::new();
    for _ in 0..DEPTH {
        let (own, others) = tags
            .into_iter()
            .partition::<Vec<_>, _>(|(_, subject)| owners.contains_key(subject));
        for (tag, subject) in own {
            let Some(owner) = owners.get(&subject).copied() else {
                continue;
            };
            let image = Reference {
                tag: Some(tag),
                digest: None,
                ..images[owner].clone()
            };
            if !others.is_empty()
                && let Some(digest) = target.client.manifest_digest(&image).await?
            {
                owners.entry(digest).or_insert(owner);
            }
            found.push((owner, image));
        }
        tags = others;
    }
    Ok(found)
}

/// The tags of artifacts, with the digests of their subjects.
async fn tags(target: &MirrorTarget, repository: &Reference) -> Result<Vec<(Tag, Digest)>, Error> {
    let tags = match target.client.tags(repository).await {
        Ok(tags) => tags,
        Err(Error::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let with_subject = tags.into_iter().filter_map(|tag| {
        let subject = subject(tag.as_str())?;
        Some((tag, subject))
    });
    Ok(with_subject.collect())
}

async fn add_parts(
    target: &MirrorTarget,
    owners: &mut ImagesByDigest,
    images: &[Reference],
) -> Result<(), Error> {
    for (digest, owner) in owners.clone() {
        let manifest = match target
            .client
            .pull_manifest(&images[owner].with_digest(digest))
            .await
        {
            Ok(manifest) => manifest,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        for part in manifest.required_manifests() {
            owners.entry(part.clone()).or_insert(owner);
        }
    }
    Ok(())
}
