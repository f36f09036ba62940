//! Images that other tags of their repositories name: deleting a manifest takes all of its tags.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};
use model::Error;
use oci::{Reference, Repository, Tag};

use super::{DeletionItem, DeletionPlan};
use crate::names::{self, LAYOUT_DIGITS};
use crate::publish::MirrorTarget;
use crate::section::Section;

/// Most tags of one repository that are compared.
const TAGS_LIMIT: usize = 2000;
/// Start of tags of images that their sources name by digest. Source: the peer's v2.
const OF_DIGEST: &str = "sha256-";

impl DeletionPlan {
    /// Keeps listed images that have other tags than those that are `meant`. Components of releases have many, and their
    /// releases are read instead.
    ///
    /// Errors: those of the target.
    pub(super) async fn keep_named(
        &mut self,
        meant: &BTreeSet<(Repository, Tag)>,
        target: &MirrorTarget,
        parallel: usize,
    ) -> Result<(), Error> {
        let single = self.list.items.iter().filter(|it| is_single(it));
        let mut repositories: BTreeMap<Repository, Reference> = BTreeMap::new();
        for item in single {
            repositories
                .entry(item.image.repository.clone())
                .or_insert_with(|| item.image.without_version());
        }
        let mut names: BTreeMap<Reference, Vec<Tag>> = BTreeMap::new();
        for (repository, reference) in repositories {
            let mut tags = match target.client.tags(&reference).await {
                Ok(tags) => tags,
                Err(Error::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            tags.retain(|tag| !meant.contains(&(repository.clone(), tag.clone())));
            if tags.len() > TAGS_LIMIT {
                self.notes.push(format!(
                    "{reference} has {} other tags, of which {TAGS_LIMIT} are compared: listed images may have some of the others",
                    tags.len()
                ));
                tags.truncate(TAGS_LIMIT);
            }
            let mut lookups = stream::iter(tags)
                .map(|tag| async {
                    let named = Reference {
                        tag: Some(tag.clone()),
                        ..reference.clone()
                    };
                    let digest = target.client.manifest_digest(&named).await;
                    digest.map(|digest| (tag, digest))
                })
                .buffered(parallel.max(1));
            while let Some(found) = lookups.next().await {
                let (tag, digest) = found?;
                if let Some(digest) = digest {
                    let image = reference.with_digest(digest);
                    names.entry(image).or_default().push(tag);
                }
            }
        }
        let items = std::mem::take(&mut self.list.items);
        for item in items {
            let pinned = item.image.without_version();
            let pinned = item.image.digest.clone().map(|it| pinned.with_digest(it));
            let tags = pinned.and_then(|pinned| names.get(&pinned));
            let mut tags = tags.filter(|_| is_single(&item)).into_iter().flatten();
            match tags.find(|tag| is_own(tag, &item)) {
                Some(tag) => {
                    let why = format!("the tag {tag}, which is not to be deleted, names it, too");
                    self.kept.push((item.image, why));
                }
                None => self.list.items.push(item),
            }
        }
        Ok(())
    }
}

fn is_single(item: &DeletionItem) -> bool {
    matches!(
        Section::of(item.kind),
        Some(Section::Generic | Section::Operator)
    )
}

/// Whether another entry has the tag: those of content of catalogs follow from digests, and mirroring again makes them anew.
fn is_own(tag: &Tag, item: &DeletionItem) -> bool {
    if Section::of(item.kind) == Some(Section::Generic) {
        return true;
    }
    let of_content = item.image.digest.as_ref().is_some_and(|digest| {
        let pinned = item.source.with_digest(digest.clone());
        let tags = [&item.source, &pinned].map(names::tag_of_pinned);
        tags.contains(tag) || names::tag_of_digest(digest, LAYOUT_DIGITS) == *tag
    });
    !tag.as_str().starts_with(OF_DIGEST) && !of_content
}
