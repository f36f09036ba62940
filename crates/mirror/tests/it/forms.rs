//! Catalogs in their forms: with images by digest, or as their sources name them, or as they are.

use std::collections::BTreeSet;

use mirror::archive::Set;
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::operators::OpenedCatalog;
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use mirror::run::{self, CatalogForm, CopyPlan, PlannedArchives};
use oci::{Descriptor, Digest, Manifest, Platform, media_type};
use oci_client::image::ImageLocation;
use serde_json::json;

use crate::runs::{bundles_of, image_set, push_catalog, reference, setup, unpack};
use crate::server::Server;

/// Related images of a catalog's bundles, as the catalog names them.
async fn related(server: &Server, name: &str) -> BTreeSet<String> {
    let place = ImageLocation::Registry {
        client: server.client.clone(),
        reference: reference(server, name),
    };
    let scratch = tempfile::tempdir().unwrap();
    let opened = OpenedCatalog::open(place, scratch.path()).await.unwrap();
    let images = opened.cache.with_package("thing", |package, _| {
        let related = package.bundles.iter().flat_map(|it| &it.related_images);
        related.map(|it| it.image.to_string()).collect()
    });
    images.unwrap().unwrap()
}

/// The policies for tags.
fn tag_policies(outcome: &results::MirrorResults) -> String {
    let forms = Forms {
        mirror_sets: true,
        ..Forms::default()
    };
    let files = results::files(outcome, &forms).unwrap();
    let found = files.iter().find(|it| it.path == "itms-oc-mirror.yaml");
    String::from_utf8(found.unwrap().content.to_vec()).unwrap()
}

#[tokio::test]
async fn images_keep_the_tags_by_which_catalogs_name_them() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 2).await;
    let (set, progress) = (image_set(&source), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(&source, &set, folder.path(), &progress);
    let carry = async |catalogs: CatalogForm| {
        let setup = setup.with(|_, context| {
            context.catalogs = catalogs;
        });
        let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
        setup
            .copy(prepared, CopyPlan::default(), &target.target())
            .await
            .unwrap()
    };
    let tool = reference(&source, "acme/tool:v1");
    let digest = source.client.manifest_digest(&tool).await.unwrap().unwrap();

    let outcome = carry(CatalogForm::Pinned).await;
    assert!(!outcome.results.names_by_tag());
    let pinned = tool.with_digest(digest.clone()).to_string();
    let named = related(&target, "ns/acme/index:v1").await;
    assert_eq!(named, [pinned].into());

    let outcome = carry(CatalogForm::Tagged).await;
    assert!(outcome.results.names_by_tag());
    let named = related(&target, "ns/acme/index:v1").await;
    assert_eq!(named, [tool.to_string()].into());
    let there = target
        .client
        .manifest_digest(&reference(&target, "ns/acme/tool:v1"))
        .await
        .unwrap();
    assert_eq!(there, Some(digest));
    let policies = tag_policies(&outcome.results);
    let expected = format!("source: {}/acme", source.address);
    let of_operators = policies.split("---").find(|it| it.contains("operator-0"));
    assert!(of_operators.unwrap().contains(&expected), "{policies}");
}

#[tokio::test]
async fn archives_record_images_named_by_tag() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 2).await;
    let (set, progress) = (image_set(&source), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(&source, &set, folder.path(), &progress).with(|_, context| {
        context.catalogs = CatalogForm::Tagged;
    });
    let store = MetadataStore::Folder(folder.path().join("state"));
    let pack = async |name: &str| {
        let previous = PreviousRuns::new(store.read().await.unwrap());
        let prepared = setup.prepare(&previous, None).await.unwrap();
        let PlannedArchives::Archives(archives) =
            setup.plan_archives(&prepared, &previous, None).unwrap()
        else {
            return None;
        };
        let dest = folder.path().join(name);
        let packed = setup.write_archives(*archives, Some(&store), &dest).await;
        packed.unwrap();
        Some(Set::open(&dest).unwrap())
    };
    let first = pack("first").await.unwrap();
    assert!(pack("again").await.is_none(), "the tag means the same");
    let published = unpack(setup, first, &target.target()).await.unwrap();
    assert!(published.unwrap().results.names_by_tag());

    push_catalog(&source, 3).await;
    let second = pack("second").await.unwrap();
    let results = run::archived_results(&second, &target.target()).unwrap();
    assert!(results.names_by_tag(), "of the first archive");
    let published = unpack(setup, second, &target.target()).await.unwrap();
    let policies = tag_policies(&published.unwrap().results);
    assert!(policies.contains("itms-operator-0"), "{policies}");
}

/// Replaces the catalog's image by an index; its digest.
async fn push_index(source: &Server) -> Digest {
    let catalog = reference(source, "acme/index:v1");
    let image = source.client.pull_manifest(&catalog).await.unwrap();
    let entry = Descriptor {
        platform: Some(Platform::linux("amd64")),
        ..image.descriptor()
    };
    let index =
        json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": [entry]});
    let index = Manifest::parse(index.to_string().into(), None).unwrap();
    let pushed = source.client.push_manifest(&catalog, &index).await;
    pushed.unwrap();
    index.digest
}

#[tokio::test]
async fn catalogs_are_left_as_they_are() {
    let (source, target) = (Server::start().await, Server::start().await);
    let other = Server::start().await;
    push_catalog(&source, 3).await;
    let index = push_index(&source).await;
    let (set, progress) = (image_set(&source), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(&source, &set, folder.path(), &progress).with(|_, context| {
        context.catalogs = CatalogForm::Original;
    });
    let catalog = async |server: &Server| {
        let catalog = reference(server, "ns/acme/index:v1");
        let digest = server.client.manifest_digest(&catalog).await.unwrap();
        assert_eq!(digest.as_ref(), Some(&index));
        let bundles = bundles_of(server, "ns/acme/index:v1", folder.path()).await;
        assert_eq!(bundles.len(), 6, "also those that are not carried");
    };
    let previous = PreviousRuns::default();
    let prepared = setup.prepare(&previous, None).await.unwrap();
    let direct = setup
        .copy(prepared, CopyPlan::default(), &target.target())
        .await;
    assert_eq!(direct.unwrap().results.images.len(), 5);
    catalog(&target).await;

    let prepared = setup.prepare(&previous, None).await.unwrap();
    let PlannedArchives::Archives(archives) =
        setup.plan_archives(&prepared, &previous, None).unwrap()
    else {
        panic!("nothing was carried yet");
    };
    let dest = folder.path().join("archives");
    setup.write_archives(*archives, None, &dest).await.unwrap();
    let set = Set::open(&dest).unwrap();
    let published = unpack(setup, set, &other.target()).await.unwrap();
    let results = published.unwrap().results;
    assert_eq!(results.images.len(), 5);
    assert!(results.names_by_tag());
    assert_eq!(results.catalogs.len(), 1);
    catalog(&other).await;
}
