//! Deletion of images by lists.

use std::collections::BTreeSet;

use mirror::deletion::{self, List};
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::progress::RunProgress;
use mirror::run::{CatalogForm, CopyPlan};
use mirror::verify_target;
use model::image_set::{
    ImageSelection, ImageSet, IncludePackage, MirrorSelection, OperatorSelection,
};
use serde_json::json;
use tempfile::TempDir;

use crate::layouts::layout_of;
use crate::releases::index;
use crate::runs::{Setup, image_set, push, push_catalog, reference, setup};
use crate::server::Server;
use crate::target_view::copied;

/// A target with two packages that need the same tool, and another image.
async fn filled() -> (Server, Server, TempDir) {
    filled_with(CatalogForm::Pinned).await
}

async fn filled_with(catalogs: CatalogForm) -> (Server, Server, TempDir) {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 1).await;
    push(&source, "acme/single:v1", b"single".to_vec(), json!({})).await;
    let mut set = image_set(&source);
    set.mirror.additional_images = vec![image(&source, "acme/single:v1")];
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let own = setup(&source, &set, folder.path(), &progress).with(|_, context| {
        context.catalogs = catalogs;
    });
    let prepared = own.prepare(&PreviousRuns::default(), None).await.unwrap();
    own.copy(prepared, CopyPlan::default(), &target.target())
        .await
        .unwrap();
    (source, target, folder)
}

fn image(server: &Server, name: &str) -> ImageSelection {
    ImageSelection {
        name: reference(server, name).to_string(),
        ..ImageSelection::default()
    }
}

fn deleted(images: Vec<ImageSelection>) -> MirrorSelection {
    MirrorSelection {
        additional_images: images,
        ..MirrorSelection::default()
    }
}

/// Package `thing` of the catalog.
fn thing(source: &Server) -> MirrorSelection {
    MirrorSelection {
        operators: vec![OperatorSelection {
            catalog: reference(source, "acme/index:v1").to_string(),
            full: true,
            packages: vec![IncludePackage {
                name: "thing".into(),
                ..IncludePackage::default()
            }],
            ..OperatorSelection::default()
        }],
        ..MirrorSelection::default()
    }
}

fn names(list: &List) -> BTreeSet<String> {
    let names = list
        .items
        .iter()
        .map(|item| item.image.repository.to_string());
    names.collect()
}

