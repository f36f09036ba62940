//! Metadata in images, and manifests that leave a target.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use bytes::Bytes;
use mirror::history::{MetadataStore, Pruning, prune};
use model::Error;
use model::image_set::Storage;
use model::mirror_metadata::MirrorMetadata;
use oci::{Descriptor, Kind, Manifest, Reference, media_type};
use oci_client::{Client, ClientOptions};
use serde_json::{Value, json};
use testkit::ports::free_port;
use uuid::Uuid;

use crate::server::Server;

fn metadata(sequence: u64) -> (MirrorMetadata, Bytes) {
    let mut metadata = MirrorMetadata::new(Uuid::from_u128(7), false);
    metadata.past_mirror.sequence = sequence;
    let text = serde_json::to_vec(&metadata).unwrap();
    (metadata, text.into())
}

#[tokio::test]
async fn targets_keep_metadata() {
    let server = Server::start().await;
    let store = MetadataStore::in_target(&server.target(), Uuid::from_u128(7)).unwrap();
    assert_eq!(store.read().await.unwrap(), None);
    for sequence in [1, 2] {
        let (metadata, text) = metadata(sequence);
        store.write(text).await.unwrap();
        assert_eq!(store.read().await.unwrap(), Some(metadata));
    }
}

#[tokio::test]
async fn the_image_has_the_form_that_others_read() {
    let server = Server::start().await;
    let image = format!("{}/own/state", server.address);
    let storage = Storage::Registry {
        image: image.clone(),
        skip_tls: false,
    };
    let store = MetadataStore::new(&storage, &server.client).unwrap();
    let (_, text) = metadata(1);
    store.write(text.clone()).await.unwrap();

    let reference: Reference = format!("{image}:latest").parse().unwrap();
    let manifest = server.client.pull_manifest(&reference).await.unwrap();
    assert_eq!(manifest.media_type, media_type::DOCKER_MANIFEST);
    let Kind::Image { config, layers } = &manifest.kind else {
        panic!("{manifest:?}");
    };
    let config = blob(&server, &reference, config).await;
    let config: Value = serde_json::from_slice(&config).unwrap();
    assert_eq!(
        (&config["architecture"], &config["os"]),
        (&json!(""), &json!(""))
    );
    let [layer] = layers.as_slice() else {
        panic!("{layers:?}");
    };
    let layer = blob(&server, &reference, layer).await;
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(&layer[..])
        .read_to_end(&mut tar)
        .unwrap();
    assert_eq!(
        config["rootfs"]["diff_ids"],
        json!([oci::Digest::sha256(&tar)])
    );
    let mut archive = tar::Archive::new(&tar[..]);
    let mut entries = archive.entries().unwrap();
    let mut entry = entries.next().unwrap().unwrap();
    assert_eq!(&*entry.path_bytes(), b"publish/.metadata.json");
    let header = entry.header();
    assert_eq!((header.mode().unwrap(), header.mtime().unwrap()), (0, 0));
    let mut content = Vec::new();
    entry.read_to_end(&mut content).unwrap();
    assert_eq!(content, text);
    assert!(entries.next().is_none());
}

#[tokio::test]
async fn another_image_is_no_metadata() {
    let server = Server::start().await;
    let reference: Reference = format!("{}/own/state:latest", server.address)
        .parse()
        .unwrap();
    push(&server, &reference, "x").await;
    let store = MetadataStore::Image {
        client: server.client.clone(),
        reference,
    };
    let refused = store.read().await.unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_registry_that_is_away_is_no_first_run() {
    let address = format!("127.0.0.1:{}", free_port().unwrap());
    let options = ClientOptions {
        plain_http: true,
        attempts: Some(1),
        ..ClientOptions::default()
    };
    let store = MetadataStore::Image {
        client: Client::new(options).unwrap(),
        reference: format!("{address}/own/state:latest").parse().unwrap(),
    };
    let failed = [
        store.read().await.map(drop),
        store.write(metadata(1).1).await,
    ];
    for failed in failed {
        assert!(
            matches!(failed, Err(Error::Unavailable { .. })),
            "{failed:?}"
        );
    }
}

#[tokio::test]
async fn failed_deletions_are_reported() {
    let server = Server::with(|settings| settings.registry_storage_delete_enabled = false).await;
    let reference: Reference = format!("{}/ns/a:1", server.address).parse().unwrap();
    let there = push(&server, &reference, "x").await;
    let pruning = Pruning {
        deletions: BTreeMap::from([("ns/a".parse().unwrap(), BTreeSet::from([there]))]),
        images: 1,
        emptied: Vec::new(),
        remembered: Vec::new(),
    };
    let failed = prune(&pruning, &server.target(), 1).await;
    assert!(
        matches!(failed.as_slice(), [(_, Error::Conflict { .. })]),
        "{failed:?}"
    );
}

#[tokio::test]
async fn only_planned_manifests_are_deleted() {
    let server = Server::start().await;
    let target = server.target();
    let reference = |tag: &str| -> Reference {
        format!("{}/ns/misc/tool:{tag}", server.address)
            .parse()
            .unwrap()
    };
    let old = push(&server, &reference("old"), "old").await;
    push(&server, &reference("new"), "new").await;
    let never = oci::Digest::sha256(b"never pushed");
    let pruning = Pruning {
        deletions: BTreeMap::from([(
            "ns/misc/tool".parse().unwrap(),
            BTreeSet::from([old, never]),
        )]),
        images: 2,
        emptied: Vec::new(),
        remembered: Vec::new(),
    };
    // The second deletion finds nothing.
    for _ in 0..2 {
        let failed = prune(&pruning, &target, 4).await;
        assert!(failed.is_empty(), "{failed:?}");
        let has = async |tag| {
            server
                .client
                .manifest_digest(&reference(tag))
                .await
                .unwrap()
                .is_some()
        };
        assert_eq!([has("old").await, has("new").await], [false, true]);
    }
}

async fn blob(server: &Server, reference: &Reference, blob: &Descriptor) -> Bytes {
    let client = &server.client;
    client
        .pull_blob_bytes(reference, blob, 1 << 20)
        .await
        .unwrap()
}

/// An image without files.
async fn push(server: &Server, reference: &Reference, name: &str) -> oci::Digest {
    let client = &server.client;
    let config = json!({ "author": name }).to_string();
    let config = client
        .push_blob_bytes(reference, media_type::OCI_CONFIG, config.into())
        .await
        .unwrap();
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": []});
    let manifest = Manifest::parse(manifest.to_string().into(), None).unwrap();
    client.push_manifest(reference, &manifest).await.unwrap();
    manifest.digest
}
