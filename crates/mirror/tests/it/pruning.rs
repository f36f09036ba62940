//! Pruning of a target, in whole runs.

use std::path::Path;

use mirror::archive::Set;
use mirror::deletion;
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::progress::RunProgress;
use mirror::publish::MirrorTarget;
use mirror::run::{CopyPlan, PlannedArchives, PlannedCopy, RunOutcome};
use mirror::verify_target;
use model::Error;
use model::image_set::{ImageSet, Storage};
use serde_json::json;

use crate::releases::index;
use crate::runs::{Setup, additional, copy, push, reference, setup, unpack};
use crate::server::Server;

/// A source with images, and a target.
struct Site {
    source: Server,
    target: Server,
    folder: tempfile::TempDir,
    store: MetadataStore,
}

impl Site {
    async fn new(target: Server) -> Self {
        let source = Server::start().await;
        for name in ["acme/a:v1", "acme/b:v1", "acme/c:v1"] {
            push(&source, name, name.into(), json!({})).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let store = MetadataStore::Folder(folder.path().join("state"));
        Self {
            source,
            target,
            folder,
            store,
        }
    }

    /// A set with history.
    fn set(&self, names: &[&str]) -> ImageSet {
        ImageSet {
            storage: Some(Storage::Local {
                path: "unused".into(),
            }),
            ..additional(&self.source, names)
        }
    }

    /// Plans a copy of images as the next run of a set, and does it; nothing where there is nothing to be done.
    async fn copy(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CopyPlan),
    ) -> Result<Option<RunOutcome>, Error> {
        self.copy_as(names, false, change).await
    }

    /// The same, with `continue_on_error`.
    async fn copy_as(
        &self,
        names: &[&str],
        continue_on_error: bool,
        change: impl FnOnce(&mut CopyPlan),
    ) -> Result<Option<RunOutcome>, Error> {
        let set = self.set(names);
        let progress = RunProgress::default();
        let mut setup = setup(&self.source, &set, self.folder.path(), &progress);
        setup.context.limits.continue_on_error = continue_on_error;
        let target = self.target.target();
        let previous = PreviousRuns::new(self.store.read().await?);
        let previous = previous.in_target(&target).await?;
        let prepared = setup.prepare(&previous, Some(&target)).await?;
        let store = Some(&self.store);
        match setup
            .plan_copy(&prepared, &previous, &target, store, true)
            .await?
        {
            PlannedCopy::Nothing(_) => Ok(None),
            PlannedCopy::Copy(mut plan) => {
                change(&mut plan);
                let copied = copy(setup, prepared, *plan, &target).await;
                copied.map(Some)
            }
        }
    }

    /// Packs images as the next run of a set.
    async fn pack(&self, names: &[&str], dest: &Path) -> Set {
        let set = self.set(names);
        let progress = RunProgress::default();
        let setup = setup(&self.source, &set, self.folder.path(), &progress);
        let previous = PreviousRuns::new(self.store.read().await.unwrap());
        let prepared = setup.prepare(&previous, None).await.unwrap();
        let PlannedArchives::Archives(archives) =
            setup.plan_archives(&prepared, &previous, None).unwrap()
        else {
            panic!("there is something new");
        };
        let packed = setup
            .write_archives(*archives, Some(&self.store), dest)
            .await;
        packed.unwrap();
        Set::open(dest).unwrap()
    }

    async fn publish(
        &self,
        archives: Set,
        target: &MirrorTarget,
    ) -> Result<Option<RunOutcome>, Error> {
        let (set, progress) = (additional(&self.source, &[]), RunProgress::default());
        let setup: Setup<'_> = setup(&self.source, &set, self.folder.path(), &progress);
        unpack(setup, archives, target).await
    }

    async fn has(&self, name: &str) -> bool {
        let name = reference(&self.target, &format!("ns/{name}"));
        let digest = self.target.client.manifest_digest(&name).await.unwrap();
        digest.is_some()
    }

    /// The sequence in the target's metadata.
    async fn sequence(&self) -> Option<u64> {
        let stored = self.store.read().await.unwrap().unwrap();
        let there = MetadataStore::in_target(&self.target.target(), stored.uid).unwrap();
        let there = there.read().await.unwrap();
        there.map(|it| it.past_mirror.sequence)
    }
}

#[tokio::test]
async fn copies_record_their_images() {
    let site = Site::new(Server::start().await).await;
    let first = site
        .copy(&["acme/a:v1", "acme/b:v1"], |_| {})
        .await
        .unwrap();
    assert_eq!(first.unwrap().results.images.len(), 2);
    assert_eq!(site.sequence().await, Some(1));
    let again = site
        .copy(&["acme/a:v1", "acme/b:v1"], |_| {})
        .await
        .unwrap();
    assert!(again.is_none());
    let fewer = site.copy(&["acme/a:v1"], |plan| {
        assert_eq!(plan.pruning.images, 1);
        assert!(!plan.pruning.needs_consent());
    });
    let fewer = fewer.await.unwrap().unwrap();
    assert_eq!((fewer.pruned, fewer.stayed.len()), (1, 0));
    // It was not copied again, and policies have it.
    assert_eq!(fewer.results.previous.len(), 1);
    assert_eq!(fewer.results.images.len(), 0);
    assert!(site.has("acme/a:v1").await);
    assert!(!site.has("acme/b:v1").await);
    assert_eq!(site.sequence().await, Some(2));
}

