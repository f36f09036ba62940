use std::collections::BTreeSet;

use bytes::Bytes;
use model::image_set::MirrorSelection;
use model::mirror_metadata::{Association, CatalogStart, ImageType, MirrorMetadata};
use oci::{Digest, Manifest};
use oci_client::Client;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::content::{ImageContent, ResolvedImage, SelectedImage, SourceBlob, Why};
use crate::publish::MirrorTarget;

/// A blob's digest.
fn blob(name: &str) -> Digest {
    Digest::sha256(name.as_bytes())
}

fn add(content: &mut ImageContent, manifest: &serde_json::Value) -> Digest {
    let manifest = Manifest::parse(manifest.to_string().into(), None).unwrap();
    for descriptor in manifest.blobs() {
        let blob = SourceBlob {
            size: descriptor.size,
            sources: BTreeSet::new(),
            file: None,
        };
        content.blobs.insert(descriptor.digest.clone(), blob);
    }
    let digest = manifest.digest.clone();
    content.manifests.insert(digest.clone(), manifest);
    digest
}

/// An image of those layers, and a configuration of its own.
fn image_of(content: &mut ImageContent, layers: &[&str]) -> Digest {
    let descriptor = |name: &str| json!({"digest": blob(name), "size": 1});
    let layer = |name: &&str| descriptor(name);
    let manifest = json!({
        "schemaVersion": 2,
        "config": descriptor(&format!("config of {layers:?}")),
        "layers": layers.iter().map(layer).collect::<Vec<_>>(),
    });
    add(content, &manifest)
}

fn index_of(content: &mut ImageContent, parts: &[Digest]) -> Digest {
    let part = |digest: &Digest| json!({"digest": digest, "size": 1});
    let parts: Vec<_> = parts.iter().map(part).collect();
    add(content, &json!({"schemaVersion": 2, "manifests": parts}))
}

fn wanted(source: &str, kind: ImageType) -> SelectedImage {
    let source: oci::Reference = source.parse().unwrap();
    SelectedImage {
        repository: source.repository.clone(),
        tag: source.tag.clone().unwrap_or("pinned".parse().unwrap()),
        source,
        kind,
        why: vec![Why::Additional],
        platforms: Vec::new(),
        may_be_missing: false,
    }
}

fn image(content: &mut ImageContent, source: &str, digest: Digest) {
    image_as(content, source, digest, ImageType::Generic);
}

fn image_as(content: &mut ImageContent, source: &str, digest: Digest, kind: ImageType) {
    let wanted = wanted(source, kind);
    content.images.push(ResolvedImage { wanted, digest });
}

fn run(content: &ImageContent) -> PlannedRun<'_> {
    PlannedRun {
        uid: Uuid::from_u128(7),
        is_single_use: false,
        timestamp: 1_795_241_937,
        mirror: MirrorSelection::default(),
        operators: Vec::new(),
        platforms: Vec::new(),
        content,
        mirrored: &[],
        absent: &[],
        has_unread_charts: false,
        target: None,
    }
}

fn target() -> MirrorTarget {
    MirrorTarget {
        client: Client::new(oci_client::ClientOptions::default()).unwrap(),
        registry: oci::Registry::Host("reg:5000".into()),
        namespace: "ns".into(),
        max_components: 0,
    }
}

fn names(associations: &[Association]) -> BTreeSet<&str> {
    associations.iter().map(|it| it.name.as_str()).collect()
}

/// A tool, and an index of it and another image.
fn first() -> ImageContent {
    let mut content = ImageContent::default();
    let tool = image_of(&mut content, &["base", "tool"]);
    let other = image_of(&mut content, &["base", "other"]);
    let index = index_of(&mut content, &[tool.clone(), other]);
    image(&mut content, "r:1/misc/tool:1.0", tool);
    image(&mut content, "r:1/misc/many:2", index);
    content
}

fn after_first() -> PreviousRuns {
    let content = first();
    let next = PreviousRuns::default().next(run(&content)).unwrap();
    PreviousRuns::new(Some(next.metadata))
}

