//! Signatures of releases: who signed what, and who is told.

use mirror::archive::Set;
use mirror::history::Former;
use mirror::platform::Keyring;
use mirror::progress::Progress;
use mirror::results::{self, Forms};
use mirror::run;
use oci::Digest;
use pgp::composed::{
    ArmorOptions, KeyType, MessageBuilder, SecretKeyParamsBuilder, SignedPublicKey,
    SignedSecretKey, SubkeyParamsBuilder,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::types::{CompressionAlgorithm, Password, SigningKey};
use rand08::rngs::OsRng;
use serde_json::{Value, json};

use crate::graph;
use crate::platform::{Platform, image_set};
use crate::server::Server;

/// Somebody with a key, and another one below it.
struct Signer(SignedSecretKey);

impl Signer {
    fn new() -> Self {
        let subkey = SubkeyParamsBuilder::default()
            .key_type(KeyType::Ed25519Legacy)
            .can_sign(true)
            .build()
            .unwrap();
        let key = SecretKeyParamsBuilder::default()
            .key_type(KeyType::Ed25519Legacy)
            .can_certify(true)
            .can_sign(true)
            .primary_user_id("maker <maker@example.org>".into())
            .subkey(subkey)
            .build()
            .unwrap();
        Self(key.generate(OsRng).unwrap())
    }

    fn public(&self) -> Vec<u8> {
        let public = SignedPublicKey::from(self.0.clone());
        public.to_armored_bytes(ArmorOptions::default()).unwrap()
    }

    fn keyring(&self) -> Keyring {
        Keyring::parse(&self.public()).unwrap()
    }

    fn sign(&self, digest: &Digest) -> Vec<u8> {
        signed(&self.0.primary_key, HashAlgorithm::Sha256, &claim(digest))
    }
}

fn claim(digest: &Digest) -> Value {
    json!({
        "critical": {
            "type": "atomic container signature",
            "image": {"docker-manifest-digest": digest},
            "identity": {"docker-reference": "up.example/release:1"},
        },
        "optional": {"creator": "test"},
    })
}

fn signed(key: &impl SigningKey, hash: HashAlgorithm, claim: &Value) -> Vec<u8> {
    let mut message = MessageBuilder::from_bytes("", claim.to_string().into_bytes());
    // As gpg does.
    message.compression(CompressionAlgorithm::ZIP);
    message.sign(key, Password::empty(), hash);
    message.to_vec(OsRng).unwrap()
}

/// Where the signature of an image is at the store.
fn place(digest: &Digest, number: usize) -> String {
    format!("/store/sha256={}/signature-{number}", digest.hex())
}

async fn platform(signer: &Signer) -> Platform {
    let mut platform = Platform::start().await;
    let sources = &mut platform.sources;
    sources.signature_stores = vec![platform.site.url("/gone"), platform.site.url("/store/")];
    sources.keyring = Some(signer.keyring());
    sources.ignores_signatures = false;
    platform
}

const NEWEST: &str = "{channels: [{name: stable-4.14}]}";

#[tokio::test]
async fn signatures_are_carried_to_the_cluster() {
    let (signer, target) = (Signer::new(), Server::start().await);
    let mut platform = platform(&signer).await;
    graph::add_graph(&mut platform).await;
    let release = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&release]);
    let (digest, signature) = (&release.image, signer.sign(&release.image));
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
    let files = results::files(&outcome.results, Forms::default()).unwrap();
    let file = files.iter().find(|file| file.path == name).unwrap();
    let config_map: Value = serde_json::from_slice(&file.content).unwrap();
    let key = format!("sha256-{}-1", digest.hex());
    let expected = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &signature);
    assert_eq!(config_map["binaryData"][&key], expected);
    assert_eq!(
        config_map["metadata"]["namespace"],
        "openshift-config-managed"
    );
    // The service that tells upgrades finds it in its own image.
    let (files, _) = graph::image(&target, &outcome).await;
    let hex = digest.hex();
    let path = format!("var/lib/cincinnati-graph-data/signatures/sha256/{hex}/signature-1");
    assert_eq!(files[&path], signature);
}

#[tokio::test]
async fn keys_sign_themselves_and_by_keys_that_they_have_made_their_own() {
    let signer = Signer::new();
    let mut platform = platform(&signer).await;
    let release = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&release]);
    let (set, progress) = (image_set(NEWEST), Progress::default());
    let by_subkey = signed(
        &signer.0.secret_subkeys[0].key,
        HashAlgorithm::Sha512,
        &claim(&release.image),
    );
    let mut both = Signer::new().public();
    both.extend(signer.public());
    platform.sources.keyring = Some(Keyring::parse(&both).unwrap());
    for signature in [signer.sign(&release.image), by_subkey] {
        platform.site.put(&place(&release.image, 1), signature);
        let prepared =
            run::prepare(platform.setup(&set, &progress), &Former::default(), None).await;
        assert_eq!(
            prepared.unwrap().releases.signatures[0].digest,
            release.image
        );
    }
}

#[tokio::test]
async fn what_nobody_trusted_has_signed_is_not_carried() {
    let (signer, other) = (Signer::new(), Signer::new());
    let mut platform = platform(&signer).await;
    for store in &mut platform.sources.signature_stores {
        store.set_password(Some("hunter2")).unwrap();
    }
    let release = platform.release("4.14.1").await;
    platform.channel("stable-4.14", &[&release]);
    let digest = &release.image;
    let told = platform.refused(NEWEST).await;
    assert!(
        told.contains("has no signature that counts") && told.contains("/store/sha256="),
        "{told}"
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
        (other.sign(digest), "no key of the keyring has signed it"),
        (signer.sign(&Digest::sha256(b"other")), "it signs sha256:"),
        (
            signed(key, HashAlgorithm::Sha256, &foreign),
            "\"something else\"",
        ),
        (
            signed(key, HashAlgorithm::Sha256, &json!(7)),
            "it does not sign an image",
        ),
        (b"text".to_vec(), "it is no signed message"),
        (changed, "no key of the keyring has signed it"),
        (signer.public(), "it is no signed message"),
    ] {
        platform.site.put(&place(digest, 1), signature);
        let told = platform.refused(NEWEST).await;
        assert!(
            told.contains("has no signature that counts") && told.contains(reason),
            "{reason}: {told}"
        );
        assert!(!told.contains("hunter2"), "{told}");
    }
    platform.sources.keyring = None;
    let told = platform.refused(NEWEST).await;
    assert!(
        told.contains("--release-keyring") && told.contains("--ignore-release-signature"),
        "{told}"
    );
    platform.sources.keyring = Some(signer.keyring());
    platform.sources.ignores_signatures = true;
    let (set, progress) = (image_set(NEWEST), Progress::default());
    let prepared = run::prepare(platform.setup(&set, &progress), &Former::default(), None)
        .await
        .unwrap();
    assert!(
        prepared.notes[0].contains("has no signature that counts"),
        "{:?}",
        prepared.notes
    );
    assert!(prepared.releases.signatures.is_empty());
}

#[test]
fn what_is_no_keyring_is_told() {
    for wrong in [
        &b""[..],
        b"text",
        b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END",
    ] {
        let refused = Keyring::parse(wrong).unwrap_err().to_string();
        assert!(refused.starts_with("keyring: "), "{refused}");
    }
}
