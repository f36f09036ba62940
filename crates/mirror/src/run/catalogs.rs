//! Smaller catalogs into the target.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::Error;
use model::mirror_metadata::ImageType;
use oci::{Reference, Repository, Tag};

use crate::blobs::Made;
use crate::content::{Blob, Content, Image, Wanted, Why};
use crate::operators::{self, Original};
use crate::progress::{Amount, Progress};
use crate::publish::{Limits, Target, publish};
use crate::results;

/// A catalog that is put into the target.
pub(super) struct Item<'a> {
    /// The name under which it is remembered.
    pub(super) name: &'a str,
    pub(super) original: &'a Original,
    /// The file with the smaller catalog.
    pub(super) index: &'a Path,
    /// Where it goes, below the target's namespace.
    pub(super) repository: &'a Repository,
    pub(super) tag: &'a Tag,
}

/// Makes the image of the smaller catalog and sends it; what was sent.
///
/// Errors: Invalid – the original is no image of a catalog; those of source and target.
pub(super) async fn put(
    item: Item<'_>,
    target: &Target,
    scratch: &Path,
    limits: Limits,
    progress: &Progress,
) -> Result<(results::Catalog, Amount), Error> {
    let folder = tempfile::tempdir_in(scratch)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let Item { original, .. } = item;
    let rebuilt = operators::rebuild(
        &original.manifests,
        &original.root,
        original,
        item.index,
        folder.path(),
    );
    let rebuilt = rebuilt.await?;
    let place = Reference {
        tag: Some(item.tag.clone()),
        ..target.place(item.repository)?
    };
    let mut content = Content::default();
    let made: BTreeMap<_, _> = rebuilt
        .blobs
        .into_iter()
        .map(|(blob, source)| (blob.digest, source))
        .collect();
    for manifest in &rebuilt.manifests {
        for blob in manifest.blobs() {
            let size = blob.size;
            let sources = BTreeSet::new();
            content
                .blobs
                .insert(blob.digest.clone(), Blob { size, sources });
        }
    }
    if let Some(list) = rebuilt.manifests.first() {
        let catalog = item.name.to_owned();
        content.images.push(Image {
            wanted: Wanted {
                source: place.clone(),
                repository: item.repository.clone(),
                tag: item.tag.clone(),
                kind: ImageType::OperatorCatalog,
                why: vec![Why::Catalog { catalog }],
                platforms: Vec::new(),
                may_be_missing: false,
            },
            digest: list.digest.clone(),
        });
    }
    let manifests = rebuilt.manifests.into_iter();
    content.manifests = manifests.map(|it| (it.digest.clone(), it)).collect();
    let blobs = Made {
        made,
        elsewhere: original,
    };
    let published = publish(&content, &blobs, target, BTreeMap::new(), limits, progress).await;
    match published.failed.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok((
            results::Catalog {
                name: item.name.to_owned(),
                repository: item.repository.clone(),
                destination: place,
                template: None,
            },
            published.sent,
        )),
    }
}