#[tokio::test]
async fn skipped_pruning_keeps_unselected_images() {
    let site = Site::new(Server::start().await).await;
    site.copy(&["acme/a:v1", "acme/b:v1"], |_| {})
        .await
        .unwrap();
    let keep = |plan: &mut CopyPlan| {
        std::mem::take(&mut plan.pruning);
    };
    site.copy(&["acme/a:v1"], keep).await.unwrap();
    assert!(site.has("acme/b:v1").await);
    assert_eq!(site.sequence().await, Some(2));
}

#[tokio::test]
async fn a_target_without_the_set_takes_a_complete_run() {
    let site = Site::new(Server::start().await).await;
    site.copy(&["acme/a:v1"], |_| {}).await.unwrap();
    let elsewhere = Site {
        target: Server::start().await,
        ..site
    };
    let copied = elsewhere.copy(&["acme/a:v1", "acme/b:v1"], |_| {}).await;
    assert!(copied.unwrap().is_some());
    assert!(elsewhere.has("acme/a:v1").await && elsewhere.has("acme/b:v1").await);
    assert_eq!(elsewhere.sequence().await, Some(2));
}

#[tokio::test]
async fn archives_take_images_out_of_the_target() {
    let site = Site::new(Server::start().await).await;
    let target = site.target.target();
    let folder = site.folder.path();
    let first = site.pack(&["acme/a:v1"], &folder.join("1")).await;
    let second = site.pack(&["acme/b:v1"], &folder.join("2")).await;
    site.publish(first, &target).await.unwrap();
    assert!(site.has("acme/a:v1").await);
    let done = site.publish(second, &target).await.unwrap().unwrap();
    assert_eq!(done.pruned, 1);
    assert!(!site.has("acme/a:v1").await);
    assert!(site.has("acme/b:v1").await);
    assert_eq!(site.sequence().await, Some(2));
}

#[tokio::test]
async fn failed_deletions_are_retried() {
    let target = Server::with(|settings| settings.registry_storage_delete_enabled = false).await;
    let site = Site::new(target).await;
    site.copy(&["acme/a:v1", "acme/b:v1"], |_| {})
        .await
        .unwrap();
    for _ in 0..2 {
        let failed = site.copy(&["acme/a:v1"], |plan| assert_eq!(plan.pruning.images, 1));
        let failed = failed.await.unwrap_err();
        assert!(matches!(failed, Error::Conflict { .. }), "{failed}");
        assert_eq!(site.sequence().await, Some(1));
    }
    // Also where the run continues on errors: the metadata keeps undeleted images.
    for sequence in 2..4 {
        let check = |plan: &mut CopyPlan| assert_eq!(plan.pruning.images, 1);
        let done = site.copy_as(&["acme/a:v1"], true, check).await;
        assert_eq!(done.unwrap().unwrap().stayed.len(), 1);
        assert_eq!(site.sequence().await, Some(sequence));
    }
}

#[tokio::test]
async fn images_of_other_sets_stay() {
    let site = Site::new(Server::start().await).await;
    let other = MetadataStore::Folder(site.folder.path().join("other"));
    site.copy(&["acme/a:v1", "acme/b:v1"], |_| {})
        .await
        .unwrap();
    let other = Site {
        store: other,
        ..site
    };
    other.copy(&["acme/b:v1"], |_| {}).await.unwrap();
    let first = MetadataStore::Folder(other.folder.path().join("state"));
    let site = Site {
        store: first,
        ..other
    };
    let none = |plan: &mut CopyPlan| assert!(plan.pruning.is_empty(), "{:?}", plan.pruning);
    site.copy(&["acme/a:v1", "acme/c:v1"], none).await.unwrap();
    assert!(site.has("acme/b:v1").await);
}

#[tokio::test]
async fn images_deleted_by_a_list_are_mirrored_again() {
    let site = Site::new(Server::start().await).await;
    let part = |name: &'static str| push(&site.source, name, name.into(), json!({}));
    let parts = [part("acme/multi:a").await, part("acme/multi:b").await];
    index(&site.source, "acme/multi:v1", [&parts[0], &parts[1]]).await;
    let names = ["acme/a:v1", "acme/multi:v1"];
    site.copy(&names, |_| {}).await.unwrap();

    let (to, progress) = (site.target.target(), RunProgress::default());
    let set = site.set(&["acme/multi:v1"]);
    let setup = setup(&site.source, &set, site.folder.path(), &progress);
    let planned = setup.plan_deletion(&set.mirror, &to, false).await;
    let (deleted, failed) = deletion::delete(&planned.unwrap().list, &to, 2).await;
    assert_eq!((deleted, failed.len()), (1, 0), "{failed:?}");
    // The metadata has neither the index nor its parts.
    let metadata = MetadataStore::all_in_target(&to).await.unwrap().remove(0);
    let expected = verify_target::remembered(&metadata, &to).await.unwrap();
    let expected: Vec<_> = expected.iter().map(|it| &it.image.repository).collect();
    assert_eq!(expected, [&"ns/acme/a".parse().unwrap()]);

    let again = site.copy(&names, |_| {}).await.unwrap().unwrap();
    assert_eq!(again.results.images.len(), 1);
    assert!(site.has("acme/multi:v1").await);
    assert_eq!(site.sequence().await, Some(2));
    assert!(site.copy(&names, |_| {}).await.unwrap().is_none());
}
