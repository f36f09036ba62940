//! Releases: chosen by an update service, read out of their images, carried with all their components.

use std::path::Path;

use axum::http::StatusCode;
use mirror::archive::Set;
use mirror::config::{self, Configuration};
use mirror::history::{Former, Store};
use mirror::platform::Sources;
use mirror::progress::Progress;
use mirror::publish::Limits;
use mirror::results::{self, Forms};
use mirror::run::{self, Direct, Outcome, Planned, Setup};
use model::image_set::{ImageSet, Storage};
use model::mirror_metadata::ImageType;
use oci::Digest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::runs::unpack;
use crate::runs::{push, reference};
use crate::server::Server;
use crate::site::Site;

/// Where the update service answers.
const UPDATES: &str = "/graph";

/// A registry with releases, and the services that tell of them.
struct Platform {
    registry: Server,
    site: Site,
    sources: Sources,
    folder: TempDir,
    store: Store,
}

/// A release in the registry.
struct Release {
    version: &'static str,
    image: Digest,
}

impl Platform {
    async fn start() -> Self {
        let (registry, site) = (Server::start().await, Site::start().await);
        let folder = tempfile::tempdir().unwrap();
        Self {
            sources: Sources {
                updates: Some(site.url(UPDATES)),
                ..registry.platform.clone()
            },
            registry,
            site,
            store: Store::Folder(folder.path().join("state")),
            folder,
        }
    }

    /// Gives the registry a release of two components, one of which is the same in all.
    async fn release(&self, version: &'static str) -> Release {
        let mut tags = Vec::new();
        for (component, content) in [("console", version), ("pause", "pause")] {
            let name = format!("dev/art:{component}-{content}");
            let digest = push(&self.registry, &name, content.into(), json!({})).await;
            let image = reference(&self.registry, "dev/art:x").with_digest(digest);
            tags.push(json!({"name": component, "from": {"kind": "DockerImage", "name": image}}));
        }
        let disk = reference(&self.registry, "dev/disk:x")
            .with_digest(push(&self.registry, "dev/disk:1", b"disk".to_vec(), json!({})).await);
        let stream =
            json!({"architectures": {"x86_64": {"images": {"kubevirt": {"digest-ref": disk}}}}});
        let boot = json!({"kind": "ConfigMap", "data": {"stream": stream.to_string()}});
        let files = [
            (
                "image-references",
                json!({"kind": "ImageStream", "spec": {"tags": tags}}),
            ),
            (
                "release-metadata",
                json!({"kind": "cincinnati-metadata-v0", "version": version}),
            ),
            ("0000_50_installer_coreos-bootimages.yaml", boot),
        ];
        let layer = layer(&files);
        let name = format!("dev/release:{version}");
        let image = push(&self.registry, &name, layer, json!({})).await;
        Release { version, image }
    }

    /// Has the update service tell of a channel, in which each release leads to the next one.
    fn channel(&self, name: &str, releases: &[&Release]) {
        let node = |release: &&Release| {
            let payload =
                reference(&self.registry, "dev/release:x").with_digest(release.image.clone());
            json!({"version": release.version, "payload": payload, "metadata": {"io.openshift.upgrades.graph.release.channels": name}})
        };
        let nodes: Vec<_> = releases.iter().map(node).collect();
        let edges: Vec<_> = (1..releases.len()).map(|to| [to - 1, to]).collect();
        let graph = json!({"nodes": nodes, "edges": edges}).to_string();
        self.site.put(&asked_for(name), graph);
    }

