//! The upgrade graph: its data in an image of the target, made of another one, with the signatures of releases.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use axum::http::StatusCode;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use mirror::archive::Set;
use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use mirror::run::{CopyPlan, RunOutcome};
use oci::{Kind, Reference};
use serde_json::{Value, json};

use crate::platform::{Platform, image_set};
use crate::runs::{push, reference};
use crate::server::Server;

const SET: &str = "{graph: true, channels: [{name: stable-4.14}]}";

/// A compressed archive with those files.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        // The library refuses such names, so the header is written by hand.
        let name = &mut header.as_gnu_mut().unwrap().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_uid(1000);
        header.set_mtime(1_795_241_937);
        header.set_cksum();
        tar.append(&header, content.as_bytes()).unwrap();
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&tar.into_inner().unwrap()).unwrap();
    gzip.finish().unwrap()
}

async fn platform() -> Platform {
    let mut platform = Platform::start().await;
    let release = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&release]);
    add_graph(&mut platform).await;
    platform
}

/// Adds the data of a graph, and a base image.
pub(crate) async fn add_graph(platform: &mut Platform) {
    let config = json!({"Entrypoint": ["/bin/tool"], "Env": ["A=b"]});
    push(&platform.registry, "ubi/base:9", b"base".to_vec(), config).await;
    platform.sources.graph_base = reference(&platform.registry, "ubi/base:9");
    platform.sources.graph_data = platform.site.url("/graph-data");
    let files = [
        ("./version", "1.1.0"),
        ("./channels/stable-4.14.yaml", "name: stable-4.14"),
    ];
    platform.site.put("/graph-data", archive(&files));
}

/// The files in the last layer of an image, and how it is run.
pub(crate) async fn image(
    target: &Server,
    outcome: &RunOutcome,
) -> (BTreeMap<String, Vec<u8>>, Value) {
    let client = &target.client;
    let index = outcome.results.graph.clone().unwrap();
    let Kind::Index { manifests } = client.pull_manifest(&index).await.unwrap().kind else {
        panic!("the peer makes an index of it");
    };
    let only = index.with_digest(manifests[0].digest.clone());
    let Kind::Image { config, layers } = client.pull_manifest(&only).await.unwrap().kind else {
        panic!("it is an image");
    };
    assert_eq!(layers.len(), 2);
    let config = client
        .pull_blob_bytes(&only, &config, 1 << 20)
        .await
        .unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    let layer = client
        .pull_blob_bytes(&only, &layers[1], 1 << 20)
        .await
        .unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(&layer[..]));
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        assert_eq!(
            (
                entry.header().uid().unwrap(),
                entry.header().mtime().unwrap()
            ),
            (0, 0)
        );
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        files.insert(
            entry.path().unwrap().to_string_lossy().into_owned(),
            content,
        );
    }
    (files, config["config"].clone())
}

fn update_service(outcome: &RunOutcome) -> String {
    let files = results::files(&outcome.results, &Forms::default()).unwrap();
    let file = files.iter().find(|file| file.path == "updateService.yaml");
    String::from_utf8(file.unwrap().content.to_vec()).unwrap()
}

#[tokio::test]
async fn the_graph_comes_with_releases_out_of_archives_and_directly() {
    let (platform, target, other) = (
        platform().await,
        Server::start().await,
        Server::start().await,
    );
    let one = platform.folder.path().join("1");
    assert!(platform.pack(&image_set(SET), &one).await.unwrap());
    let archives = Set::open(&one).unwrap();
    assert!(
        archives
            .place("cincinnati/cincinnati-graph-data.tar.gz")
            .is_some()
    );
    let additional = &archives.metadata().past_mirror.mirror.additional_images;
    assert_eq!(additional[0].name, platform.sources.graph_base.to_string());
    let outcome = platform.publish(&one, &target).await;
    let (files, config) = image(&target, &outcome).await;
    let folder = "var/lib/cincinnati-graph-data";
    assert_eq!(files[&format!("{folder}/version")], b"1.1.0");
    assert_eq!(
        files[&format!("{folder}/channels/stable-4.14.yaml")],
        b"name: stable-4.14"
    );
    let command = format!("exec cp -rp /{folder}/* /var/lib/cincinnati/graph-data");
    assert_eq!(config["Cmd"], json!(["/bin/bash", "-c", command]));
    assert_eq!(config["Env"], json!(["A=b"]), "the rest is the base's");
    let service = update_service(&outcome);
    let tagged: Reference = format!("{}/ns/openshift/graph-image:latest", target.address)
        .parse()
        .unwrap();
    let digest = target
        .client
        .manifest_digest(&tagged)
        .await
        .unwrap()
        .unwrap();
    let expected = format!(
        "graphDataImage: {}/ns/openshift/graph-image@{digest}",
        target.address
    );
    assert!(service.contains(&expected), "{service}");

    let (set, progress) = (image_set(SET), RunProgress::default());
    let setup = platform.setup(&set, &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let target = other.target();
    let direct = setup.copy(prepared, CopyPlan::default(), &target);
    let direct = direct.await.unwrap().results.graph.unwrap();
    assert_eq!(
        direct.digest,
        Some(digest),
        "the same data makes the same image"
    );
}

#[tokio::test]
async fn malformed_graph_data_is_refused() {
    let mut platform = platform().await;
    let data = &mut platform.sources.graph_data;
    data.set_password(Some("hunter2")).unwrap();
    for (content, expected) in [
        (b"<html>".to_vec(), "/graph-data: "),
        (archive(&[]), "the archive has no files"),
        (
            archive(&[("../version", "1")]),
            "../version leads out of the folder",
        ),
    ] {
        platform.site.put("/graph-data", content);
        let refused = platform.refused(SET).await;
        assert!(
            refused.starts_with("upgrade graph: ") && refused.contains(expected),
            "{refused}"
        );
        assert!(!refused.contains("hunter2"), "{refused}");
    }
    platform
        .site
        .refuse("/graph-data", StatusCode::FORBIDDEN, "");
    let refused = platform.refused(SET).await;
    assert!(refused.contains("/graph-data answered 403"), "{refused}");
}

#[tokio::test]
async fn the_image_that_the_graph_is_put_into_has_to_be_there() {
    let mut platform = platform().await;
    platform.sources.graph_base = reference(&platform.registry, "ubi/none:1");
    let refused = platform.refused(SET).await;
    assert!(
        refused.contains("ubi/none:1 (base image of the upgrade graph)"),
        "{refused}"
    );
}
