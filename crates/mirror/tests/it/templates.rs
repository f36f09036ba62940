//! Templates of CatalogSources in the results.

use std::fs;

use mirror::archive::Set;
use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use mirror::run::{CopyPlan, PlannedArchives, RunOutcome};
use model::image_set::ImageSet;

use crate::runs::{image_set, push_catalog, setup, unpack};
use crate::server::Server;

const TEMPLATE: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: unused}
spec: {displayName: Ours, updateStrategy: {registryPoll: {interval: 30m}}}
";

fn with_template(server: &Server, path: &std::path::Path) -> ImageSet {
    let mut set = image_set(server);
    set.storage = None;
    let path = path.to_str().unwrap().to_owned();
    set.mirror.operators[0].target_catalog_source_template = Some(path);
    set
}

fn shown(outcome: &RunOutcome) -> Option<&str> {
    let template = outcome.results.catalogs[0].template.as_ref()?;
    template["spec"]["displayName"].as_str()
}

#[tokio::test]
async fn templates_reach_the_results_both_ways() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 1).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.yaml");
    fs::write(&path, TEMPLATE).unwrap();
    let (set, progress) = (with_template(&source, &path), RunProgress::default());
    let setup = setup(&source, &set, folder.path(), &progress);
    let previous = PreviousRuns::default();
    let prepared = setup.prepare(&previous, None).await.unwrap();
    let PlannedArchives::Archives(archives) =
        setup.plan_archives(&prepared, &previous, None).unwrap()
    else {
        panic!("nothing was carried before");
    };
    let archive = folder.path().join("archive");
    setup
        .write_archives(*archives, None, &archive)
        .await
        .unwrap();
    // On the other side there is no such file.
    fs::remove_file(&path).unwrap();
    let archive = Set::open(&archive).unwrap();
    let outcome = unpack(setup, archive, &target.target()).await.unwrap();
    assert_eq!(shown(&outcome.unwrap()), Some("Ours"));
    let target = target.target();
    let outcome = setup.copy(prepared, CopyPlan::default(), &target).await;
    assert_eq!(shown(&outcome.unwrap()), Some("Ours"));
}

#[tokio::test]
async fn malformed_templates_are_refused_before_the_transfer() {
    let source = Server::start().await;
    push_catalog(&source, 1).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.yaml");
    let (set, progress) = (with_template(&source, &path), RunProgress::default());
    let setup = setup(&source, &set, folder.path(), &progress);
    let refused = async || {
        let refused = setup.prepare(&PreviousRuns::default(), None).await;
        refused.unwrap_err().to_string()
    };
    let error = refused().await;
    assert!(
        error.contains("source.yaml") && error.contains("No such file"),
        "{error}"
    );
    for (text, expected) in [
        ("kind: [", "it is no YAML"),
        ("kind: Pod", "is no CatalogSource"),
    ] {
        fs::write(&path, text).unwrap();
        let error = refused().await;
        assert!(error.contains(expected), "{error}");
    }
}