    fn setup<'a>(&'a self, set: &'a ImageSet, progress: &'a Progress) -> Setup<'a> {
        Setup {
            client: &self.registry.client,
            set,
            platform: &self.sources,
            limits: Limits {
                parallel: 4,
                goes_on: false,
            },
            skip_missing: false,
            with_attached: false,
            workspace: self.folder.path(),
            now: 1_795_241_937,
            progress,
        }
    }

    /// Packs what is new into `dest`; whether there is any.
    async fn pack(&self, set: &ImageSet, dest: &Path) -> Result<bool, model::Error> {
        let progress = Progress::default();
        let setup = self.setup(set, &progress);
        let former = Former::new(self.store.read().await?);
        let prepared = run::prepare(setup, &former, None).await?;
        match run::plan(setup, &prepared, &former, None)? {
            Planned::Nothing(_) => Ok(false),
            Planned::Archives(archives) => {
                run::pack(setup, *archives, Some(&self.store), dest).await?;
                Ok(true)
            }
        }
    }

    async fn publish(&self, from: &Path, target: &Server) -> Outcome {
        let (set, progress) = (ImageSet::default(), Progress::default());
        let archives = Set::open(from).unwrap();
        let setup = self.setup(&set, &progress);
        let outcome = unpack(setup, archives, &target.target()).await.unwrap();
        outcome.expect("the target does not have it")
    }

    /// Why a set cannot be carried.
    async fn refused(&self, platform: &str) -> String {
        let progress = Progress::default();
        let set = image_set(platform);
        let prepared = run::prepare(self.setup(&set, &progress), &Former::default(), None).await;
        model::error::chain(&prepared.unwrap_err())
    }
}

/// The name of a channel's graph at the update service.
fn asked_for(channel: &str) -> String {
    format!("{UPDATES}?arch=amd64&channel={channel}")
}

