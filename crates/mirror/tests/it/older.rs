//! Whole catalogs, as with older tools: pruned, into a folder, and from there into a registry.

use std::fs;
use std::path::Path;

use mirror::older::{self, Copy, LoadedCatalog, SmallerIndex};
use mirror::progress::RunProgress;
use mirror::results::{self, Forms, MirrorResults, MirroredCatalog};
use model::Error;
use model::image_set::ImageSet;
use oci::Reference;

use crate::runs::{Setup, bundles_of, push_catalog, reference, setup};
use crate::server::Server;

/// Pushes the index `to`, with nothing but that package of another one.
async fn prune(
    run: Setup<'_>,
    index: &str,
    package: &str,
    to: &Reference,
) -> Result<MirroredCatalog, Error> {
    let Setup { sources, context } = run;
    let smaller = SmallerIndex {
        index,
        packages: &[package.to_owned()],
        to,
    };
    let (client, platform) = (sources.client, sources.platform);
    older::prune(client, platform, context, smaller, client.clone()).await
}

async fn load(copy: &Copy, run: Setup<'_>, dir: &Path) -> Result<LoadedCatalog, Error> {
    let Setup { sources, context } = run;
    let (client, platform) = (sources.client, sources.platform);
    copy.load(client, platform, context, dir).await
}

fn policy(results: &MirrorResults) -> String {
    let files = results::files(results, &Forms::default()).unwrap();
    let mut files = files.iter();
    let policy = files.find(|it| it.path == "imageContentSourcePolicy.yaml");
    String::from_utf8(policy.unwrap().content.to_vec()).unwrap()
}

#[tokio::test]
async fn a_pruned_catalog_goes_through_a_folder_into_a_registry() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 2).await;
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let there = setup(&source, &set, dir, &progress);
    let index = reference(&source, "acme/index:v1").to_string();
    let pruned = reference(&source, "small/index:v1");
    let made = prune(there, &index, "other", &pruned).await;
    assert_eq!(made.unwrap().destination, pruned);
    let kept = bundles_of(&source, "small/index:v1", dir).await;
    assert_eq!(
        Vec::from_iter(kept.clone()),
        ["other.v1.0.0", "other.v1.1.0"]
    );

    let loaded = load(&Copy::Registry(pruned), there, dir).await.unwrap();
    let below = "local/index".parse().unwrap();
    let mapping = loaded
        .to_folder(&source.client, there.context, dir, &below)
        .await
        .unwrap();
    assert_eq!(
        mapping.lines().count(),
        4,
        "two bundles, the tool and the catalog: {mapping}"
    );
    let tool = "=file://local/index/small/index/acme/tool:v1";
    assert!(
        mapping.lines().any(|line| line.ends_with(tool)),
        "{mapping}"
    );
    let tag = dir.join("v2/local/index/small/index/manifests/v1");
    assert!(
        fs::read_link(tag)
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("sha256:")
    );

    // On the other side the sources cannot be reached.
    let moved = tempfile::tempdir().unwrap();
    fs::rename(dir.join("v2"), moved.path().join("v2")).unwrap();
    drop(source);
    let here = setup(&target, &set, dir, &progress);
    let copy: Copy = "file://local/index/small/index:v1".parse().unwrap();
    let loaded = load(&copy, here, moved.path()).await.unwrap();
    let outcome = loaded
        .to_registry(
            here.sources.client,
            here.sources.platform,
            here.context,
            &target.target(),
        )
        .await
        .unwrap();
    let images = outcome.results.images.iter();
    let names = images.map(|it| it.destination.repository.to_string());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(
        names,
        [
            "ns/acme-other-bundle",
            "ns/acme-other-bundle",
            "ns/acme-tool"
        ]
    );
    for image in &outcome.results.images {
        let there = target.client.manifest_digest(&image.destination).await;
        let there = there.unwrap();
        assert_eq!(there, image.source.digest, "{}", image.destination);
    }
    let catalog = "ns/local-index-small-index:v1";
    assert_eq!(bundles_of(&target, catalog, dir).await, kept);
    let upstream: Reference = index.parse().unwrap();
    let upstream = format!("source: {}/acme/other-bundle", upstream.registry);
    let policy = policy(&outcome.results);
    assert!(policy.contains(&upstream), "{policy}");
    assert!(!policy.contains("local/index"), "{policy}");
}

#[tokio::test]
async fn missing_files_of_a_folder_are_reported() {
    let source = Server::start().await;
    push_catalog(&source, 1).await;
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let setup = setup(&source, &set, dir, &progress);
    let index = Copy::Registry(reference(&source, "acme/index:v1"));
    let loaded = load(&index, setup, dir).await.unwrap();
    let below = "local".parse().unwrap();
    loaded
        .to_folder(setup.sources.client, setup.context, dir, &below)
        .await
        .unwrap();
    fs::remove_file(dir.join("v2/local/acme/index/acme/tool/manifests/v1")).unwrap();
    let copy: Copy = "file://local/acme/index:v1".parse().unwrap();
    let error = load(&copy, setup, dir).await.unwrap_err().to_string();
    assert!(
        error.contains("acme/tool:v1") && error.contains("not found"),
        "{error}"
    );
    let copy: Copy = "file://local/acme/index:v2".parse().unwrap();
    let error = load(&copy, setup, dir).await.unwrap_err().to_string();
    assert!(error.contains("manifests/v2"), "{error}");
    assert!("file://local/acme/index".parse::<Copy>().is_err());
}
