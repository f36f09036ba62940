//! Catalogs in their forms: with images by digest, or as their sources name them.

use std::collections::BTreeSet;

use mirror::archive::Set;
use mirror::history::{Former, Store};
use mirror::operators::Opened;
use mirror::progress::Progress;
use mirror::results::{self, Forms};
use mirror::run::{self, CatalogForm, Direct, Planned, Setup};
use oci::image::Place;

use crate::runs::{image_set, push_catalog, reference, setup, unpack};
use crate::server::Server;

/// What the bundles of a catalog run, as the catalog names it.
async fn related(server: &Server, name: &str) -> BTreeSet<String> {
    let place = Place::Registry {
        client: server.client.clone(),
        reference: reference(server, name),
    };
    let scratch = tempfile::tempdir().unwrap();
    let opened = Opened::open(place, scratch.path(), 0).await.unwrap();
    let images = opened.cache.with_package("thing", |package, _| {
        let related = package.bundles.iter().flat_map(|it| &it.related_images);
        related.map(|it| it.image.to_string()).collect()
    });
    images.unwrap().unwrap()
}

/// What leads clusters to images by tag.
fn tag_policies(outcome: &results::Outcome) -> String {
    let forms = Forms {
        mirror_sets: true,
        ..Forms::default()
    };
    let files = results::files(outcome, forms).unwrap();
    let found = files.iter().find(|it| it.path == "itms-oc-mirror.yaml");
    String::from_utf8(found.unwrap().content.to_vec()).unwrap()
}

#[tokio::test]
async fn images_keep_the_tags_by_which_catalogs_name_them() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 2).await;
    let (set, progress) = (image_set(&source), Progress::default());
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(&source, &set, folder.path(), &progress);
    let carry = async |catalogs: CatalogForm| {
        let setup = Setup { catalogs, ..setup };
        let prepared = run::prepare(setup, &Former::default(), None).await.unwrap();
        run::direct(setup, prepared, Direct::default(), &target.target())
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
async fn archives_remember_what_is_named_by_tag() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 2).await;
    let (set, progress) = (image_set(&source), Progress::default());
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup {
        catalogs: CatalogForm::Tagged,
        ..setup(&source, &set, folder.path(), &progress)
    };
    let store = Store::Folder(folder.path().join("state"));
    let pack = async |name: &str| {
        let former = Former::new(store.read().await.unwrap());
        let prepared = run::prepare(setup, &former, None).await.unwrap();
        let Planned::Archives(archives) = run::plan(setup, &prepared, &former, None).unwrap()
        else {
            return None;
        };
        let dest = folder.path().join(name);
        let packed = run::pack(setup, *archives, Some(&store), &dest).await;
        packed.unwrap();
        Some(Set::open(&dest).unwrap())
    };
    let first = pack("first").await.unwrap();
    assert!(pack("again").await.is_none(), "the tag means the same");
    let published = unpack(setup, first, &target.target()).await.unwrap();
    assert!(published.unwrap().results.names_by_tag());

    push_catalog(&source, 3).await;
    let second = pack("second").await.unwrap();
    let told = run::names_of(&second, &target.target()).unwrap();
    assert!(told.names_by_tag(), "of the first archive");
    let published = unpack(setup, second, &target.target()).await.unwrap();
    let policies = tag_policies(&published.unwrap().results);
    assert!(policies.contains("itms-operator-0"), "{policies}");
}