/// A set that is remembered.
fn image_set(platform: &str) -> ImageSet {
    let text = format!(
        "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror: {{platform: {platform}}}"
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
fn layer(files: &[(&str, Value)]) -> Vec<u8> {
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

/// What is in the target, as `repository:tag`.
fn names(outcome: &Outcome, kind: ImageType) -> Vec<String> {
    let images = outcome.results.images.iter().filter(|it| it.kind == kind);
    let names = images.map(|it| {
        let tag = it.destination.tag.as_ref().unwrap();
        format!("{}:{tag}", it.destination.repository)
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_newest_release_is_carried_and_later_what_came_since() {
    let (platform, target) = (Platform::start().await, Server::start().await);
    let first = platform.release("4.14.1").await;
    let second = platform.release("4.14.2").await;
    platform.channel("stable-4.14", &[&first, &second]);
    let set = image_set("{channels: [{name: stable-4.14}]}");
    let (one, two) = (
        platform.folder.path().join("1"),
        platform.folder.path().join("2"),
    );
    assert!(platform.pack(&set, &one).await.unwrap());
    assert!(!platform.pack(&set, &two).await.unwrap(), "nothing is new");

    let outcome = platform.publish(&one, &target).await;
    assert_eq!(
        names(&outcome, ImageType::OcpRelease),
        ["ns/openshift/release-images:4.14.2-x86_64"]
    );
    assert_eq!(
        names(&outcome, ImageType::OcpReleaseContent),
        [
            "ns/openshift/release:4.14.2-x86_64-console",
            "ns/openshift/release:4.14.2-x86_64-pause"
        ]
    );
    let images = &outcome.results.images;
    for image in images {
        let there = target
            .client
            .manifest_digest(&image.destination)
            .await
            .unwrap();
        assert_eq!(there, image.source.digest, "{}", image.destination);
    }
    let files = results::files(&outcome.results, Forms::default()).unwrap();
    let policy = files
        .iter()
        .find(|file| file.path == "imageContentSourcePolicy.yaml")
        .unwrap();
    let policy = String::from_utf8(policy.content.to_vec()).unwrap();
    let expected = format!(
        "- {}/ns/openshift/release-images\n    source: {}/dev/release\n",
        target.address, platform.registry.address
    );
    assert!(
        policy.contains("name: release-0") && policy.contains(&expected),
        "{policy}"
    );

    let third = platform.release("4.14.3").await;
    platform.channel("stable-4.14", &[&first, &second, &third]);
    assert!(platform.pack(&set, &two).await.unwrap());
    let metadata = Set::open(&two).unwrap().metadata().clone();
    let channel = &metadata.past_mirror.mirror.platform.channels[0];
    assert_eq!(
        [&channel.min_version, &channel.max_version],
        ["4.14.2", "4.14.3"]
    );
    assert_eq!(metadata.past_mirror.platforms[0].min_version, "4.14.2");
    let outcome = platform.publish(&two, &target).await;
    assert_eq!(
        names(&outcome, ImageType::OcpRelease),
        ["ns/openshift/release-images:4.14.3-x86_64"]
    );
    assert_eq!(
        names(&outcome, ImageType::OcpReleaseContent),
        [
            "ns/openshift/release:4.14.3-x86_64-console",
            "ns/openshift/release:4.14.3-x86_64-pause"
        ]
    );
}

#[tokio::test]
async fn a_release_is_carried_by_its_image_with_its_disk_image() {
    let (platform, target) = (Platform::start().await, Server::start().await);
    let release = platform.release("4.14.1").await;
    let image = reference(&platform.registry, "dev/release:x").with_digest(release.image);
    let set = image_set(&format!("{{release: {image}, kubeVirtContainer: true}}"));
    let progress = Progress::default();
    let setup = platform.setup(&set, &progress);
    let prepared = run::prepare(setup, &Former::default(), None).await.unwrap();
    let why = run::reasons(&prepared, "disk");
    assert!(
        why[0].ends_with("component kube-virt-container of release 4.14.1-x86_64"),
        "{why:?}"
    );
    let outcome = run::direct(setup, prepared, Direct::default(), &target.target())
        .await
        .unwrap();
    let expected = ["console", "kube-virt-container", "pause"];
    let expected = expected.map(|it| format!("ns/openshift/release:4.14.1-x86_64-{it}"));
    assert_eq!(names(&outcome, ImageType::OcpReleaseContent), expected);
}

#[tokio::test]
async fn the_way_over_several_channels_is_carried() {
    let platform = Platform::start().await;
    let [a, b, c, d] = [
        platform.release("4.12.1").await,
        platform.release("4.12.2").await,
        platform.release("4.13.7").await,
        platform.release("4.14.0").await,
    ];
    platform.channel("stable-4.12", &[&a, &b]);
    platform.channel("stable-4.13", &[&b, &c]);
    platform.channel("stable-4.14", &[&c, &d]);
    let set = image_set("{channels: [{name: stable-4.12}, {name: stable-4.14}]}");
    let progress = Progress::default();
    let prepared = run::prepare(platform.setup(&set, &progress), &Former::default(), None)
        .await
        .unwrap();
    let images = prepared.content.images.iter();
    let releases = images.filter(|it| it.wanted.kind == ImageType::OcpRelease);
    let mut tags: Vec<_> = releases.map(|it| it.wanted.tag.to_string()).collect();
    tags.sort();
    assert_eq!(tags, ["4.12.2-x86_64", "4.13.7-x86_64", "4.14.0-x86_64"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_channel_is_told() {
    let platform = Platform::start().await;
    let release = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&release]);
    platform.channel("stabel-4.14", &[]);
    let told = platform.refused("{channels: [{name: stabel-4.14}]}").await;
    assert!(
        told.contains("stabel-4.14 has no releases for amd64"),
        "{told}"
    );
    assert!(told.ends_with("stable-4.14 may be meant"), "{told}");
    let told = platform
        .refused("{channels: [{name: stable-4.14, minVersion: 4.14.5, maxVersion: 4.14.9}]}")
        .await;
    assert!(
        told.contains("no release from 4.14.5 to 4.14.9: the nearest are 4.14.1"),
        "{told}"
    );
    platform.site.put(&asked_for("page"), "<html>");
    let told = platform.refused("{channels: [{name: page}]}").await;
    assert!(
        told.contains("the answer of http://") && told.contains("expected nodes and edges"),
        "{told}"
    );
    platform
        .site
        .refuse(&asked_for("ill"), StatusCode::INTERNAL_SERVER_ERROR, "");
    let told = platform.refused("{channels: [{name: ill}]}").await;
    assert!(told.contains("/graph answered 500"), "{told}");
}

#[tokio::test]
async fn what_is_no_release_is_told() {
    let platform = Platform::start().await;
    let server = &platform.registry;
    let without = push(
        server,
        "dev/other:1",
        layer(&[("release-metadata", json!({}))]),
        json!({}),
    )
    .await;
    let image = reference(server, "dev/other:x").with_digest(without);
    let told = platform.refused(&format!("{{release: {image}}}")).await;
    assert!(
        told.contains("image-references") && told.ends_with("it is no release"),
        "{told}"
    );
    let files = [
        ("release-metadata", json!({"version": "4.14.1"})),
        ("image-references", json!([])),
    ];
    let other = push(server, "dev/other:2", layer(&files), json!({})).await;
    let image = reference(server, "dev/other:x").with_digest(other);
    let told = platform.refused(&format!("{{release: {image}}}")).await;
    assert!(
        told.contains("release-manifests/image-references of"),
        "{told}"
    );
}
