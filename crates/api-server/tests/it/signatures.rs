//! Signed release images from unlisted registries.

use std::fs;

use api_server::settings::SignatureStores;
use oci::Digest;
use serde_json::{Value, json};
use service::settings::Setting as _;
use tempfile::TempDir;
use testkit::signer::Signer;
use testkit::wire::{Wire, answer};

use crate::harness::{Answer, Server, cluster_params, merged};
use crate::installation;

const PULL_SECRET: &str = r#"{"auths":{"registry.example.com:5000":{"auth":"dXNlcjpwYXNzd29yZA=="},"elsewhere.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;

/// A server that trusts the signer, with a signature store.
struct World {
    signer: Signer,
    folder: TempDir,
    server: Server,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().to_str().unwrap().to_owned();
        Self::with(folder, &store).await
    }

    async fn with(folder: TempDir, stores: &str) -> Self {
        let signer = Signer::new().unwrap();
        let keyring = folder.path().join("keyring");
        fs::write(&keyring, signer.public().unwrap()).unwrap();
        let server = Server::with(|settings| {
            settings.release_keyring = Some(keyring);
            settings.release_signature_stores = SignatureStores::parse(stores).unwrap();
        });
        Self {
            server: server.await,
            signer,
            folder,
        }
    }

    fn put(&self, digest: &Digest, number: usize, signature: &[u8]) {
        let folder = self.folder.path().join(format!("sha256={}", digest.hex()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("signature-{number}")), signature).unwrap();
    }
}

fn image(digest: &Digest) -> String {
    format!("elsewhere.example.com/ocp/release@{digest}")
}

fn named(image: &str) -> Value {
    let more = json!({ "ocp_release_image": image, "pull_secret": PULL_SECRET });
    merged(cluster_params(), more)
}

async fn create(server: &Server, image: &str) -> Answer {
    server.post("/v2/clusters", &named(image)).await
}

#[track_caller]
fn refused(answer: Answer, why: &str) {
    let text = answer.expect(400)["reason"].as_str().unwrap().to_owned();
    for part in [
        "elsewhere.example.com",
        "RELEASE_IMAGE_REGISTRIES",
        "RELEASE_KEYRING",
        why,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn signed_release_images_are_accepted_from_any_registry() {
    let world = World::start().await;
    let digest = Digest::sha256(b"release");
    // The first signature is by an untrusted key.
    let other = Signer::new().unwrap();
    world.put(&digest, 1, &other.sign(&digest).unwrap());
    world.put(&digest, 2, &world.signer.sign(&digest).unwrap());
    let created = create(&world.server, &image(&digest)).await.expect(201);
    assert_eq!(created["ocp_release_image"], image(&digest));
}

#[tokio::test]
async fn config_maps_of_mirroring_tools_are_read() {
    let world = World::start().await;
    let (digest, other) = (Digest::sha256(b"release"), Digest::sha256(b"other"));
    let signatures = |signed: &Digest| oci_client::signature::Signatures {
        digest: signed.clone(),
        signatures: vec![world.signer.sign(signed).unwrap().into()],
    };
    let path = world.folder.path().join(signatures(&digest).file_name());
    // The file names contain a part of the digest only.
    fs::write(&path, signatures(&other).config_map()).unwrap();
    refused(
        create(&world.server, &image(&digest)).await,
        "was not found",
    );
    fs::write(&path, signatures(&digest).config_map()).unwrap();
    create(&world.server, &image(&digest)).await.expect(201);
}

#[tokio::test]
async fn untrusted_and_unsigned_images_are_refused() {
    let world = World::start().await;
    let server = &world.server;
    let [digest, by_other, of_other] = [&b"a"[..], b"b", b"c"].map(Digest::sha256);
    refused(create(server, &image(&digest)).await, "was not found");
    let other = Signer::new().unwrap();
    world.put(&by_other, 1, &other.sign(&by_other).unwrap());
    let why = "no key of the keyring has signed it";
    refused(create(server, &image(&by_other)).await, why);
    world.put(&of_other, 1, &world.signer.sign(&digest).unwrap());
    let why = format!("it signs {digest}");
    refused(create(server, &image(&of_other)).await, &why);
    let by_tag = "elsewhere.example.com/ocp/release:4.18.7";
    refused(create(server, by_tag).await, "not pinned by digest");
}

#[tokio::test]
async fn unlisted_images_are_refused_without_a_keyring() {
    let server = Server::start().await;
    let image = image(&Digest::sha256(b"release"));
    refused(create(&server, &image).await, "RELEASE_KEYRING is empty");
}

#[tokio::test]
async fn signatures_are_fetched_from_web_servers() {
    let store = Wire::answering(|head| {
        let missing = head.contains("/missing/");
        let status = if missing {
            "404 Not Found"
        } else {
            "500 Broken"
        };
        answer(status, "", "")
    });
    let store = store.await;
    let stores = format!("http://{0}/missing,http://{0}/s", store.address);
    let world = World::with(tempfile::tempdir().unwrap(), &stores).await;
    let digest = Digest::sha256(b"release");
    let unavailable = create(&world.server, &image(&digest)).await;
    assert!(!unavailable.header("retry-after").is_empty());
    let text = unavailable.expect(503)["reason"].to_string();
    assert!(text.contains("signature"), "{text}");
    let requests = store.requests();
    for folder in ["missing", "s"] {
        let path = format!("GET /{folder}/sha256={}/signature-1 ", digest.hex());
        let mut paths = requests.iter();
        assert!(paths.any(|it| it.starts_with(&path)), "{requests:?}");
    }
}

/// Signatures are verified again: settings and keys may change after the creation of the cluster.
#[tokio::test]
async fn signatures_are_verified_by_preparations() {
    let world = World::start().await;
    let digest = Digest::sha256(b"release");
    world.put(&digest, 1, &world.signer.sign(&digest).unwrap());
    let more = json!({ "ocp_release_image": image(&digest), "pull_secret": PULL_SECRET });
    let server = &world.server;
    let (id, _) = installation::ready_as(server, 1, more).await;
    world.put(&digest, 1, b"no signature");
    let path = format!("/v2/clusters/{id}");
    let install = format!("{path}/actions/install");
    server.post(&install, &json!({})).await.expect(202);
    let reason = server.until("the preparation has failed", async || {
        let cluster = server.get(&path).await.expect(200);
        let preparation = &cluster["last-installation-preparation"];
        if preparation["status"] == "failed" {
            return Ok(preparation["reason"].to_string());
        }
        Err(cluster)
    });
    let reason = reason.await;
    for part in ["RELEASE_KEYRING", "it is no signed message"] {
        assert!(reason.contains(part), "{reason}");
    }
}
