//! Attached artifacts, in whole runs.

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use mirror::archive::Set;
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::progress::RunProgress;
use mirror::run::{CopyPlan, PlannedArchives};
use oci::{Digest, Manifest, Reference, Tag, media_type};
use serde_json::json;

use crate::faulty::{Fault, Faulty, Rule};
use crate::runs::{Setup, additional, additional_at, push, reference, setup, unpack};
use crate::server::Server;

/// Attaches something to an image: under a tag, or else by naming it as its subject.
async fn attach(server: &Server, to: &Reference, subject: &Digest, tag: Option<&str>) -> Digest {
    let client = &server.client;
    let content = format!("{tag:?} of {subject}").into_bytes();
    let layer = client
        .push_blob_bytes(
            to,
            "application/vnd.dev.cosign.simplesigning.v1+json",
            content.into(),
        )
        .await
        .unwrap();
    let config = client
        .push_blob_bytes(to, media_type::OCI_CONFIG, Bytes::from_static(b"{}"))
        .await
        .unwrap();
    let mut manifest = json!({"schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "config": config, "layers": [layer]});
    if tag.is_none() {
        let there = client
            .pull_manifest(&to.with_digest(subject.clone()))
            .await
            .unwrap();
        manifest["subject"] = json!(there.descriptor());
        manifest["artifactType"] = json!("application/vnd.example.sbom");
    }
    let manifest = Manifest::parse(manifest.to_string().into(), None).unwrap();
    let name = match tag {
        Some(tag) => Reference {
            tag: Some(tag.parse().unwrap()),
            digest: None,
            ..to.clone()
        },
        None => to.with_digest(manifest.digest.clone()),
    };
    client.push_manifest(&name, &manifest).await.unwrap();
    manifest.digest
}

fn tag_of(digest: &Digest, suffix: &str) -> String {
    format!("sha256-{}{suffix}", digest.hex())
}

/// An image with a signature under a tag, one for the signature, and a list of components that refers to it.
async fn push_signed(server: &Server) -> (Digest, [Digest; 3]) {
    let image = reference(server, "acme/tool:v1");
    let digest = push(server, "acme/tool:v1", b"tool".to_vec(), json!({})).await;
    let signature = attach(server, &image, &digest, Some(&tag_of(&digest, ".sig"))).await;
    let further = attach(
        server,
        &image,
        &signature,
        Some(&tag_of(&signature, ".sig")),
    )
    .await;
    let components = attach(server, &image, &digest, None).await;
    // Of an image that is not mirrored.
    attach(
        server,
        &image,
        &components,
        Some(&tag_of(&Digest::sha256(b"other"), ".sig")),
    )
    .await;
    (digest, [signature, further, components])
}

async fn tags(server: &Server, repository: &str) -> BTreeSet<String> {
    let repository = reference(server, repository);
    let tags = server.client.tags(&repository).await.unwrap();
    tags.iter().map(Tag::to_string).collect()
}

#[tokio::test]
async fn signatures_and_referrers_are_copied() {
    let (source, target) = (Server::start().await, Server::start().await);
    let (digest, [signature, further, components]) = push_signed(&source).await;
    let set = additional(&source, &["acme/tool:v1"]);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let setup = setup(&source, &set, folder.path(), &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let outcome = setup
        .copy(prepared, CopyPlan::default(), &target.target())
        .await
        .unwrap();
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    let expected = [
        "v1",
        &tag_of(&digest, ".sig"),
        &tag_of(&signature, ".sig"),
        &tag_of(&digest, ""),
    ];
    let expected: BTreeSet<_> = expected.iter().map(ToString::to_string).collect();
    assert_eq!(tags(&target, "ns/acme/tool").await, expected);
    let copied = reference(&target, "ns/acme/tool:v1");
    let listed = target
        .client
        .listed_referrers(&copied, &digest)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].digest, components);
    for digest in [signature, further, components] {
        let there = target
            .client
            .pull_manifest(&copied.with_digest(digest))
            .await
            .unwrap();
        for blob in there.required_blobs() {
            assert!(target.client.has_blob(&copied, blob).await.unwrap());
        }
    }
}

#[tokio::test]
async fn signatures_can_be_left_out() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_signed(&source).await;
    let set = additional(&source, &["acme/tool:v1"]);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let setup = setup(&source, &set, folder.path(), &progress).with(|sources, _| {
        sources.with_attached = false;
    });
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    setup
        .copy(prepared, CopyPlan::default(), &target.target())
        .await
        .unwrap();
    assert_eq!(
        tags(&target, "ns/acme/tool").await,
        BTreeSet::from(["v1".to_owned()])
    );
}

/// The archive of the next run of a set; nothing where there is nothing new.
async fn pack(setup: Setup<'_>, store: &MetadataStore, dest: &Path) -> Option<Set> {
    let previous = PreviousRuns::new(store.read().await.unwrap());
    let prepared = setup.prepare(&previous, None).await.unwrap();
    match setup.plan_archives(&prepared, &previous, None).unwrap() {
        PlannedArchives::Nothing(_) => None,
        PlannedArchives::Archives(archives) => {
            setup
                .write_archives(*archives, Some(store), dest)
                .await
                .unwrap();
            Some(Set::open(dest).unwrap())
        }
    }
}

