//! Releases: selected by an update service, read from their images, mirrored with all their components.

use axum::http::StatusCode;
use mirror::archive::Set;
use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use mirror::run::{self, CopyPlan, RunOutcome};
use mirror::updates;
use model::mirror_metadata::ImageType;
use oci::{Descriptor, Digest, Manifest, media_type};
use serde_json::json;

use crate::platform::{Platform, Release, UPDATES, asked_for, image_set, layer};
use crate::runs::{push, reference};
use crate::server::Server;

/// Names in the target, as `repository:tag`.
fn names(outcome: &RunOutcome, kind: ImageType) -> Vec<String> {
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
async fn the_newest_release_is_mirrored_and_later_ones_added() {
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
    let files = results::files(&outcome.results, &Forms::default()).unwrap();
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
    let progress = RunProgress::default();
    let setup = platform.setup(&set, &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let why = run::reasons(&prepared, "disk");
    assert!(
        why[0].ends_with("component kube-virt-container of release 4.14.1-x86_64"),
        "{why:?}"
    );
    let outcome = setup
        .copy(prepared, CopyPlan::default(), &target.target())
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
    let progress = RunProgress::default();
    let setup = platform.setup(&set, &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let images = prepared.content.images.iter();
    let releases = images.filter(|it| it.wanted.kind == ImageType::OcpRelease);
    let mut tags: Vec<_> = releases.map(|it| it.wanted.tag.to_string()).collect();
    tags.sort();
    assert_eq!(tags, ["4.12.2-x86_64", "4.13.7-x86_64", "4.14.0-x86_64"]);
}

#[tokio::test]
async fn updates_list_the_content_of_the_next_run() {
    let platform = Platform::start().await;
    let first = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&first]);
    let set = image_set("{channels: [{name: stable-4.14}]}");
    let one = platform.folder.path().join("1");
    assert!(platform.pack(&set, &one).await.unwrap());
    let metadata = platform.store.read().await.unwrap().unwrap();
    let updates = async || {
        let updates = updates::releases(&set.mirror, &metadata, &platform.sources).await;
        let [only] = &updates.unwrap()[..] else {
            panic!("one channel, one architecture");
        };
        assert_eq!(
            [&*only.channel, &only.architecture],
            ["stable-4.14", "amd64"]
        );
        let versions = only.versions.iter().map(ToString::to_string);
        versions.collect::<Vec<_>>()
    };
    assert!(updates().await.is_empty());
    let second = platform.release("4.14.2").await;
    let third = platform.release("4.14.10").await;
    platform.channel("stable-4.14", &[&first, &second, &third]);
    assert_eq!(updates().await, ["4.14.2", "4.14.10"]);
}

#[tokio::test]
async fn wrong_channels_are_reported() {
    let platform = Platform::start().await;
    let release = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&release]);
    platform.channel("stabel-4.14", &[]);
    let message = platform.refused("{channels: [{name: stabel-4.14}]}").await;
    assert!(
        message.contains("stabel-4.14 has no releases for amd64"),
        "{message}"
    );
    assert!(message.ends_with("stable-4.14 may be meant"), "{message}");
    let message = platform
        .refused("{channels: [{name: stable-4.14, minVersion: 4.14.5, maxVersion: 4.14.9}]}")
        .await;
    assert!(
        message.contains("no release from 4.14.5 to 4.14.9: the nearest are 4.14.1"),
        "{message}"
    );
    platform.site.put(&asked_for("page"), "<html>");
    let message = platform.refused("{channels: [{name: page}]}").await;
    assert!(
        message.contains("the answer of http://") && message.contains("expected nodes and edges"),
        "{message}"
    );
    platform
        .site
        .refuse(&asked_for("ill"), StatusCode::INTERNAL_SERVER_ERROR, "");
    let message = platform.refused("{channels: [{name: ill}]}").await;
    assert!(message.contains("/graph answered 500"), "{message}");
}