#[test]
fn associations_list_images_and_their_parts() {
    let mut content = first();
    let catalog = image_of(&mut content, &["catalog"]);
    image_as(
        &mut content,
        "r:1/acme/index:v1",
        catalog,
        ImageType::OperatorCatalog,
    );
    let next = PreviousRuns::default().next(run(&content)).unwrap();
    let MirrorMetadata {
        past_mirror,
        past_associations,
        ..
    } = &next.metadata;
    assert_eq!(
        (past_mirror.sequence, next.metadata.uid),
        (1, Uuid::from_u128(7))
    );
    assert_eq!(past_mirror.associations, *past_associations);
    assert_eq!(next.carried, BTreeSet::new());
    let [tool, index, ..] = past_associations.as_slice() else {
        panic!("{past_associations:?}");
    };
    let [own, config] = [blob("tool"), blob("config of [\"base\", \"tool\"]")];
    assert_eq!(tool.name, format!("r:1/misc/tool@{}", tool.id));
    assert_eq!(
        (tool.path.as_str(), tool.tag_symlink.as_str()),
        ("misc/tool", "1.0")
    );
    // The configuration is the last one.
    assert_eq!(
        tool.layer_digests,
        [blob("base"), own, config].map(|it| it.to_string())
    );
    assert!(tool.manifest_digests.is_empty() && index.layer_digests.is_empty());
    let parts: BTreeSet<&str> = index.manifest_digests.iter().map(String::as_str).collect();
    let parts_of_index = names(&past_associations[2..]);
    assert_eq!((parts.len(), &parts), (2, &parts_of_index));
    for part in &past_associations[2..] {
        assert_eq!(
            (part.name.as_str(), part.path.as_str()),
            (part.id.as_str(), "misc/many")
        );
        assert_eq!(part.tag_symlink, "");
    }
}

#[test]
fn associations_of_direct_copies_have_the_target_path() {
    let content = first();
    let target = target();
    let copy = |target| PlannedRun {
        target,
        ..run(&content)
    };
    let next = PreviousRuns::default().next(copy(Some(&target))).unwrap();
    let tool = &next.metadata.past_associations[0];
    assert_eq!(tool.path, format!("reg:5000/ns/misc/tool@{}", tool.id));
    // It is known at the place of its copy, and nowhere else.
    let previous = PreviousRuns::new(Some(next.metadata));
    let known = |target| previous.take_mirrored(&mut first(), target).unwrap().len();
    assert_eq!([known(Some(&target)), known(None)], [2, 0]);
}

#[test]
fn mirrored_images_are_left_out() {
    let previous = after_first();
    let mut content = first();
    let tool = content.images[0].pinned();
    let news = image_of(&mut content, &["base", "news"]);
    image(&mut content, "r:1/misc/news:1", news);
    let known = previous.take_mirrored(&mut content, None).unwrap();
    assert_eq!(
        (known.len(), content.images.len(), content.manifests.len()),
        (2, 1, 1)
    );
    assert_eq!(content.blobs.len(), 3);

    let next = previous
        .next(PlannedRun {
            mirrored: &known,
            ..run(&content)
        })
        .unwrap();
    assert_eq!(next.metadata.past_mirror.sequence, 2);
    assert_eq!(next.metadata.past_mirror.associations.len(), 1);
    // Two images, the two parts of one, and the new one.
    assert_eq!(next.metadata.past_associations.len(), 5);
    assert!(next.carried.contains(&blob("base")) && !next.carried.contains(&blob("news")));
    assert_eq!(next.reason_to_stop(), None);

    // A pinned image is known without its registry; under another tag it is new.
    let mut pinned = wanted("r:1/misc/tool:1.0", ImageType::Generic);
    pinned.source = tool;
    let mut renamed = pinned.clone();
    renamed.tag = "other".parse().unwrap();
    let by_tag = wanted("r:1/misc/tool:1.0", ImageType::Generic);
    let all = vec![pinned.clone(), renamed.clone(), by_tag.clone()];
    let (known, others) = previous.split_pinned(all, None).unwrap();
    assert_eq!(
        known.into_iter().map(|it| it.wanted).collect::<Vec<_>>(),
        [pinned]
    );
    assert_eq!(others, [renamed, by_tag]);
}

