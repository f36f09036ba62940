//! Signatures of releases: signers and messages.

use mirror::archive::Set;
use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use oci::Digest;
use oci_client::signature::{Keyring, SignatureStore};
use pgp::composed::MessageBuilder;
use pgp::types::Password;
use rand08::rngs::OsRng;
use serde_json::{Value, json};
use testkit::signer::{HashAlgorithm, Signer, claim, signed};

use crate::graph;
use crate::platform::{Platform, image_set};
use crate::server::Server;

fn keyring(signer: &Signer) -> Keyring {
    Keyring::parse(&signer.public().unwrap()).unwrap()
}

/// Path of an image's signature in the store.
fn place(digest: &Digest, number: usize) -> String {
    format!("/store/sha256={}/signature-{number}", digest.hex())
}

async fn platform(signer: &Signer) -> Platform {
    let mut platform = Platform::start().await;
    let sources = &mut platform.sources;
    let store = |path: &str| SignatureStore::Web(platform.site.url(path));
    sources.signature_stores = vec![store("/gone"), store("/store/")];
    sources.keyring = Some(keyring(signer));
    sources.ignores_signatures = false;
    platform
}

const NEWEST: &str = "{channels: [{name: stable-4.14}]}";

#[tokio::test]
async fn signatures_are_carried_to_the_cluster() {
    let (signer, target) = (Signer::new().unwrap(), Server::start().await);
    let mut platform = platform(&signer).await;
    graph::add_graph(&mut platform).await;
    let release = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&release]);
    let (digest, signature) = (&release.image, signer.sign(&release.image).unwrap());
    platform.site.put(&place(digest, 1), "no signature");
    platform.site.put(&place(digest, 2), signature.clone());
    let one = platform.folder.path().join("1");
    let set = "{graph: true, channels: [{name: stable-4.14}]}";
    assert!(platform.pack(&image_set(set), &one).await.unwrap());
    let name = format!(
        "release-signatures/signature-sha256-{}.json",
        &digest.hex()[..16]
    );
    assert!(Set::open(&one).unwrap().place(&name).is_some());
    let outcome = platform.publish(&one, &target).await;
    let files = results::files(&outcome.results, &Forms::default()).unwrap();
    let file = files.iter().find(|file| file.path == name).unwrap();
    let config_map: Value = serde_json::from_slice(&file.content).unwrap();
    let key = format!("sha256-{}-1", digest.hex());
    let expected = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &signature);
    assert_eq!(config_map["binaryData"][&key], expected);
    assert_eq!(
        config_map["metadata"]["namespace"],
        "openshift-config-managed"
    );
    // The update service finds the signatures in its own image.
    let (files, _) = graph::image(&target, &outcome).await;
    let hex = digest.hex();
    let path = format!("var/lib/cincinnati-graph-data/signatures/sha256/{hex}/signature-1");
    assert_eq!(files[&path], signature);
}

#[tokio::test]
async fn keys_sign_themselves_and_by_keys_that_they_have_made_their_own() {
    let signer = Signer::new().unwrap();
    let mut platform = platform(&signer).await;
    let release = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&release]);
    let (set, progress) = (image_set(NEWEST), RunProgress::default());
    let by_subkey = signed(
        &signer.0.secret_subkeys[0].key,
        HashAlgorithm::Sha512,
        &claim(&release.image),
    )
    .unwrap();
    let mut both = Signer::new().unwrap().public().unwrap();
    both.extend(signer.public().unwrap());
    platform.sources.keyring = Some(Keyring::parse(&both).unwrap());
    for signature in [signer.sign(&release.image).unwrap(), by_subkey] {
        platform.site.put(&place(&release.image, 1), signature);
        let setup = platform.setup(&set, &progress);
        let prepared = setup.prepare(&PreviousRuns::default(), None).await;
        assert_eq!(
            prepared.unwrap().releases.signatures[0].digest,
            release.image
        );
    }
}

#[tokio::test]
async fn releases_without_a_trusted_signature_are_refused() {
    let (signer, other) = (Signer::new().unwrap(), Signer::new().unwrap());
    let mut platform = platform(&signer).await;
    for store in &mut platform.sources.signature_stores {
        let SignatureStore::Web(url) = store else {
            panic!("{store}");
        };
        url.set_password(Some("hunter2")).unwrap();
    }
    let release = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&release]);
    let digest = &release.image;
    let message = platform.refused(NEWEST).await;
    assert!(
        message.contains("has no signature that counts") && message.contains("/store/sha256="),
        "{message}"
    );
    let mut foreign = claim(digest);
    foreign["critical"]["type"] = json!("something else");
    let key = &signer.0.primary_key;
    let mut changed = MessageBuilder::from_bytes("", claim(digest).to_string().into_bytes());
    changed.sign(key, Password::empty(), HashAlgorithm::Sha256);
    let mut changed = changed.to_vec(OsRng).unwrap();
    let creator = changed.windows(4).position(|it| it == b"test").unwrap();
    changed[creator] = b'b';
    for (signature, reason) in [
        (
            other.sign(digest).unwrap(),
            "no key of the keyring has signed it",
        ),
        (
            signer.sign(&Digest::sha256(b"other")).unwrap(),
            "it signs sha256:",
        ),
        (
            signed(key, HashAlgorithm::Sha256, &foreign).unwrap(),
            "\"something else\"",
        ),
        (
            signed(key, HashAlgorithm::Sha256, &json!(7)).unwrap(),
            "it does not sign an image",
        ),
        (b"text".to_vec(), "it is no signed message"),
        (changed, "no key of the keyring has signed it"),
        (signer.public().unwrap(), "it is no signed message"),
    ] {
        platform.site.put(&place(digest, 1), signature);
        let message = platform.refused(NEWEST).await;
        assert!(
            message.contains("has no signature that counts") && message.contains(reason),
            "{reason}: {message}"
        );
        assert!(!message.contains("hunter2"), "{message}");
    }
    platform.sources.keyring = None;
    let message = platform.refused(NEWEST).await;
    assert!(
        message.contains("--release-keyring") && message.contains("--ignore-release-signature"),
        "{message}"
    );
    platform.sources.keyring = Some(keyring(&signer));
    platform.sources.ignores_signatures = true;
    let (set, progress) = (image_set(NEWEST), RunProgress::default());
    let setup = platform.setup(&set, &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    assert!(
        prepared.notes[0].contains("has no signature that counts"),
        "{:?}",
        prepared.notes
    );
    assert!(prepared.releases.signatures.is_empty());
}

#[test]
fn malformed_keyrings_are_refused() {
    for wrong in [
        &b""[..],
        b"text",
        b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END",
    ] {
        let refused = Keyring::parse(wrong).unwrap_err().to_string();
        assert!(refused.starts_with("keyring: "), "{refused}");
    }
}
