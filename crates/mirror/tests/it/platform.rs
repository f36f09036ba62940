//! A registry with releases of the platform, and their update services.

use std::path::Path;

use mirror::archive::Set;
use mirror::config::{self, Configuration};
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::platform::ReleaseSources;
use mirror::progress::RunProgress;
use mirror::run::{PlannedArchives, RunOutcome};
use model::image_set::{ImageSet, Storage};
use oci::Digest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::runs::{Setup, push, reference, setup, unpack};
use crate::server::Server;
use crate::site::Site;

/// Path of the update service.
pub(crate) const UPDATES: &str = "/graph";

/// A registry with releases, and their update services.
pub(crate) struct Platform {
    pub(crate) registry: Server,
    pub(crate) site: Site,
    pub(crate) sources: ReleaseSources,
    pub(crate) folder: TempDir,
    pub(crate) store: MetadataStore,
}

/// A release in the registry.
pub(crate) struct Release {
    pub(crate) version: &'static str,
    pub(crate) image: Digest,
}

impl Platform {
    pub(crate) async fn start() -> Self {
        let (registry, site) = (Server::start().await, Site::start().await);
        let folder = tempfile::tempdir().unwrap();
        Self {
            sources: ReleaseSources {
                updates: Some(site.url(UPDATES)),
                ..registry.platform.clone()
            },
            registry,
            site,
            store: MetadataStore::Folder(folder.path().join("state")),
            folder,
        }
    }

    /// Pushes a release of two components, one of which is the same in all.
    pub(crate) async fn release(&self, version: &'static str) -> Release {
        let disk = reference(&self.registry, "dev/disk:x")
            .with_digest(push(&self.registry, "dev/disk:1", b"disk".to_vec(), json!({})).await);
        let stream =
            json!({"architectures": {"x86_64": {"images": {"kubevirt": {"digest-ref": disk}}}}});
        self.release_with(version, Some(stream)).await
    }

    /// As [`Self::release`], with that metadata of disk images.
    pub(crate) async fn release_with(
        &self,
        version: &'static str,
        stream: Option<Value>,
    ) -> Release {
        let mut tags = Vec::new();
        for (component, content) in [("console", version), ("pause", "pause")] {
            let name = format!("dev/art:{component}-{content}");
            let digest = push(&self.registry, &name, content.into(), json!({})).await;
            let image = reference(&self.registry, "dev/art:x").with_digest(digest);
            tags.push(json!({"name": component, "from": {"kind": "DockerImage", "name": image}}));
        }
        let mut files = vec![
            (
                "image-references",
                json!({"kind": "ImageStream", "spec": {"tags": tags}}),
            ),
            (
                "release-metadata",
                json!({"kind": "cincinnati-metadata-v0", "version": version}),
            ),
        ];
        if let Some(stream) = stream {
            let boot = json!({"kind": "ConfigMap", "data": {"stream": stream.to_string()}});
            files.push(("0000_50_installer_coreos-bootimages.yaml", boot));
        }
        let layer = layer(&files);
        let name = format!("dev/release:{version}");
        let image = push(&self.registry, &name, layer, json!({})).await;
        Release { version, image }
    }

    /// Adds a channel to the update service, in which each release leads to the next one.
    pub(crate) fn channel(&self, name: &str, releases: &[&Release]) {
        self.site.put(&asked_for(name), self.graph(name, releases));
    }

    /// The graph of such a channel.
    pub(crate) fn graph(&self, name: &str, releases: &[&Release]) -> String {
        let node = |release: &&Release| {
            let payload = reference(&self.registry, "dev/release:x");
            let payload = payload.with_digest(release.image.clone());
            let metadata = json!({"io.openshift.upgrades.graph.release.channels": name});
            json!({"version": release.version, "payload": payload, "metadata": metadata})
        };
        let nodes: Vec<_> = releases.iter().map(node).collect();
        let edges: Vec<_> = (1..releases.len()).map(|to| [to - 1, to]).collect();
        json!({"nodes": nodes, "edges": edges}).to_string()
    }

    pub(crate) fn setup<'a>(&'a self, set: &'a ImageSet, progress: &'a RunProgress) -> Setup<'a> {
        let setup = setup(&self.registry, set, self.folder.path(), progress);
        setup.with(|sources, _| {
            sources.platform = &self.sources;
            sources.with_attached = false;
        })
    }

    /// Packs new content into `dest`; whether there is any.
    pub(crate) async fn pack(&self, set: &ImageSet, dest: &Path) -> Result<bool, model::Error> {
        let progress = RunProgress::default();
        let setup = self.setup(set, &progress);
        let previous = PreviousRuns::new(self.store.read().await?);
        let prepared = setup.prepare(&previous, None).await?;
        match setup.plan_archives(&prepared, &previous, None)? {
            PlannedArchives::Nothing(_) => Ok(false),
            PlannedArchives::Archives(archives) => {
                setup
                    .write_archives(*archives, Some(&self.store), dest)
                    .await?;
                Ok(true)
            }
        }
    }

    pub(crate) async fn publish(&self, from: &Path, target: &Server) -> RunOutcome {
        let (set, progress) = (ImageSet::default(), RunProgress::default());
        let archives = Set::open(from).unwrap();
        let setup = self.setup(&set, &progress);
        let outcome = unpack(setup, archives, &target.target()).await.unwrap();
        outcome.expect("the target does not have it")
    }

    /// The error of a set.
    pub(crate) async fn refused(&self, platform: &str) -> String {
        let progress = RunProgress::default();
        let set = image_set(platform);
        let setup = self.setup(&set, &progress);
        let prepared = setup.prepare(&PreviousRuns::default(), None).await;
        model::error::chain(&prepared.unwrap_err())
    }
}

/// The name of a channel's graph at the update service.
pub(crate) fn asked_for(channel: &str) -> String {
    format!("{UPDATES}?arch=amd64&channel={channel}")
}

/// A set with storage.
pub(crate) fn image_set(platform: &str) -> ImageSet {
    image_set_of(&format!("{{platform: {platform}}}"))
}

/// As [`image_set`], of several sections.
pub(crate) fn image_set_of(mirror: &str) -> ImageSet {
    let text = format!(
        "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror: {mirror}"
    );
    match config::parse(text.as_bytes()).unwrap() {
        Configuration::Mirror(set) => ImageSet {
            storage: Some(Storage::Local {
                path: "unused".into(),
            }),
            ..set
        },
        Configuration::Delete(_) => panic!("it says what is mirrored"),
    }
}

/// A layer with the manifests of a release.
pub(crate) fn layer(files: &[(&str, Value)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let content = content.to_string();
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(
            &mut header,
            format!("release-manifests/{name}"),
            content.as_bytes(),
        )
        .unwrap();
    }
    tar.into_inner().unwrap()
}
