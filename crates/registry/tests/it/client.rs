//! Our own client against our own registry.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use oci::{Descriptor, Digest, Error, Kind, Manifest, Platform, Reference, media_type};
use oci_client::Client;
use oci_client::client::{BlobSource, Provided, RemoteBlob};
use oci_client::image::{self, ImageFile};

use crate::server::Server;

fn reference(server: &Server, rest: &str) -> Reference {
    format!("{}/{rest}", server.address()).parse().unwrap()
}

fn gzip(tar: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(tar).unwrap();
    gzip.finish().unwrap()
}

fn layer(files: &[(&str, &[u8])], links: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, path, *content).unwrap();
    }
    for (path, target) in links {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, path, target).unwrap();
    }
    tar.into_inner().unwrap()
}

async fn push_image(client: &Client, reference: &Reference, layers: Vec<Vec<u8>>) -> Manifest {
    let config = Bytes::from_static(b"{\"config\":{\"Labels\":{\"a\":\"b\"}}}");
    let config = client
        .push_blob_bytes(reference, media_type::OCI_CONFIG, config)
        .await
        .unwrap();
    let mut descriptors = Vec::new();
    for layer in layers {
        let layer = Bytes::from(gzip(&layer));
        descriptors.push(
            client
                .push_blob_bytes(reference, media_type::OCI_LAYER_GZIP, layer)
                .await
                .unwrap(),
        );
    }
    let body = serde_json::json!({"schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "config": config, "layers": descriptors});
    Manifest::parse(body.to_string().into(), None).unwrap()
}

fn index(image: &Manifest) -> Manifest {
    let entry = Descriptor {
        platform: Some(Platform::linux("amd64")),
        ..image.descriptor()
    };
    let body = serde_json::json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": [entry]});
    Manifest::parse(body.to_string().into(), None).unwrap()
}

#[tokio::test]
async fn images_go_in_and_files_come_out() {
    let server = Server::closed().await;
    let client = server.client();
    let tagged = reference(&server, "ocp/release:4.14");
    let big = vec![5; 3_000_000];
    let bottom = layer(
        &[
            ("usr/bin/run", &big),
            ("etc/old", b"old"),
            ("etc/hidden", b"x"),
        ],
        &[("bin", "usr/bin")],
    );
    let top = layer(
        &[("etc/old", b"new"), ("etc/.wh.hidden", b"")],
        &[("usr/bin/alias", "/bin/run")],
    );
    let image = push_image(&client, &tagged, vec![bottom, top]).await;
    client
        .push_manifest(&tagged.with_digest(image.digest.clone()), &image)
        .await
        .unwrap();
    let index = index(&image);
    client.push_manifest(&tagged, &index).await.unwrap();

    assert_eq!(client.pull_manifest(&tagged).await.unwrap(), index);
    assert_eq!(
        client.manifest_digest(&tagged).await.unwrap(),
        Some(index.digest.clone())
    );
    let amd64 = Platform::linux("x86_64");
    let config = image::config(&client, &tagged, &amd64).await.unwrap();
    assert_eq!(config["config"]["Labels"]["a"], "b");
    let dir = tempfile::tempdir().unwrap();
    let wanted = |path: &str, name: &str| ImageFile {
        path: path.to_owned(),
        destination: dir.path().join(name),
    };
    let wishes = [
        wanted("/usr/bin/alias", "alias"),
        wanted("etc/old", "old"),
        wanted("bin/run", "run"),
    ];
    image::fetch_files(&client, &tagged, &amd64, &wishes)
        .await
        .unwrap();
    for name in ["alias", "run"] {
        assert_eq!(std::fs::read(dir.path().join(name)).unwrap(), big);
        let mode = std::fs::metadata(dir.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
    }
    assert_eq!(std::fs::read(dir.path().join("old")).unwrap(), b"new");
    for absent in ["etc/hidden", "nowhere", "", "../etc/old"] {
        let refused = image::fetch_file(&client, &tagged, &amd64, absent, &dir.path().join("x"))
            .await
            .unwrap_err();
        assert!(
            matches!(refused, Error::NotFound { .. }),
            "{absent}: {refused:?}"
        );
    }
    let refused = image::resolve(&client, &tagged, &Platform::linux("s390x"))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("linux/s390x"), "{refused}");
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        3,
        "nothing temporary stays"
    );
}

#[tokio::test]
async fn links_in_circles_end() {
    let server = Server::plain().await;
    let client = server.client();
    let tagged = reference(&server, "loop:t");
    let image = push_image(
        &client,
        &tagged,
        vec![layer(&[], &[("a", "b"), ("b", "a")])],
    )
    .await;
    client.push_manifest(&tagged, &image).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let refused = image::fetch_file(
        &client,
        &tagged,
        &Platform::linux("amd64"),
        "a",
        &dir.path().join("x"),
    )
    .await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

#[tokio::test]
async fn damage_on_the_disk_does_not_reach_the_file() {
    let server = Server::plain().await;
    let client = server.client();
    let tagged = reference(&server, "damaged:t");
    let image = push_image(
        &client,
        &tagged,
        vec![layer(&[("f", &vec![1; 50_000])], &[])],
    )
    .await;
    client.push_manifest(&tagged, &image).await.unwrap();
    let Kind::Image { layers, .. } = &image.kind else {
        panic!("an image")
    };
    let hex = layers[0].digest.hex();
    let data = server.content(&format!("blobs/sha256/{}/{hex}/data", &hex[..2]));
    let mut bytes = std::fs::read(&data).unwrap();
    // The modification time in the header of gzip: everything can still be unpacked.
    bytes[4] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let refused = image::fetch_file(
        &client,
        &tagged,
        &Platform::linux("amd64"),
        "f",
        &dir.path().join("x"),
    )
    .await
    .unwrap_err();
    assert!(refused.to_string().contains("another digest"), "{refused}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn blobs_go_whole_or_in_pieces_or_not_at_all() {
    let server = Server::closed().await;
    let client = server.client();
    let target = reference(&server, "a/b");
    let content: Vec<u8> = (0..5_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("blob");
    std::fs::write(&file, &content).unwrap();
    let digest = Digest::sha256(&content);
    for source in [
        BlobSource::File(file.clone()),
        BlobSource::Bytes(content.clone().into()),
    ] {
        client
            .push_blob_chunked(&target, &digest, &source, 1_300_000)
            .await
            .unwrap();
        client.push_blob(&target, &digest, &source).await.unwrap();
    }
    let other = reference(&server, "other");
    client
        .push_blob(&other, &digest, &BlobSource::File(file))
        .await
        .unwrap();
    let third = reference(&server, "third");
    assert!(
        client
            .mount_blob(&third, &target.repository, &digest)
            .await
            .unwrap()
    );
    assert!(
        !client
            .mount_blob(&third, &target.repository, &Digest::sha256(b"none"))
            .await
            .unwrap()
    );
    assert!(client.has_blob(&third, &digest).await.unwrap());
    let mut back = Vec::new();
    let blob = Descriptor {
        media_type: String::new(),
        digest: digest.clone(),
        size: content.len() as u64,
        platform: None,
        annotations: None,
    };
    client.pull_blob(&third, &blob, &mut back).await.unwrap();
    assert_eq!(back, content);
    let wrong = BlobSource::Bytes(Bytes::from_static(b"other"));
    let refused = client
        .push_blob(&reference(&server, "d"), &digest, &wrong)
        .await
        .unwrap_err();
    assert!(
        matches!(refused, Error::Invalid { .. }) && refused.to_string().contains("DIGEST_INVALID"),
        "{refused}"
    );
}

#[tokio::test]
async fn blobs_are_sent_once_and_found_elsewhere() {
    let (server, source) = (Server::closed().await, Server::closed().await);
    let client = server.client();
    let content = Bytes::from_static(b"before, the blob, after");
    let blob = content.slice(8..16);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("archive");
    std::fs::write(&file, &content).unwrap();
    let part = BlobSource::Part {
        path: file.into(),
        offset: 8,
        size: 8,
    };
    let digest = Digest::sha256(&blob);
    let sent = Arc::new(AtomicU64::new(0));
    let provide = async |place: &str, source: &BlobSource, from: Option<&str>| {
        let from = from.map(|from| from.parse().unwrap());
        let place = reference(&server, place);
        client
            .provide_blob(&place, &digest, source, from.as_ref(), &sent)
            .await
    };
    assert_eq!(provide("a", &part, None).await.unwrap(), Provided::Sent);
    assert_eq!(sent.load(Ordering::Relaxed), 8);
    assert_eq!(provide("a", &part, None).await.unwrap(), Provided::There);
    assert_eq!(
        provide("b", &part, Some("a")).await.unwrap(),
        Provided::There
    );

    let there = reference(&source, "there");
    let elsewhere = source.client();
    let remote = elsewhere
        .push_blob_bytes(&there, "", Bytes::from_static(b"of another registry"))
        .await
        .unwrap();
    let remote_source = |blob: &Descriptor| {
        BlobSource::Remote(Box::new(RemoteBlob {
            client: elsewhere.clone(),
            reference: there.clone(),
            blob: blob.clone(),
        }))
    };
    let place = reference(&server, "c");
    let provided = client
        .provide_blob(&place, &remote.digest, &remote_source(&remote), None, &sent)
        .await;
    assert_eq!(provided.unwrap(), Provided::Sent);
    assert!(client.has_blob(&place, &remote.digest).await.unwrap());
    // The error names the source, not the target.
    let gone = Descriptor {
        digest: Digest::sha256(b"gone"),
        ..remote
    };
    let refused = client
        .provide_blob(&place, &gone.digest, &remote_source(&gone), None, &sent)
        .await;
    assert!(
        matches!(refused, Err(Error::NotFound { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn lists_and_deletes() {
    let server = Server::closed().await;
    let client = server.client();
    let tagged = reference(&server, "a:t1");
    let image = push_image(&client, &tagged, vec![]).await;
    client.push_manifest(&tagged, &image).await.unwrap();
    client
        .push_manifest(&reference(&server, "a:t2"), &image)
        .await
        .unwrap();
    assert_eq!(
        client
            .catalog(tagged.registry.host().unwrap())
            .await
            .unwrap(),
        ["a"]
    );
    let tags = client.tags(&tagged).await.unwrap();
    assert_eq!(
        tags.iter().map(oci::Tag::as_str).collect::<Vec<_>>(),
        ["t1", "t2"]
    );
    client.delete_manifest(&tagged).await.unwrap();
    assert_eq!(client.manifest_digest(&tagged).await.unwrap(), None);
    assert!(matches!(
        client.delete_manifest(&tagged).await,
        Err(Error::NotFound { .. })
    ));
}