fn of(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn required_images_stay() {
    for catalogs in [CatalogForm::Pinned, CatalogForm::Tagged] {
        required_images_stay_in(catalogs).await;
    }
}

async fn required_images_stay_in(catalogs: CatalogForm) {
    let (source, target, folder) = filled_with(catalogs).await;
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let setup: Setup<'_> = setup(&source, &set, folder.path(), &progress);
    let to = target.target();
    let planned = setup
        .plan_deletion(&thing(&source), &to, false)
        .await
        .unwrap();
    assert_eq!(names(&planned.list), of(&["ns/acme/thing-bundle"]));
    let [(kept, why)] = planned.kept.as_slice() else {
        panic!("the tool stays: {:?}", planned.kept);
    };
    assert_eq!(kept.repository.as_str(), "ns/acme/tool");
    assert!(why.contains("other.v1.0.0"), "{why}");

    // The list goes through a file.
    let list = List::from_yaml(&planned.list.to_yaml().unwrap(), &to).unwrap();
    let (deleted, failed) = deletion::delete(&list, &to, 2).await;
    assert_eq!((deleted, failed.len()), (1, 0));
    assert_eq!(
        to.client
            .manifest_digest(&list.items[0].image)
            .await
            .unwrap(),
        None
    );
    assert!(to.client.manifest_digest(kept).await.unwrap().is_some());
    let (deleted, failed) = deletion::delete(&list, &to, 2).await;
    assert_eq!(
        (deleted, failed.len()),
        (0, 0),
        "the second time it has gone"
    );
}

#[tokio::test]
async fn images_that_other_tags_name_stay() {
    let (source, target, folder) = filled().await;
    for tag in ["v1", "v2"] {
        push(
            &target,
            &format!("ns/acme/single:{tag}"),
            b"single".to_vec(),
            json!({}),
        )
        .await;
    }
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let setup: Setup<'_> = setup(&source, &set, folder.path(), &progress);
    let to = target.target();
    let images = ["v1", "v2"].map(|tag| image(&source, &format!("acme/single:{tag}")));
    let one = deleted(images[..1].to_vec());
    let planned = setup.plan_deletion(&one, &to, false).await.unwrap();
    assert!(planned.list.items.is_empty(), "{:?}", planned.list);
    let [(kept, why)] = planned.kept.as_slice() else {
        panic!("the image stays: {:?}", planned.kept);
    };
    assert_eq!(kept.repository.as_str(), "ns/acme/single");
    assert!(why.contains("the tag v2,"), "{why}");
    let both = deleted(images.to_vec());
    let planned = setup.plan_deletion(&both, &to, false).await.unwrap();
    assert_eq!((planned.list.items.len(), planned.kept.len()), (1, 0));
}

#[tokio::test]
async fn images_of_the_same_catalog_under_another_tag_stay() {
    let (source, target, folder) = filled().await;
    let to = target.target();
    let catalog = reference(&target, "ns/acme/index:v1");
    let digest = to.client.manifest_digest(&catalog).await.unwrap().unwrap();
    let manifest = to
        .client
        .pull_manifest(&catalog.with_digest(digest))
        .await
        .unwrap();
    let other = reference(&target, "ns/acme/index:v0");
    to.client.push_manifest(&other, &manifest).await.unwrap();
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let setup: Setup<'_> = setup(&source, &set, folder.path(), &progress);
    let planned = setup
        .plan_deletion(&thing(&source), &to, false)
        .await
        .unwrap();
    assert!(planned.list.items.is_empty(), "{:?}", planned.list);
    assert_eq!(planned.kept.len(), 2);
    assert!(planned.kept[0].1.contains("index:v0"), "{:?}", planned.kept);
}

#[tokio::test]
async fn additional_images_are_deleted_with_their_artifacts() {
    let (source, target, folder) = filled().await;
    let to = target.target();
    let single = reference(&target, "ns/acme/single:v1");
    let digest = to.client.manifest_digest(&single).await.unwrap().unwrap();
    let signature = format!("acme/single:sha256-{}.sig", digest.hex());
    push(
        &target,
        &format!("ns/{signature}"),
        b"signature".to_vec(),
        json!({}),
    )
    .await;
    let delete = deleted(vec![
        image(&source, "acme/single:v1"),
        image(&source, "acme/none:v1"),
    ]);
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let setup: Setup<'_> = setup(&source, &set, folder.path(), &progress);
    for (with_attached, count) in [(false, 1), (true, 2)] {
        let planned = setup
            .plan_deletion(&delete, &to, with_attached)
            .await
            .unwrap();
        assert_eq!((planned.list.items.len(), planned.missing), (count, 1));
        if with_attached {
            let (deleted, failed) = deletion::delete(&planned.list, &to, 2).await;
            assert_eq!((deleted, failed.len()), (2, 0));
        }
    }
    for gone in ["ns/acme/single:v1", &format!("ns/{signature}")] {
        let gone = reference(&target, gone);
        assert_eq!(to.client.manifest_digest(&gone).await.unwrap(), None);
    }
}

#[tokio::test]
async fn artifacts_of_parts_are_deleted_with_their_index() {
    let (source, target, folder) = filled().await;
    let part = |name: &'static str| push(&target, name, name.as_bytes().to_vec(), json!({}));
    let parts = [part("ns/acme/multi:a").await, part("ns/acme/multi:b").await];
    index(&target, "ns/acme/multi:v1", [&parts[0], &parts[1]]).await;
    let signature = format!("ns/acme/multi:sha256-{}.sig", parts[1].hex());
    push(&target, &signature, b"signature".to_vec(), json!({})).await;
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let setup: Setup<'_> = setup(&source, &set, folder.path(), &progress);
    let delete = deleted(vec![image(&source, "acme/multi:v1")]);
    let planned = setup.plan_deletion(&delete, &target.target(), true).await;
    let images = planned.unwrap().list.items.into_iter().map(|it| it.image);
    let images: Vec<_> = images.collect();
    assert_eq!(images.len(), 2, "{images:?}");
    assert!(images.contains(&reference(&target, &signature)));
}

#[tokio::test]
async fn images_of_layout_catalogs_stay() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 1).await;
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let layout = layout_of(&source, "acme/index:v1", folder.path()).await;
    let operator = |catalog: String, package: &str| OperatorSelection {
        catalog,
        skip_dependencies: true,
        packages: vec![IncludePackage {
            name: package.into(),
            ..IncludePackage::default()
        }],
        ..OperatorSelection::default()
    };
    let named = reference(&source, "acme/index:v1").to_string();
    let in_folder = OperatorSelection {
        target_catalog: "acme/folder".into(),
        ..operator(layout, "other")
    };
    let mut set = ImageSet::default();
    set.mirror.operators = vec![operator(named, "thing"), in_folder.clone()];
    let (setup, to) = (
        setup(&source, &set, folder.path(), &progress),
        target.target(),
    );
    copied(setup, &to, &folder.path().join("state")).await;

    // The target has the tag of its digest.
    let metadata = MetadataStore::all_in_target(&to).await.unwrap().remove(0);
    let expected = verify_target::remembered(&metadata, &to).await.unwrap();
    let report = verify_target::check(&to, &expected, false, 4, &progress).await;
    assert!(report.faults.is_empty(), "{:?}", report.faults);

    let planned = setup
        .plan_deletion(&thing(&source), &to, false)
        .await
        .unwrap();
    assert_eq!(names(&planned.list), of(&["ns/acme/thing-bundle"]));
    let (tool, why) = &planned.kept[0];
    assert_eq!(tool.repository.as_str(), "ns/acme/tool");
    assert!(why.contains("other.v1.0.0"), "{why}");
    let unknown = planned.notes.last().unwrap();
    assert!(unknown.contains("without storageConfig"), "{unknown}");

    let other = MirrorSelection {
        operators: vec![in_folder],
        ..MirrorSelection::default()
    };
    let planned = setup.plan_deletion(&other, &to, false).await.unwrap();
    assert_eq!(names(&planned.list), of(&["ns/acme/other-bundle"]));
}
