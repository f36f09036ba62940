//! Runs that go on after a failure.

use mirror::archive::Set;
use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use mirror::run::{self, ArchiveOutput};
use oci::Digest;
use serde_json::json;

use crate::faulty::{Fault, Faulty, Rule};
use crate::runs::{additional_at, push, reference, setup, unpack};
use crate::server::Server;

#[tokio::test]
async fn archives_leave_out_images_with_missing_layers() {
    let (source, target) = (Server::start().await, Server::start().await);
    for name in ["acme/a:v1", "acme/b:v1"] {
        push(&source, name, name.into(), json!({})).await;
    }
    let layer = Digest::sha256(b"acme/a:v1");
    let rule = Rule {
        method: "GET",
        path: format!("/blobs/{layer}"),
        times: usize::MAX,
        fault: Fault::Status(404),
    };
    let from = Faulty::start(&source, vec![rule]).await;
    let set = additional_at(&from.address, &["acme/a:v1", "acme/b:v1"]);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let mut setup = setup(&source, &set, folder.path(), &progress).with(|sources, _| {
        sources.client = &from.client;
    });
    setup.context.limits.continue_on_error = true;
    let previous = PreviousRuns::default();
    let mut prepared = setup.prepare(&previous, None).await.unwrap();
    let dest = folder.path().join("out");
    let all = &mut prepared;
    let packed = run::write_available_archives(
        setup.sources,
        setup.context,
        all,
        &previous,
        ArchiveOutput {
            folder: &dest,
            signer: None,
            store: None,
        },
    );
    assert_eq!(packed.await.unwrap().len(), 1);
    let failed: Vec<_> = prepared.failed.iter().map(|(it, _)| &it.source).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].repository.as_str(), "acme/a");

    let archives = Set::open(&dest).unwrap();
    unpack(setup, archives, &target.target()).await.unwrap();
    let there = async |name: &str| {
        let name = reference(&target, name);
        target
            .client
            .manifest_digest(&name)
            .await
            .unwrap()
            .is_some()
    };
    assert!(there("ns/acme/b:v1").await);
    assert!(!there("ns/acme/a:v1").await);
}
