//! Sets over several runs: out of a registry, into archives, into another registry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use mirror::archive::{ArchiveFormat, ArchiveWriter, Contents, Set, SetPlan, size_limit};
use mirror::content::{SelectedImage, Why};
use mirror::history::{MetadataStore, PlannedRun, PreviousRuns, SequenceStep, held, step};
use mirror::progress::RunProgress;
use mirror::publish::{MirrorTarget, Published, TransferLimits, publish};
use mirror::resolve::resolve;
use model::Error;
use model::image_set::MirrorSelection;
use model::mirror_metadata::ImageType;
use oci::{Digest, Manifest, Reference, media_type};
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use crate::server::Server;

/// A source, and a run that mirrors it.
struct Site {
    source: Server,
    folder: TempDir,
    store: MetadataStore,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            source: Server::start().await,
            store: MetadataStore::Folder(folder.path().join("state")),
            folder,
        }
    }

    fn image(&self, name: &str) -> Reference {
        format!("{}/misc/{name}", self.source.address)
            .parse()
            .unwrap()
    }

    /// Pushes an image of those layers.
    async fn push(&self, name: &str, layers: &[&str]) {
        let (client, reference) = (&self.source.client, self.image(name));
        let mut pushed = Vec::new();
        for layer in layers {
            let bytes = Bytes::from((*layer).to_owned());
            let layer = client
                .push_blob_bytes(&reference, media_type::OCI_LAYER, bytes)
                .await;
            pushed.push(layer.unwrap());
        }
        let config = json!({"author": name}).to_string().into();
        let config = client
            .push_blob_bytes(&reference, media_type::OCI_CONFIG, config)
            .await;
        let manifest = json!({"schemaVersion": 2, "config": config.unwrap(), "layers": pushed});
        let manifest = Manifest::parse(manifest.to_string().into(), None).unwrap();
        client.push_manifest(&reference, &manifest).await.unwrap();
    }

    /// Mirrors these images; the archive, or the reason to stop.
    async fn carry(&self, names: &[&str]) -> Result<PathBuf, &'static str> {
        let client = &self.source.client;
        let wanted = names.iter().map(|name| wanted(self.image(name))).collect();
        let resolved = resolve(client, wanted, 2, &RunProgress::default()).await;
        assert!(resolved.failed.is_empty(), "{:?}", resolved.failed);
        let mut content = resolved.content;
        let previous = PreviousRuns::new(self.store.read().await.unwrap());
        let known = previous.take_mirrored(&mut content, None).unwrap();
        let run = PlannedRun {
            uid: Uuid::from_u128(7),
            is_single_use: false,
            timestamp: 1_795_241_937,
            mirror: MirrorSelection::default(),
            operators: Vec::new(),
            platforms: Vec::new(),
            content: &content,
            mirrored: &known,
            absent: &[],
            has_unread_charts: false,
            target: None,
        };
        let next = previous.next(run).unwrap();
        if let Some(reason) = next.reason_to_stop() {
            return Err(reason);
        }
        let metadata = Bytes::from(serde_json::to_vec(&next.metadata).unwrap());
        let contents = Contents {
            format: ArchiveFormat::V1,
            metadata: metadata.clone(),
            extras: Vec::new(),
            content: &content,
            local: &BTreeMap::new(),
            carried: &next.carried,
        };
        let plan = SetPlan::new(contents, size_limit(None), None).unwrap();
        let sequence = plan.sequence;
        let folder = self.folder.path().join(sequence.to_string());
        let writer = ArchiveWriter::open(&folder, plan).unwrap();
        for missing in writer.missing() {
            let mut blob = writer.blob(&missing.digest).unwrap().unwrap();
            blob.write(&self.fetch(&missing.digest, names).await)
                .unwrap();
            blob.finish().unwrap();
        }
        writer.finish().unwrap();
        self.store.write(metadata).await.unwrap();
        Ok(folder)
    }

    async fn fetch(&self, digest: &Digest, names: &[&str]) -> Bytes {
        let client = &self.source.client;
        for name in names {
            let reference = self.image(name);
            let Some(size) = client.blob_size(&reference, digest).await.unwrap() else {
                continue;
            };
            let blob = oci::Descriptor {
                media_type: String::new(),
                digest: digest.clone(),
                size,
                platform: None,
                annotations: None,
            };
            return client
                .pull_blob_bytes(&reference, &blob, 1 << 20)
                .await
                .unwrap();
        }
        panic!("nobody has {digest}");
    }
}

