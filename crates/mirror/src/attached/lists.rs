//! Lists of registries: the tags of repositories, and the referrers of images.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::StreamExt as _;
use oci::{Digest, Registry, Tag};
use oci_client::Client;

use crate::content::SourceRepository;
use crate::parallel::RegistryLimit;
use oci::artifact_tag::SUFFIXES;

/// Pages of a repository's tags that are read at least, before its images are queried one by one.
const PAGES: usize = 4;

/// Lists read so far.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Tags that may be of artifacts; none where the registry does not list them, or too many.
    tags: BTreeMap<SourceRepository, Option<BTreeSet<Tag>>>,
    /// Whether a registry has the referrers API.
    referrers: BTreeMap<Registry, bool>,
}

impl Lists {
    /// Reads missing lists of the repositories of `subjects`.
    pub(super) async fn read(
        &mut self,
        client: &Client,
        subjects: impl Iterator<Item = &(SourceRepository, Digest)>,
        parallel: usize,
    ) {
        let (mut repositories, mut registries) = (BTreeMap::<_, usize>::new(), BTreeMap::new());
        for (origin, digest) in subjects {
            if !self.tags.contains_key(origin) {
                *repositories.entry(origin.clone()).or_default() += 1;
            }
            if !self.referrers.contains_key(&origin.registry) {
                let reference = origin.reference(digest);
                registries
                    .entry(origin.registry.clone())
                    .or_insert((reference, digest.clone()));
            }
        }
        let list = async |(origin, images): (SourceRepository, usize)| {
            // As soon as the list costs more than asking for each tag, it is left.
            let pages = PAGES.max(images * SUFFIXES.len());
            let listed = client.tags_within(&origin.named(), pages).await;
            let tags = listed.ok().flatten().map(attached);
            (origin, tags)
        };
        let limit = RegistryLimit::new(parallel);
        let mut tags = limit.work(repositories, |(origin, _)| origin.registry.clone(), &list);
        while let Some((_, (origin, listed))) = tags.next().await {
            self.tags.insert(origin, listed);
        }
        for (registry, (reference, digest)) in registries {
            let listed = client.listed_referrers(&reference, &digest).await;
            // Failures are reported by the later request for each image.
            let has = match listed {
                Ok(listed) => listed.is_some(),
                Err(error) => matches!(error, model::Error::Unavailable { .. }),
            };
            self.referrers.insert(registry, has);
        }
    }

    /// The tags of a repository; none where each has to be queried.
    pub(super) fn tags_of(&self, origin: &SourceRepository) -> Option<&BTreeSet<Tag>> {
        self.tags.get(origin)?.as_ref()
    }

    pub(super) fn has_referrers(&self, registry: &Registry) -> bool {
        self.referrers.get(registry).is_some_and(|has| *has)
    }
}

/// Tags that are derived from digests: a repository may have hundreds of thousands of others.
fn attached(tags: Vec<Tag>) -> BTreeSet<Tag> {
    let is_one =
        |tag: &Tag| tag.as_str().starts_with("sha256-") || tag.as_str().starts_with("sha512-");
    tags.into_iter().filter(is_one).collect()
}