#[test]
fn runs_without_news_stop() {
    let previous = after_first();
    let mut content = first();
    let known = previous.take_mirrored(&mut content, None).unwrap();
    let next = previous
        .next(PlannedRun {
            mirrored: &known,
            ..run(&content)
        })
        .unwrap();
    let stop = next.reason_to_stop().unwrap();
    assert_eq!(stop, "No new images detected, process stopping");

    // The same bytes under another name have to go somewhere else.
    let again = image_of(&mut content, &["base", "tool"]);
    image(&mut content, "r:1/misc/copy:1", again);
    let next = previous
        .next(PlannedRun {
            mirrored: &known,
            ..run(&content)
        })
        .unwrap();
    assert_eq!(next.reason_to_stop(), None);

    // All images are known, and the catalog is another one.
    let next = previous
        .next(PlannedRun {
            mirrored: &known,
            operators: vec![CatalogStart {
                catalog: "r:1/a/index:v2".to_owned(),
                ..CatalogStart::default()
            }],
            ..run(&ImageContent::default())
        })
        .unwrap();
    assert_eq!(next.reason_to_stop(), None);
}

#[test]
fn unselected_images_leave_the_metadata() {
    let previous = after_first();
    let mut content = first();
    let known = previous.take_mirrored(&mut content, None).unwrap();
    let next = previous
        .next(PlannedRun {
            mirrored: &known[..1],
            ..run(&content)
        })
        .unwrap();
    assert_eq!(next.metadata.past_associations.len(), 1);
    assert!(!next.carried.contains(&blob("other")));

    // Except images that are unavailable this time.
    let failed = [wanted("r:1/misc/many:2", ImageType::Generic)];
    let next = previous
        .next(PlannedRun {
            absent: &failed,
            ..run(&content)
        })
        .unwrap();
    assert_eq!(next.metadata.past_associations.len(), 3);
    assert!(next.carried.contains(&blob("other")));
}

#[test]
fn unavailable_images_stay_in_the_metadata() {
    let content = ImageContent::default();
    // A catalog names it by tag, and it has another one in the target.
    let renamed = [wanted("r:1/misc/many:9", ImageType::Generic)];
    let absent = PlannedRun {
        absent: &renamed,
        ..run(&content)
    };
    let next = after_first().next(absent).unwrap();
    assert_eq!(next.metadata.past_associations.len(), 3);
    // Charts may name all of them.
    let unread = || PlannedRun {
        has_unread_charts: true,
        ..run(&content)
    };
    let next = after_first().next(unread()).unwrap();
    assert_eq!(next.metadata.past_associations.len(), 4);
    assert!(next.carried.contains(&blob("other")));
    // Also where all is mirrored again, but then archives are complete.
    let next = after_first().forgotten().next(unread()).unwrap();
    assert_eq!(next.metadata.past_associations.len(), 4);
    assert_eq!(next.carried, BTreeSet::new());
}

#[test]
fn images_mirrored_again_are_complete_in_the_archive() {
    // The same image at the same place under another tag: readers expect its blobs in the archive.
    let previous = after_first();
    let mut content = first();
    content.images.truncate(1);
    content.images[0].wanted.tag = "other".parse().unwrap();
    content.forget_unused();
    let known = first().images;
    let next = previous
        .next(PlannedRun {
            mirrored: &known[..1],
            ..run(&content)
        })
        .unwrap();
    assert_eq!(next.carried, BTreeSet::new());
    assert_eq!(next.metadata.past_associations.len(), 1);
}

#[test]
fn sets_that_are_carried_once_begin_with_one() {
    let content = first();
    let next = PreviousRuns::default()
        .next(PlannedRun {
            is_single_use: true,
            ..run(&content)
        })
        .unwrap();
    assert!(next.metadata.single_use);
    assert_eq!(next.metadata.past_mirror.sequence, 1);
}

