//! Strict targets: without cross-repository mounts, or with indexes only when all their parts are there.

use mirror::Error;
use mirror::archive::Set;
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::progress::RunProgress;
use mirror::run::{self, CopyPlan, PlannedArchives};
use model::image_set::{ImageSelection, ImageSet, Instance, Storage};
use oci::{Digest, Manifest};
use registry::PlatformChecks;
use serde_json::json;

use crate::faulty::{Fault, Faulty, Rule};
use crate::runs::{additional, push, reference, setup, unpack};
use crate::server::Server;

#[tokio::test]
async fn later_archives_reach_registries_that_do_not_mount() {
    let (source, target) = (Server::start().await, Server::start().await);
    let layer = b"a layer of both".to_vec();
    push(&source, "acme/a:v1", layer.clone(), json!({"Env": ["A=1"]})).await;
    push(&source, "acme/b:v1", layer, json!({"Env": ["B=1"]})).await;
    let rule = Rule {
        method: "POST",
        path: "mount=".into(),
        times: usize::MAX,
        fault: Fault::NotMounted,
    };
    let to = Faulty::start(&target, vec![rule]).await;
    let folder = tempfile::tempdir().unwrap();
    let store = MetadataStore::Folder(folder.path().join("state"));
    for names in [&["acme/a:v1"][..], &["acme/a:v1", "acme/b:v1"]] {
        let set = ImageSet {
            storage: Some(Storage::Local {
                path: "unused".into(),
            }),
            ..additional(&source, names)
        };
        let progress = RunProgress::default();
        let setup = setup(&source, &set, folder.path(), &progress);
        let previous = PreviousRuns::new(store.read().await.unwrap());
        let prepared = setup.prepare(&previous, None).await.unwrap();
        let PlannedArchives::Archives(archives) =
            setup.plan_archives(&prepared, &previous, None).unwrap()
        else {
            panic!("there is something new");
        };
        let dest = folder.path().join(names.len().to_string());
        let packed = setup.write_archives(*archives, Some(&store), &dest).await;
        packed.unwrap();
        let published = unpack(setup, Set::open(&dest).unwrap(), &to.target()).await;
        assert!(published.unwrap().is_some());
    }
    let there = reference(&target, "ns/acme/b:v1");
    assert!(target.client.pull_manifest(&there).await.is_ok());
}

/// A source with an index of two parts, and the mirrored one.
struct Multi {
    source: Server,
    parts: [Digest; 2],
    folder: tempfile::TempDir,
}

impl Multi {
    async fn new() -> Self {
        let source = Server::start().await;
        let mut entries = Vec::new();
        let mut parts = Vec::new();
        for architecture in ["amd64", "arm64"] {
            let name = format!("acme/multi:{architecture}");
            let digest = push(&source, &name, architecture.into(), json!({})).await;
            let part = reference(&source, &name).with_digest(digest.clone());
            let part = source.client.pull_manifest(&part).await.unwrap();
            let mut entry = serde_json::to_value(part.descriptor()).unwrap();
            entry["platform"] = json!({"os": "linux", "architecture": architecture});
            entries.push(entry);
            parts.push(digest);
        }
        let index = json!({
            "schemaVersion": 2,
            "mediaType": oci::media_type::OCI_INDEX,
            "manifests": entries,
        });
        let index = Manifest::parse(index.to_string().into(), None).unwrap();
        let name = reference(&source, "acme/multi:v1");
        source.client.push_manifest(&name, &index).await.unwrap();
        Self {
            source,
            parts: parts.try_into().unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Copies the index with those parts, as far as previous runs did not.
    async fn copy(&self, architectures: &[&str], target: &Server) -> Result<(), Error> {
        let instance = |architecture: &&str| Instance {
            os: "linux".into(),
            architecture: (*architecture).to_owned(),
        };
        let mut set = ImageSet {
            storage: Some(Storage::Local {
                path: "unused".into(),
            }),
            ..ImageSet::default()
        };
        let name = reference(&self.source, "acme/multi:v1");
        let digest = self.source.client.manifest_digest(&name).await?.unwrap();
        set.mirror.additional_images.push(ImageSelection {
            name: name.with_digest(digest).to_string(),
            platforms: architectures.iter().map(instance).collect(),
            ..ImageSelection::default()
        });
        let (progress, target) = (RunProgress::default(), target.target());
        let setup = setup(&self.source, &set, self.folder.path(), &progress);
        let store = MetadataStore::Folder(self.folder.path().join("state"));
        let previous = PreviousRuns::new(store.read().await?);
        let prepared = setup.prepare(&previous, Some(&target)).await?;
        let planned = setup.plan_copy(&prepared, &previous, &target, Some(&store), true);
        match planned.await? {
            run::PlannedCopy::Copy(plan) => setup.copy(prepared, *plan, &target).await,
            run::PlannedCopy::Nothing(_) => {
                setup.copy(prepared, CopyPlan::default(), &target).await
            }
        }?;
        Ok(())
    }
}

#[tokio::test]
async fn platforms_that_are_wanted_later_come_later() {
    let multi = Multi::new().await;
    // Our own registry takes them without a setting.
    let target = Server::start().await;
    let there = async || {
        let mut there = Vec::new();
        for part in &multi.parts {
            let part = reference(&target, "ns/acme/multi").with_digest(part.clone());
            there.push(
                target
                    .client
                    .manifest_digest(&part)
                    .await
                    .unwrap()
                    .is_some(),
            );
        }
        there
    };
    multi.copy(&["amd64"], &target).await.unwrap();
    assert_eq!(there().await, [true, false]);
    multi.copy(&["amd64", "arm64"], &target).await.unwrap();
    assert_eq!(there().await, [true, true]);
}

#[tokio::test]
async fn registries_that_want_all_platforms_are_explained() {
    let multi = Multi::new().await;
    let all = |it: &mut registry::Settings| {
        it.registry_validation_manifests_indexes_platforms = PlatformChecks::All;
    };
    let target = Server::with(all).await;
    let refused = multi.copy(&["amd64"], &target).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("mirror all, or let it take others"), "{text}");
    multi.copy(&["amd64", "arm64"], &target).await.unwrap();
}