#[tokio::test]
async fn images_that_are_no_release_are_refused() {
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
    let message = platform.refused(&format!("{{release: {image}}}")).await;
    assert!(
        message.contains("image-references") && message.ends_with("it is no release"),
        "{message}"
    );
    let files = [
        ("release-metadata", json!({"version": "4.14.1"})),
        ("image-references", json!([])),
    ];
    let other = push(server, "dev/other:2", layer(&files), json!({})).await;
    let image = reference(server, "dev/other:x").with_digest(other);
    let message = platform.refused(&format!("{{release: {image}}}")).await;
    assert!(
        message.contains("release-manifests/image-references of"),
        "{message}"
    );
}

/// The index of an image, for two architectures.
pub(crate) async fn index(server: &Server, name: &str, parts: [&Digest; 2]) -> Digest {
    let client = &server.client;
    let name = reference(server, name);
    let mut manifests = Vec::new();
    for (part, architecture) in parts.into_iter().zip(["arm64", "amd64"]) {
        let part = client.pull_manifest(&name.with_digest(part.clone())).await;
        manifests.push(Descriptor {
            platform: Some(oci::Platform::linux(architecture)),
            ..part.unwrap().descriptor()
        });
    }
    let index =
        json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": manifests});
    let index = Manifest::parse(index.to_string().into(), None).unwrap();
    client.push_manifest(&name, &index).await.unwrap();
    index.digest
}

#[tokio::test]
async fn of_releases_for_all_architectures_the_wanted_parts_are_carried() {
    let (platform, target) = (Platform::start().await, Server::start().await);
    let server = &platform.registry;
    let parts = [
        push(server, "dev/art:arm", b"arm".to_vec(), json!({})).await,
        push(server, "dev/art:amd", b"amd".to_vec(), json!({})).await,
    ];
    let component = index(server, "dev/art:all", [&parts[0], &parts[1]]).await;
    let component = reference(server, "dev/art:x").with_digest(component);
    let tags = json!([{"name": "console", "from": {"kind": "DockerImage", "name": component}}]);
    let files = [
        ("image-references", json!({"spec": {"tags": tags}})),
        (
            "release-metadata",
            json!({"version": "4.14.1", "metadata": {"release.openshift.io/architecture": "multi"}}),
        ),
    ];
    let both = [
        push(server, "dev/release:arm", layer(&files), json!({"A": 1})).await,
        push(server, "dev/release:amd", layer(&files), json!({"A": 2})).await,
    ];
    let image = index(server, "dev/release:all", [&both[0], &both[1]]).await;
    let release = Release {
        version: "4.14.1",
        image,
    };
    let graph = platform.graph("stable-4.14", &[&release]);
    let asked = asked_for("stable-4.14").replace("amd64", "multi");
    platform.site.put(&asked, graph);
    let set = image_set(
        "{platforms: [{os: linux, architecture: amd64}], channels: [{name: stable-4.14}]}",
    );
    let progress = RunProgress::default();
    let setup = platform.setup(&set, &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let carried = &prepared.content.manifests;
    for (part, is_carried) in [
        (&parts[0], false),
        (&parts[1], true),
        (&both[0], false),
        (&both[1], true),
    ] {
        assert_eq!(carried.contains_key(part), is_carried, "{part}");
    }
    let mapping = run::mapping(&prepared, &target.target()).unwrap();
    assert!(
        mapping.contains("openshift/release-images:4.14.1-multi\n"),
        "{mapping}"
    );
    assert!(
        mapping.contains("openshift/release:4.14.1-multi-console\n"),
        "{mapping}"
    );
}

#[tokio::test]
async fn releases_of_okd_are_asked_for_at_once() {
    let platform = Platform::start().await;
    let old = platform.release("4.15.0-0.okd-2024-01-27-070424").await;
    let new = platform.release("4.15.0-0.okd-2024-03-10-010116").await;
    let graph = platform.graph("", &[&old, &new]);
    platform.site.put(UPDATES, graph);
    let set = image_set("{channels: [{name: okd, type: okd}, {name: okd-too, type: okd}]}");
    let progress = RunProgress::default();
    let setup = platform.setup(&set, &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let mut images = prepared.content.images.iter();
    let release = images
        .find(|it| it.wanted.kind == ImageType::OcpRelease)
        .unwrap();
    assert_eq!(
        release.wanted.tag.as_str(),
        "4.15.0-0.okd-2024-03-10-010116-x86_64"
    );
}
