//! Whether a target has everything of a set.

use mirror::history::{MetadataStore, PreviousRuns};
use mirror::progress::RunProgress;
use mirror::publish::MirrorTarget;
use mirror::run::PlannedCopy;
use mirror::verify_target::{self, Expected, TargetReport};
use model::Error;
use oci::{Manifest, Reference};
use tempfile::TempDir;

use crate::faulty::{Fault, Faulty, Rule};
use crate::runs::{copy, image_set, push_catalog, setup};
use crate::server::Server;

/// A target with the content of a set, and its expected images.
async fn filled() -> (Server, Server, TempDir, Vec<Expected>) {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 2).await;
    let set = image_set(&source);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let store = MetadataStore::Folder(folder.path().join("state"));
    let own = setup(&source, &set, folder.path(), &progress);
    let (to, previous) = (target.target(), PreviousRuns::default());
    let prepared = own.prepare(&previous, Some(&to)).await.unwrap();
    let planned = own
        .plan_copy(&prepared, &previous, &to, Some(&store), true)
        .await;
    let PlannedCopy::Copy(plan) = planned.unwrap() else {
        panic!("nothing was copied yet");
    };
    copy(own, prepared, *plan, &to).await.unwrap();
    let metadata = MetadataStore::all_in_target(&to).await.unwrap();
    let [metadata] = metadata.as_slice() else {
        panic!("one set was copied: {metadata:?}");
    };
    let expected = verify_target::remembered(metadata, &to).await.unwrap();
    assert_eq!(
        expected,
        verify_target::remembered(&store.read().await.unwrap().unwrap(), &to)
            .await
            .unwrap()
    );
    (source, target, folder, expected)
}

/// An image with blobs of its own.
fn bundle(expected: &[Expected]) -> Reference {
    let mut images = expected.iter().map(|it| &it.image);
    let bundle = images.find(|it| it.repository.as_str() == "ns/acme/thing-bundle");
    bundle.unwrap().clone()
}

async fn check(target: &MirrorTarget, expected: &[Expected], is_deep: bool) -> TargetReport {
    verify_target::check(target, expected, is_deep, 4, &RunProgress::default()).await
}

#[tokio::test]
async fn copied_images_are_verified() {
    let (source, target, folder, expected) = filled().await;
    let to = target.target();
    let report = check(&to, &expected, false).await;
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    assert!(report.images >= 4, "three images and a catalog: {report:?}");
    assert_eq!(report.hashed_bytes, 0);
    let deep = check(&to, &expected, true).await;
    assert_eq!((deep.blobs, deep.faults.len()), (report.blobs, 0));
    assert!(deep.hashed_bytes > 0);

    let (set, progress) = (image_set(&source), RunProgress::default());
    let setup = setup(&source, &set, folder.path(), &progress);
    let configured = setup.expected(&set.mirror, &to).await.unwrap();
    assert_eq!(check(&to, &configured, false).await.faults.len(), 0);
    assert!(configured.len() >= 4, "{configured:?}");
}

#[tokio::test]
async fn missing_images_are_reported() {
    let (_source, target, _folder, expected) = filled().await;
    let (to, tool) = (target.target(), bundle(&expected));
    to.client.delete_manifest(&tool).await.unwrap();
    let report = check(&to, &expected, false).await;
    let [(image, Error::NotFound { .. })] = report.faults.as_slice() else {
        panic!("{:?}", report.faults);
    };
    assert_eq!(*image, tool);
}

#[tokio::test]
async fn damage_is_reported() {
    let (_source, target, _folder, expected) = filled().await;
    let tool = bundle(&expected);
    let manifest: Manifest = target.client.pull_manifest(&tool).await.unwrap();
    let layer = manifest.required_blobs().last().unwrap();
    let rule = |method, path: String, fault| Rule {
        method,
        path,
        times: usize::MAX,
        fault,
    };
    let wrong =
        |part: &str| Faulty::start(&target, vec![rule("GET", part.to_owned(), Fault::Wrong)]);
    let damaged = wrong(&format!("-bundle/blobs/{layer}")).await;
    let at = |it: &Faulty| -> Vec<Expected> {
        let mut expected = expected.clone();
        for one in &mut expected {
            one.image.registry = oci::Registry::Host(it.address.clone());
        }
        expected
    };
    // All blobs have the right sizes.
    let report = check(&damaged.target(), &at(&damaged), false).await;
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let report = check(&damaged.target(), &at(&damaged), true).await;
    let [(image, error)] = report.faults.as_slice() else {
        panic!("{:?}", report.faults);
    };
    assert_eq!(image.repository, tool.repository);
    assert!(error.to_string().contains(&layer.to_string()), "{error}");

    let damaged = wrong(&format!("/manifests/{}", manifest.digest)).await;
    let report = check(&damaged.target(), &at(&damaged), false).await;
    assert!(
        matches!(report.faults.as_slice(), [(_, Error::Invalid { .. })]),
        "{:?}",
        report.faults
    );
}
