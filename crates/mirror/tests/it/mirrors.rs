//! Sources that cannot be had where their names say, but in mirrors of them.

use mirror::archive::Set;
use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use mirror::run::{CopyPlan, PlannedArchives};
use oci_client::{Client, ClientOptions, Mirrors};

use crate::runs::{additional, image_set, push_catalog, reference, setup, unpack};
use crate::server::Server;

#[tokio::test]
async fn content_of_mirrors_keeps_the_source_name() {
    let (source, near, target) = (
        Server::start().await,
        Server::start().await,
        Server::start().await,
    );
    push_catalog(&source, 2).await;
    let folder = tempfile::tempdir().unwrap();
    let progress = RunProgress::default();
    let previous = PreviousRuns::default();
    let set = image_set(&source);
    let first = setup(&source, &set, folder.path(), &progress);
    let prepared = first.prepare(&previous, None).await.unwrap();
    let copied = first
        .copy(prepared, CopyPlan::default(), &near.target())
        .await;
    let forms = Forms {
        registries_conf: true,
        ..Forms::default()
    };
    let files = results::files(&copied.unwrap().results, &forms).unwrap();
    let file = files.iter().find(|it| it.path == "registries.conf");
    let mirrors = std::str::from_utf8(&file.unwrap().content).unwrap();

    let tool = reference(&source, "acme/tool:v1");
    let digest = source.client.manifest_digest(&tool).await.unwrap().unwrap();
    let pinned = tool.with_digest(digest.clone());
    source.client.delete_manifest(&pinned).await.unwrap();
    let mut set = additional(&source, &["acme/extra:v1"]);
    set.mirror.additional_images[0].name = pinned.to_string();
    let alone = setup(&source, &set, folder.path(), &progress);
    let missing = alone.prepare(&previous, None).await.unwrap_err();
    assert!(missing.to_string().contains("was not found"), "{missing}");

    let client = Client::new(ClientOptions {
        plain_http: true,
        mirrors: Mirrors::parse(mirrors).unwrap(),
        ..ClientOptions::default()
    });
    let client = client.unwrap();
    let with_mirrors = alone.with(|sources, _| {
        sources.client = &client;
    });
    let prepared = with_mirrors.prepare(&previous, None).await.unwrap();
    let planned = with_mirrors
        .plan_archives(&prepared, &previous, None)
        .unwrap();
    let PlannedArchives::Archives(archives) = planned else {
        panic!("nothing was carried yet");
    };
    let dest = folder.path().join("archives");
    with_mirrors
        .write_archives(*archives, None, &dest)
        .await
        .unwrap();
    let packed = Set::open(&dest).unwrap();
    let published = unpack(alone, packed, &target.target()).await.unwrap();
    let images = published.unwrap().results.images;
    assert_eq!(images[0].source, pinned, "not the name in the mirror");
    let there = target.client.manifest_digest(&images[0].destination).await;
    assert_eq!(there.unwrap(), Some(digest));
}
