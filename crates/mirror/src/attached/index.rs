//! Referrers indexes, made of a registry's list.

use std::collections::BTreeMap;

use model::Error;
use oci::Referrer;
use oci::{Digest, Kind, Manifest, media_type};
use serde_json::json;

use crate::content::{ImageContent, ResolvedImage};
use oci::artifact_tag::stands_in_for;

/// The index of listed referrers; none for an empty list. The same list always makes the same index.
///
/// Errors: TooLarge.
pub(super) fn of(listed: Vec<Referrer>) -> Result<Option<Manifest>, Error> {
    let entries: BTreeMap<_, _> = listed
        .into_iter()
        .map(|it| (it.digest.clone(), it))
        .collect();
    if entries.is_empty() {
        return Ok(None);
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": media_type::OCI_INDEX,
        "manifests": entries.into_values().collect::<Vec<_>>(),
    });
    Manifest::parse(index.to_string().into(), None).map(Some)
}

/// Drops images with such a tag that are no index: other tools give images tags of their own digests.
pub(super) fn leave_out_others(content: &mut ImageContent) {
    let images = std::mem::take(&mut content.images);
    let (kept, others): (Vec<_>, Vec<_>) = images
        .into_iter()
        .partition(|image| is_meant(image, content));
    content.images = kept;
    if !others.is_empty() {
        content.forget_unused();
    }
}

fn is_meant(image: &ResolvedImage, content: &ImageContent) -> bool {
    let Some(subject) = stands_in_for(&image.wanted.tag) else {
        return true;
    };
    let index = content.manifests.get(&image.digest);
    let Some(Kind::Index { manifests }) = index.map(|it| &it.kind) else {
        return false;
    };
    let refers = |digest: &Digest| {
        let part = content.manifests.get(digest);
        part.and_then(|part| part.subject.as_ref())
            .is_some_and(|it| it.digest == subject)
    };
    !manifests.is_empty() && manifests.iter().all(|entry| refers(&entry.digest))
}
