//! Content of runs while registries fail, and its comparison.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mirror::archive::{self, ArchiveSource, Set};
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::progress::RunProgress;
use mirror::run::{CopyPlan, PlannedArchives};
use model::Error;
use model::image_set::{ImageSelection, ImageSet};
use oci::Digest;
use oci_client::{Client, ClientOptions};
use serde_json::json;
use tempfile::TempDir;

use crate::faulty::Faulty;
use crate::runs::{image_set_of, push, push_catalog_of, reference, setup, unpack};
use crate::server::Server;

/// More than goes into one piece.
pub(crate) const LAYER_BYTES: usize = 300_000;
/// A source with a catalog, its images, an attached artifact, and an image with a shared layer.
pub(crate) struct World {
    pub(crate) source: Server,
    pub(crate) from: Faulty,
    folder: TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        let source = Server::start().await;
        let from = Faulty::start(&source, Vec::new()).await;
        push_catalog_of(&source, &from.address, 1).await;
        let layer = || vec![7; LAYER_BYTES];
        let tool = push(&source, "acme/tool:v1", layer(), json!({})).await;
        push(&source, "acme/twin:v1", layer(), json!({"Env": ["A=b"]})).await;
        let signature = format!("acme/tool:sha256-{}.sig", tool.hex());
        push(&source, &signature, b"signature".to_vec(), json!({})).await;
        let folder = tempfile::tempdir().unwrap();
        Self {
            source,
            from,
            folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn set(&self) -> ImageSet {
        let mut set = image_set_of(&self.from.address);
        set.mirror.additional_images.push(ImageSelection {
            name: format!("{}/acme/twin:v1", self.from.address),
            ..ImageSelection::default()
        });
        set
    }

    /// Packs into a folder of that name. The metadata is kept at the source.
    pub(crate) async fn pack(&self, client: &Client, name: &str) -> Result<PathBuf, Error> {
        let (set, progress, folder) = (self.set(), RunProgress::default(), self.path(name));
        let setup = setup(&self.source, &set, &folder, &progress).with(|sources, _| {
            sources.client = client;
        });
        let store = MetadataStore::Image {
            client: client.clone(),
            reference: format!("{}/own/state:{name}", self.from.address)
                .parse()
                .unwrap(),
        };
        let previous = PreviousRuns::new(store.read().await?);
        let prepared = setup.prepare(&previous, None).await?;
        let PlannedArchives::Archives(archives) =
            setup.plan_archives(&prepared, &previous, None)?
        else {
            return Err(Error::conflict(format!("{name} is remembered already")));
        };
        let out = folder.join("out");
        setup.write_archives(*archives, Some(&store), &out).await?;
        Ok(out)
    }

    pub(crate) async fn publish(
        &self,
        client: &Client,
        archives: impl Into<ArchiveSource>,
        to: &Faulty,
    ) -> Result<(), Error> {
        let (set, progress) = (ImageSet::default(), RunProgress::default());
        let workspace = self.path("publishing");
        let setup = setup(&self.source, &set, &workspace, &progress);
        let mut target = to.target();
        target.client = client.clone();
        let archives = archives.into();
        let opened = tokio::task::spawn_blocking(move || Set::open(archives)).await;
        match unpack(setup, opened.unwrap()?, &target).await? {
            Some(_) => Ok(()),
            None => Err(Error::conflict("the target remembers it already")),
        }
    }

    /// Copies from registry to registry.
    pub(crate) async fn copy(&self, client: &Client, to: &Faulty) -> Result<(), Error> {
        let (set, progress) = (self.set(), RunProgress::default());
        let workspace = self.path("copying");
        let setup = setup(&self.source, &set, &workspace, &progress).with(|sources, _| {
            sources.client = client;
        });
        let mut target = to.target();
        target.client = client.clone();
        let prepared = setup.prepare(&PreviousRuns::default(), None).await?;
        let copied = setup.copy(prepared, CopyPlan::default(), &target).await;
        copied.map(drop)
    }
}

/// One that does not try anything twice.
pub(crate) fn impatient() -> Client {
    client(Some(1))
}

pub(crate) fn client(attempts: Option<u32>) -> Client {
    let options = ClientOptions {
        plain_http: true,
        attempts,
        ..ClientOptions::default()
    };
    Client::new(options).unwrap()
}

/// Content of an archive set, without its metadata.
pub(crate) fn carried(archives: &Path) -> BTreeMap<String, Digest> {
    let report = archive::verify(archives, None, &RunProgress::default()).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let images = Set::open(archives).unwrap().content().unwrap().images;
    let images = images.into_iter();
    images
        .map(|it| {
            (
                format!("{}:{}", it.wanted.repository, it.wanted.tag),
                it.digest,
            )
        })
        .collect()
}

/// Content of a registry below a namespace: names and digests. Metadata has times in it.
pub(crate) async fn there(target: &Server) -> BTreeMap<String, Digest> {
    let mut found = BTreeMap::new();
    for repository in target.client.catalog(&target.address).await.unwrap() {
        let named = reference(target, &repository);
        for tag in target.client.tags(&named).await.unwrap() {
            let image = reference(target, &format!("{repository}:{tag}"));
            let digest = target.client.manifest_digest(&image).await.unwrap();
            found.insert(format!("{repository}:{tag}"), digest.unwrap());
        }
    }
    found
}