fn wanted(source: Reference) -> SelectedImage {
    SelectedImage {
        repository: source.repository.clone(),
        tag: source.tag.clone().unwrap(),
        source,
        kind: ImageType::Generic,
        why: vec![Why::Additional],
        platforms: Vec::new(),
        may_be_missing: false,
    }
}

/// Publishes an archive, if the target is to have it.
async fn receive(archive: &Path, target: &MirrorTarget) -> Result<Option<Published>, Error> {
    let set = Set::open(archive)?;
    let store = MetadataStore::in_target(target, set.metadata().uid)?;
    let there = store.read().await?;
    if step(there.as_ref(), set.metadata())? == SequenceStep::Nothing {
        return Ok(None);
    }
    let limits = TransferLimits {
        parallel: 2,
        continue_on_error: false,
    };
    let content = set.content()?;
    let past = there.map_or(Vec::new(), |there| there.past_associations);
    let held = held(&past, target)?;
    let published = publish(
        &content,
        &set,
        target,
        held,
        limits,
        &RunProgress::default(),
    )
    .await;
    assert!(published.failed.is_empty(), "{:?}", published.failed);
    store.write(set.stored_metadata().clone()).await?;
    Ok(Some(published))
}

#[tokio::test]
async fn later_archives_are_differential_and_ordered() {
    let site = Site::new().await;
    site.push("a:1", &["base", "a"]).await;
    let first = site.carry(&["a:1"]).await.unwrap();
    assert_eq!(
        site.carry(&["a:1"]).await,
        Err("No new images detected, process stopping")
    );

    site.push("b:1", &["base", "b"]).await;
    let second = site.carry(&["a:1", "b:1"]).await.unwrap();
    let set = Set::open(&second).unwrap();
    let has = |blob: &str| set.blob(&Digest::sha256(blob.as_bytes())).is_some();
    assert_eq!([has("base"), has("b")], [false, true]);
    assert_eq!(set.content().unwrap().images.len(), 1);

    let receiver = Server::start().await;
    let target = receiver.target();
    let early = receive(&second, &target).await.unwrap_err().to_string();
    assert!(early.contains("mirror_seq1"), "{early}");
    // A configuration each, and the layers that were not there.
    for (archive, sent) in [(&first, 3), (&second, 2)] {
        let published = receive(archive, &target).await.unwrap().unwrap();
        assert_eq!((published.images.len(), published.sent.items), (1, sent));
    }
    assert!(receive(&second, &target).await.unwrap().is_none());
    for name in ["a:1", "b:1"] {
        let there: Reference = format!("{}/ns/misc/{name}", receiver.address)
            .parse()
            .unwrap();
        let there = receiver.client.manifest_digest(&there).await.unwrap();
        let source = site
            .source
            .client
            .manifest_digest(&site.image(name))
            .await
            .unwrap();
        assert_eq!((there.is_some(), there), (true, source), "{name}");
    }
}

#[tokio::test]
async fn a_tag_that_moves_is_carried_again() {
    let site = Site::new().await;
    site.push("a:1", &["base", "a"]).await;
    site.carry(&["a:1"]).await.unwrap();
    site.push("a:1", &["base", "a, but newer"]).await;
    let second = Set::open(&site.carry(&["a:1"]).await.unwrap()).unwrap();
    let metadata = second.metadata();
    // The old image is not selected any more: its content may not be left out.
    assert_eq!(
        metadata.past_associations,
        metadata.past_mirror.associations
    );
    assert!(second.blob(&Digest::sha256(b"base")).is_some());
}