#[tokio::test]
async fn archives_carry_attached_artifacts_and_later_ones_keep_them() {
    let (source, target) = (Server::start().await, Server::start().await);
    let (digest, [.., components]) = push_signed(&source).await;
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let store = MetadataStore::Folder(folder.path().join("state"));
    let set = additional(&source, &["acme/tool:v1"]);
    let own = setup(&source, &set, folder.path(), &progress);
    let first = pack(own, &store, &folder.path().join("1")).await.unwrap();
    let remembered = first.metadata().past_associations.len();
    assert_eq!(
        remembered, 5,
        "the image, two signatures, an index and its part"
    );
    push(&source, "acme/other:v1", b"other".to_vec(), json!({})).await;
    let larger = additional(&source, &["acme/tool:v1", "acme/other:v1"]);
    let setup = setup(&source, &larger, folder.path(), &progress);
    let second = pack(setup, &store, &folder.path().join("2")).await.unwrap();
    assert_eq!(second.metadata().past_associations.len(), remembered + 1);
    for set in [first, second] {
        assert!(
            unpack(setup, set, &target.target())
                .await
                .unwrap()
                .is_some()
        );
    }
    assert_eq!(tags(&target, "ns/acme/tool").await.len(), 4);
    let copied = reference(&target, "ns/acme/tool:v1");
    let listed = target.client.referrers(&copied, &digest).await.unwrap();
    let listed: Vec<Digest> = listed.into_iter().map(|it| it.digest).collect();
    assert_eq!(listed, [components]);
}

/// A registry that keeps no lists of referrers.
async fn without_lists(server: &Server) -> Faulty {
    let rule = Rule {
        method: "GET",
        path: "/referrers/".into(),
        times: usize::MAX,
        fault: Fault::Status(404),
    };
    Faulty::start(server, vec![rule]).await
}

#[tokio::test]
async fn lists_under_tags_are_carried_where_registries_keep_none() {
    let (source, target) = (Server::start().await, Server::start().await);
    let (digest, [_, _, components]) = push_signed(&source).await;
    let image = reference(&source, "acme/tool:v1");
    let part = source
        .client
        .pull_manifest(&image.with_digest(components.clone()))
        .await
        .unwrap();
    let index = json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": [part.descriptor()]});
    let index = Manifest::parse(index.to_string().into(), None).unwrap();
    let stand_in = Reference {
        tag: Some(tag_of(&digest, "").parse().unwrap()),
        ..image
    };
    source
        .client
        .push_manifest(&stand_in, &index)
        .await
        .unwrap();
    let (from, to) = (without_lists(&source).await, without_lists(&target).await);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let set = additional_at(&from.address, &["acme/tool:v1"]);
    let setup = setup(&source, &set, folder.path(), &progress).with(|sources, _| {
        sources.client = &from.client;
    });
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    setup
        .copy(prepared, CopyPlan::default(), &to.target())
        .await
        .unwrap();
    let copied = reference(&target, "ns/acme/tool:v1");
    let copied = Reference {
        registry: oci::Registry::Host(to.address.clone()),
        ..copied
    };
    let listed = to.client.referrers(&copied, &digest).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].digest, components);
    // One list of tags, one probe of the referrers API, and no request for each image.
    assert_eq!(from.requests("/tags/list").len(), 1);
    assert_eq!(from.requests("/referrers/").len(), 1);
    assert_eq!(from.requests("HEAD"), Vec::<String>::new());
}

#[tokio::test]
async fn tags_that_other_tools_make_of_digests_are_no_lists() {
    let (source, target) = (Server::start().await, Server::start().await);
    let digest = push(&source, "acme/tool:v1", b"tool".to_vec(), json!({})).await;
    let own = tag_of(&digest, "");
    push(
        &source,
        &format!("acme/tool:{own}"),
        b"tool".to_vec(),
        json!({}),
    )
    .await;
    let from = without_lists(&source).await;
    let set = additional_at(&from.address, &["acme/tool:v1"]);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let setup = setup(&source, &set, folder.path(), &progress).with(|sources, _| {
        sources.client = &from.client;
    });
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    setup
        .copy(prepared, CopyPlan::default(), &target.target())
        .await
        .unwrap();
    assert_eq!(
        tags(&target, "ns/acme/tool").await,
        BTreeSet::from(["v1".to_owned()])
    );
}

#[tokio::test]
async fn where_tags_are_not_listed_each_is_asked_for() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_signed(&source).await;
    let rule = Rule {
        method: "GET",
        path: "/tags/list".into(),
        times: usize::MAX,
        fault: Fault::Status(403),
    };
    let from = Faulty::start(&source, vec![rule]).await;
    let set = additional_at(&from.address, &["acme/tool:v1"]);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let setup = setup(&source, &set, folder.path(), &progress).with(|sources, _| {
        sources.client = &from.client;
    });
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    setup
        .copy(prepared, CopyPlan::default(), &target.target())
        .await
        .unwrap();
    assert_eq!(tags(&target, "ns/acme/tool").await.len(), 4);
}
