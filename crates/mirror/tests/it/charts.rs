//! Charts: fetched from their repositories, searched for images, mirrored, and copied into the results.

use std::fs;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use mirror::archive::Set;
use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use mirror::run::{CopyPlan, PlannedArchives, RunOutcome};
use model::image_set::{Chart, ChartRepository, ImageSet};
use oci::Digest;
use serde_json::json;

use crate::runs::{Setup, push, setup, unpack};
use crate::server::Server;
use crate::site::Site;

/// The archive of a chart without templates that runs these images.
pub(crate) fn archive(name: &str, images: &[String]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let containers: Vec<_> = images.iter().map(|image| json!({"image": image})).collect();
    let pod = json!({"kind": "Pod", "spec": {"containers": containers}}).to_string();
    for (path, content) in [("Chart.yaml", "name: web"), ("templates/pod.yaml", &pod)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let path = format!("{name}/{path}");
        tar.append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// A repository with two versions of the chart `web`; the newer one uses an image of the registry.
pub(crate) async fn repository(registry: &Server) -> (Site, Vec<u8>) {
    let site = Site::start().await;
    push(registry, "acme/web:v2", b"web".to_vec(), json!({})).await;
    let address = &registry.address;
    let images = [
        format!("{address}/acme/web:v2"),
        format!("{address}/acme/gone:v1"),
    ];
    let newer = archive("web", &images);
    let digest = Digest::sha256(&newer);
    let index = format!(
        "entries:\n  web:\n  - {{version: 1.0.0, urls: [web-1.0.0.tgz], digest: {}}}\n  - {{version: 2.0.0, urls: [web-2.0.0.tgz], digest: {}}}\n",
        digest.hex(),
        digest.hex()
    );
    site.put("/stable/index.yaml", index);
    site.put("/stable/web-1.0.0.tgz", archive("web", &[]));
    site.put("/stable/web-2.0.0.tgz", newer.clone());
    (site, newer)
}

pub(crate) fn image_set(site: &Site, name: &str, version: &str) -> ImageSet {
    let mut set = ImageSet::default();
    set.mirror.helm.repositories.push(ChartRepository {
        name: "stable".into(),
        url: site.url("/stable").to_string(),
        charts: vec![Chart {
            name: name.into(),
            version: version.into(),
            ..Chart::default()
        }],
    });
    set
}

/// The chart in the results of a run.
fn handed_out(outcome: &RunOutcome, workspace: &Path) -> Vec<u8> {
    let files = results::files(&outcome.results, &Forms::default()).unwrap();
    let folder = results::write(workspace, 1, &files, &outcome.results.charts).unwrap();
    fs::read(folder.join("charts/web-2.0.0.tgz")).unwrap()
}

fn tags(outcome: &RunOutcome) -> Vec<String> {
    let images = outcome.results.images.iter();
    images.map(|image| image.destination.to_string()).collect()
}

async fn archived(setup: Setup<'_>, folder: &Path) -> Set {
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let gone = prepared
        .notes
        .iter()
        .find(|note| note.contains("acme/gone"));
    assert!(
        gone.is_some_and(|it| it.contains("named by the chart web-2.0.0.tgz")),
        "{gone:?}"
    );
    let plan = setup
        .plan_archives(&prepared, &PreviousRuns::default(), None)
        .unwrap();
    let PlannedArchives::Archives(archives) = plan else {
        panic!("nothing was carried before");
    };
    setup.write_archives(*archives, None, folder).await.unwrap();
    Set::open(folder).unwrap()
}

#[tokio::test]
async fn charts_are_carried_with_their_images_both_ways() {
    let (registry, target) = (Server::start().await, Server::start().await);
    let (site, chart) = repository(&registry).await;
    let (set, progress) = (image_set(&site, "web", ""), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(&registry, &set, folder.path(), &progress);
    let expected = [format!("{}/ns/acme/web:v2", target.address)];

    let archives = archived(setup, &folder.path().join("archives")).await;
    let unpacked = unpack(setup, archives, &target.target()).await.unwrap();
    let outcome = unpacked.expect("the target has nothing yet");
    assert_eq!(tags(&outcome), expected);
    assert_eq!(handed_out(&outcome, &folder.path().join("unpacked")), chart);

    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let outcome = setup
        .copy(prepared, CopyPlan::default(), &target.target())
        .await
        .unwrap();
    assert_eq!(tags(&outcome), expected);
    assert_eq!(handed_out(&outcome, &folder.path().join("direct")), chart);
}

#[tokio::test]
async fn wrong_charts_are_reported() {
    let registry = Server::start().await;
    let (site, _) = repository(&registry).await;
    site.put("/stable/web-1.0.0.tgz", "damaged");
    let folder = tempfile::tempdir().unwrap();
    for (name, version, expected) in [
        ("web", "1.0.0", "the index says sha256:"),
        ("web", "3.0.0", "which has 1.0.0, 2.0.0"),
        ("wep", "", "web may be meant"),
    ] {
        let (mut set, progress) = (image_set(&site, name, version), RunProgress::default());
        let refused = async |set: &ImageSet| {
            let setup = setup(&registry, set, folder.path(), &progress);
            let refused = setup
                .prepare(&PreviousRuns::default(), None)
                .await
                .unwrap_err();
            refused.to_string()
        };
        let error = refused(&set).await;
        assert!(error.contains(expected), "{error}");
        set.mirror.helm.repositories.clear();
        let path = folder.path().join("nothing").to_str().unwrap().to_owned();
        set.mirror.helm.local.push(Chart {
            path: path.clone(),
            ..Chart::default()
        });
        let error = refused(&set).await;
        assert!(
            error.contains(&path) && error.contains("not found"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn charts_with_one_name_are_refused() {
    let registry = Server::start().await;
    let (site, _) = repository(&registry).await;
    let (other, _) = repository(&registry).await;
    let mut set = image_set(&site, "web", "2.0.0");
    let repositories = &mut set.mirror.helm.repositories;
    repositories.push(repositories[0].clone());
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let prepared = async |set: &ImageSet| {
        let setup = setup(&registry, set, folder.path(), &progress);
        setup.prepare(&PreviousRuns::default(), None).await
    };
    assert_eq!(prepared(&set).await.unwrap().charts.len(), 1);
    set.mirror.helm.repositories[1].url = other.url("/stable").to_string();
    let error = prepared(&set).await.unwrap_err().to_string();
    assert!(error.contains("both to be charts/web-2.0.0.tgz"), "{error}");
}

#[tokio::test]
async fn logins_in_addresses_are_neither_printed_nor_recorded() {
    let registry = Server::start().await;
    let (site, _) = repository(&registry).await;
    let (other, _) = repository(&registry).await;
    let with_login = |site: &Site| {
        let url = site.url("/stable").to_string();
        url.replace("http://", "http://me:hunter2@")
    };
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let set = |name: &str, version: &str| {
        let mut set = image_set(&site, name, version);
        set.mirror.helm.repositories[0].url = with_login(&site);
        set
    };
    let mut twice = set("web", "2.0.0");
    twice.mirror.helm.repositories.push(ChartRepository {
        url: with_login(&other),
        ..twice.mirror.helm.repositories[0].clone()
    });
    site.put("/stable/web-1.0.0.tgz", "damaged");
    for wrong in [
        &set("wep", ""),
        &set("web", "3.0.0"),
        &set("web", "1.0.0"),
        &twice,
    ] {
        let setup = setup(&registry, wrong, folder.path(), &progress);
        let refused = setup.prepare(&PreviousRuns::default(), None).await;
        let message = refused.unwrap_err().chain();
        let place = site.url("/stable").to_string();
        assert!(
            message.contains(&place) && !message.contains("hunter2"),
            "{message}"
        );
    }
    let set = set("web", "2.0.0");
    let setup = setup(&registry, &set, folder.path(), &progress);
    let archives = archived(setup, &folder.path().join("archives")).await;
    let mirror = &archives.metadata().past_mirror.mirror;
    assert_eq!(
        mirror.helm.repositories[0].url,
        site.url("/stable").to_string()
    );
    // The same selection is no news, with a login or without.
    let previous = PreviousRuns::new(Some(archives.metadata().clone()));
    let prepared = setup.prepare(&previous, None).await.unwrap();
    let planned = setup.plan_archives(&prepared, &previous, None).unwrap();
    assert!(
        matches!(planned, PlannedArchives::Nothing(_)),
        "{planned:?}"
    );
}