#[test]
fn archives_have_an_order() {
    let metadata = |sequence| {
        let mut metadata = MirrorMetadata::new(Uuid::from_u128(7), false);
        metadata.past_mirror.sequence = sequence;
        metadata
    };
    let text = |there: Option<u64>, own| {
        let there = there.map(metadata);
        step(there.as_ref(), &metadata(own)).map_err(|e| e.to_string())
    };
    assert_eq!(text(None, 1), Ok(SequenceStep::Publish));
    assert_eq!(text(Some(1), 2), Ok(SequenceStep::Publish));
    assert_eq!(text(Some(2), 2), Ok(SequenceStep::Nothing));
    insta::assert_snapshot!(text(None, 2).unwrap_err(), @"expecting imageset with prefix mirror_seq1: invalid mirror sequence order, want 1, got 2: publish the archive of sequence 1 first");
    insta::assert_snapshot!(text(Some(2), 6).unwrap_err(), @"expecting imageset with prefix mirror_seq3: invalid mirror sequence order, want 3, got 6: publish the archives of sequences 3 to 5 first");
    insta::assert_snapshot!(text(Some(3), 2).unwrap_err(), @"expecting imageset with prefix mirror_seq4: invalid mirror sequence order, want 4, got 2: the target has sequence 3 already");
    // The largest number has no next one, but is no reason to fail badly.
    assert!(text(Some(u64::MAX), 1).is_err());
    let mut single = metadata(1);
    single.single_use = true;
    assert_eq!(
        step(Some(&metadata(4)), &single).unwrap(),
        SequenceStep::Publish
    );
    let mut foreign = metadata(2);
    foreign.uid = Uuid::from_u128(8);
    assert!(step(Some(&metadata(1)), &foreign).is_err());
}

fn association(name: &str, path: &str, kind: ImageType) -> Association {
    let id = blob(name).to_string();
    Association {
        name: format!("r:1/{name}@{id}"),
        path: path.into(),
        id,
        kind,
        ..Association::default()
    }
}

#[test]
fn unselected_images_are_pruned() {
    use ImageType::{Generic, OperatorBundle};
    let copied = format!("reg:5000/ns/acme/op@{}", blob("op"));
    let there = [
        association("a", "misc/a", Generic),
        association("b", "misc/b", Generic),
        association("op", &copied, OperatorBundle),
    ];
    let target = target();
    let plan = |coming: &[Association]| Pruning::new(&there, coming, &[], &target).unwrap();
    // The source does not matter.
    let same = [
        there[0].clone(),
        there[1].clone(),
        association("op", "acme/op", OperatorBundle),
    ];
    assert!(plan(&same).is_empty() && !plan(&same).needs_consent());
    // An image that stays elsewhere goes here.
    let moved = [
        there[0].clone(),
        association("b", "misc/c", Generic),
        there[2].clone(),
    ];
    let moved = plan(&moved);
    assert_eq!((moved.images, moved.needs_consent()), (1, false));
    insta::assert_snapshot!(moved.to_json(&target).unwrap(), @r#"
    {
     "registry": "reg:5000",
     "repositories": [
      {
       "name": "ns/misc/b",
       "manifests": [
        "sha256:3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
       ]
      }
     ]
    }
    "#);
    // A whole section is pruned with consent only.
    let without = plan(&there[..2]);
    assert_eq!(without.emptied, [crate::section::Section::Operator]);
    assert!(without.needs_consent());
    assert_eq!(plan(&[]).images, 3);
    let many: Vec<_> = (0..30)
        .map(|n| association(&n.to_string(), "misc/x", Generic))
        .collect();
    assert!(
        Pruning::new(&many, &many[29..], &[], &target)
            .unwrap()
            .needs_consent()
    );
    assert!(
        !Pruning::new(&many, &many[25..], &[], &target)
            .unwrap()
            .needs_consent()
    );
    let wrong = [association("a", "Not A Path", Generic)];
    let refused = Pruning::new(&wrong, &[], &[], &target)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("path of r:1/a@sha256"), "{refused}");
}

#[tokio::test]
async fn folders_keep_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let store = MetadataStore::Folder(folder.path().join("deep/state"));
    assert_eq!(store.read().await.unwrap(), None);
    let metadata = MirrorMetadata::new(Uuid::from_u128(7), false);
    let text = serde_json::to_vec(&metadata).unwrap();
    store.write(Bytes::from(text.clone())).await.unwrap();
    assert_eq!(store.read().await.unwrap().as_ref(), Some(&metadata));
    let file = folder.path().join("deep/state/publish/.metadata.json");
    assert_eq!(std::fs::read(&file).unwrap(), text);
    // Other tools leave the end of a longer file after theirs.
    std::fs::write(&file, [&text, &b"ations\":[]}"[..]].concat()).unwrap();
    assert_eq!(store.read().await.unwrap(), Some(metadata));
    std::fs::write(&file, "{").unwrap();
    let refused = store.read().await.unwrap_err().to_string();
    assert!(refused.contains(".metadata.json"), "{refused}");
    let left = std::fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1);
}
