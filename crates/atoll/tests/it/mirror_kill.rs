//! `atoll mirror`, killed at each stage, or started twice.

use std::collections::BTreeSet;

use crate::content::reference;
use crate::mirror_place::{
    IMAGE, LAYERS, Place, asked, holding, kill, patient, quiet, refused, source, succeeds, wait,
};
use crate::server::Server;
use crate::web_server::{WebFault, WebServer};

/// Number of repeated requests.
fn repeated(requests: &[String]) -> usize {
    requests.len() - requests.iter().collect::<BTreeSet<_>>().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn packing_resumes_after_a_kill() {
    let server = source().await;
    let (manifests, tags, blobs) = (
        format!("{IMAGE}/manifests/"),
        format!("{IMAGE}/tags/list"),
        format!("{IMAGE}/blobs/"),
    );
    let stages = [
        ("HEAD", "own/state/manifests/", 0),
        ("HEAD", "acme/index/manifests/", 0),
        ("GET", "acme/index/blobs/", 0),
        ("GET", manifests.as_str(), 0),
        ("GET", tags.as_str(), 0),
        ("GET", blobs.as_str(), 0),
        ("GET", blobs.as_str(), 3),
        ("PUT", "own/state/manifests/", 0),
    ];
    for (method, path, answered) in stages {
        let stage = format!("{method} {path} {answered}");
        let source = holding(&server, method, path, answered).await;
        let place = Place::of_catalog(&source);
        kill(place.pack(), || asked(&source, method, path) > answered).await;
        // Archives are complete before the metadata is stored.
        let is_last = method == "PUT";
        assert_eq!(place.archives().len(), usize::from(is_last), "{stage}");
        let state = reference(&server, "own/state:v1");
        let remembered = async || server.client.manifest_digest(&state).await.unwrap();
        assert_eq!(remembered().await, None, "{stage}");
        source.release();
        succeeds(place.pack()).await;
        assert_eq!(place.archives(), ["mirror_seq1_000000.tar"], "{stage}");
        assert!(!place.path("out/.mirror.part").exists(), "{stage}");
        // At most the blob in progress is fetched again.
        let fetched = source.requests(&blobs);
        assert!(
            repeated(&fetched) <= usize::from(!is_last),
            "{stage}: {fetched:?}"
        );
        place.verify().await;
        // The next stage starts without metadata.
        server.client.delete_manifest(&state).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_resumes_after_a_kill() {
    let server = source().await;
    let source = patient(&server).await;
    let packed = Place::of_catalog(&source);
    succeeds(packed.pack()).await;
    let out = packed.path("out").display().to_string();
    resumes_after_kills(&packed, &out).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_by_url_resumes_after_a_kill() {
    let server = source().await;
    let source = patient(&server).await;
    let packed = Place::of_catalog(&source);
    succeeds(packed.pack()).await;
    let web = WebServer::start(packed.path("out"), WebFault::Nothing).await;
    resumes_after_kills(&packed, &format!("http://{}/", web.address)).await;
}

/// Publishes from a folder or URL, killed at each stage, and publishes again.
async fn resumes_after_kills(packed: &Place, from: &str) {
    let other = Server::start().await;
    let undisturbed = patient(&other).await;
    succeeds(packed.publish_from(from, &undisturbed)).await;
    let all = asked(&undisturbed, "PUT", "/blobs/uploads/");
    assert!(all > LAYERS, "{all}");
    let manifests = format!("ns/{IMAGE}/manifests/");
    let stages = [
        ("HEAD", "ns/oc-mirror/manifests/", 0),
        ("POST", "/blobs/uploads/", 0),
        ("PUT", "/blobs/uploads/", 3),
        ("PUT", manifests.as_str(), 0),
        ("PUT", "ns/acme/index/manifests/", 0),
        ("PUT", "ns/oc-mirror/manifests/", 0),
    ];
    for (method, path, answered) in stages {
        let stage = format!("{method} {path} {answered}");
        let target = Server::start().await;
        let runs = reference(&target, "ns/oc-mirror");
        let held = holding(&target, method, path, answered).await;
        kill(packed.publish_from(from, &held), || {
            asked(&held, method, path) > answered
        })
        .await;
        let metadata = target.client.tags(&runs).await;
        assert!(metadata.is_err(), "{stage}: no metadata is stored yet");
        held.release();
        succeeds(packed.publish_from(from, &held)).await;
        for image in [format!("ns/{IMAGE}:v1"), "ns/acme/index:v1".to_owned()] {
            let image = reference(&target, &image);
            let there = target.client.manifest_digest(&image).await.unwrap();
            assert!(there.is_some(), "{stage}: {image}");
        }
        let tags = target.client.tags(&runs).await.unwrap();
        assert_eq!(tags.len(), 1, "{stage}");
        // Sent blobs are kept; only the one in progress, or the two of the metadata, are sent again.
        let sent = asked(&held, "PUT", "/blobs/uploads/");
        assert!(sent <= all + 2, "{stage}: {sent} of {all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_locked_by_its_run() {
    let server = source().await;
    let source = holding(&server, "GET", "/blobs/", 0).await;
    let place = Place::of_image(&source);
    let mut first = quiet(&mut place.pack()).spawn().unwrap();
    wait(&mut first, || !source.requests("/blobs/").is_empty()).await;
    let printed = refused(place.pack()).await;
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(printed.contains("another run works in"), "{printed}");
    assert!(printed.contains("workspace"), "{printed}");
}
