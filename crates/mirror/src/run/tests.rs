use std::collections::BTreeMap;

use model::Error;
use model::image_set::MirrorSelection;
use model::mirror_metadata::ImageType;
use oci::{Manifest, Reference};
use serde_json::json;
use uuid::Uuid;

use super::resolve::ResolvedImages;
use super::select::refuse_equal_names;
use super::setup::PastImages;
use super::subtract::mirrored_images;
use super::{attach, plan};
use crate::content::{ImageContent, ResolvedImage, SelectedImage, Why};
use crate::history::{PlannedRun, PreviousRuns};

/// Content with one image of each reference.
fn content(references: &[&str]) -> ImageContent {
    let mut content = ImageContent::default();
    for reference in references {
        let source: Reference = reference.parse().unwrap();
        let layer = json!({"digest": oci::Digest::sha256(reference.as_bytes()), "size": 1});
        let manifest = json!({"schemaVersion": 2, "config": layer, "layers": []});
        let manifest = Manifest::parse(manifest.to_string().into(), None).unwrap();
        let digest = manifest.digest.clone();
        content.manifests.insert(digest.clone(), manifest);
        let wanted = SelectedImage {
            repository: source.repository.clone(),
            tag: source.tag.clone().unwrap(),
            source,
            kind: ImageType::Generic,
            why: vec![Why::Additional],
            platforms: Vec::new(),
            may_be_missing: false,
        };
        content.images.push(ResolvedImage { wanted, digest });
    }
    content
}

/// A history with one run to archives.
fn after_run_with(content: &ImageContent) -> PreviousRuns {
    let run = PlannedRun {
        uid: Uuid::from_u128(1),
        is_single_use: false,
        timestamp: 0,
        mirror: MirrorSelection::default(),
        operators: Vec::new(),
        platforms: Vec::new(),
        content,
        mirrored: &[],
        absent: &[],
        has_unread_charts: false,
        target: None,
    };
    let next = PreviousRuns::default().next(run).unwrap();
    PreviousRuns::new(Some(next.metadata))
}

fn sources(images: &[ResolvedImage]) -> Vec<String> {
    let images = images.iter();
    images.map(|it| it.wanted.source.to_string()).collect()
}

#[test]
fn subtract_takes_out_images_of_previous_runs() {
    let previous = after_run_with(&content(&["r.io/a:1"]));
    let past = PastImages {
        previous: &previous,
        target: None,
    };
    let resolved = ResolvedImages {
        content: content(&["r.io/a:1", "r.io/b:1"]),
        ..ResolvedImages::default()
    };
    let remaining = mirrored_images(resolved, past).unwrap();
    assert_eq!(sources(&remaining.content.images), ["r.io/b:1"]);
    assert_eq!(remaining.content.manifests.len(), 1);
    assert_eq!(sources(&remaining.mirrored), ["r.io/a:1"]);
}

#[test]
fn select_refuses_catalogs_with_one_name_in_the_target() {
    let (repository, other) = ("ns/index".parse().unwrap(), "ns/other".parse().unwrap());
    let tag = "v1".parse().unwrap();
    refuse_equal_names([("a", &repository, &tag), ("b", &other, &tag)].into_iter()).unwrap();
    let equal = [("a", &repository, &tag), ("b", &repository, &tag)];
    let refused = refuse_equal_names(equal.into_iter()).unwrap_err();
    assert!(refused.to_string().contains("a and b have the same name"));
}

#[test]
fn attach_separates_skipped_images_from_failures() {
    let image = |may_be_missing| {
        let image = content(&["r.io/a:1"]).images.remove(0);
        SelectedImage {
            may_be_missing,
            ..image.wanted
        }
    };
    let missing = || Error::not_found("image", "r.io/a:1");
    let failed = vec![
        (image(true), missing()),
        (image(false), missing()),
        (image(true), Error::unavailable("the registry", "refused")),
    ];
    let (missing, failed) = attach::skipped(failed);
    assert_eq!((missing.len(), failed.len()), (1, 2));
}

#[test]
fn plan_pins_references_with_tags() {
    let content = content(&["r.io/a:1"]);
    let pins = plan::pins(content.images.iter());
    let pinned = content.images[0].pinned().to_string();
    assert_eq!(pins, BTreeMap::from([("r.io/a:1".to_owned(), pinned)]));
}
