//! The registry on a bucket, behind a server that speaks S3 over HTTP.

mod campaign;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use blob_store::object::{self, PART_BYTES_MIN};
use blob_store::{BucketStore, StoreError, conformance};
use oci::Digest;
use registry::Settings;
use reqwest::header::{LINK, LOCATION, RANGE, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use secrecy::SecretString;
use serde_json::{Value, json};
use testkit::s3::{BUCKET, KEY, S3Bucket, S3Server, SECRET};

use crate::manifest_list::{assert_family, push_family};
use crate::process::Process;
use crate::server::{Server, eventually, header, is, manifest, named, refusal};

const ROOT: &str = "some/folder";

/// A server that speaks S3, until it is dropped.
pub(crate) struct S3(S3Server);

impl std::ops::Deref for S3 {
    type Target = S3Server;

    fn deref(&self) -> &S3Server {
        &self.0
    }
}

impl S3 {
    pub(crate) async fn start() -> Self {
        Self(S3Server::start().await)
    }

    async fn listen(bucket: S3Bucket, address: SocketAddr) -> Self {
        Self(S3Server::listen(bucket, address).await)
    }

    /// Ends at once; its stored content stays.
    async fn kill(self) -> (S3Bucket, SocketAddr) {
        self.0.kill().await
    }

    /// The files below a folder.
    fn keys(&self, below: &str) -> Vec<String> {
        let prefix = format!("{ROOT}/docker/registry/v2/{below}");
        let state = self.bucket.state();
        let keys = state.objects.keys();
        keys.filter(|key| key.starts_with(&prefix))
            .cloned()
            .collect()
    }

    fn set(&self, settings: &mut Settings) {
        BUCKET.clone_into(&mut settings.registry_storage_s3_bucket);
        settings.registry_storage_s3_regionendpoint = Some(format!("http://{}", self.address));
        settings.registry_storage_s3_accesskey = Some(SecretString::from(KEY));
        settings.registry_storage_s3_secretkey = Some(SecretString::from(SECRET));
        ROOT.clone_into(&mut settings.registry_storage_s3_rootdirectory);
        settings.registry_storage_maintenance_gc_grace = Duration::ZERO;
        settings.registry_health_storagedriver_enabled = false;
    }

    /// The settings of a program.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let endpoint = format!("http://{}", self.address);
        vec![
            ("REGISTRY_STORAGE", "s3".to_owned()),
            ("REGISTRY_STORAGE_S3_BUCKET", BUCKET.to_owned()),
            ("REGISTRY_STORAGE_S3_REGIONENDPOINT", endpoint),
            ("REGISTRY_STORAGE_S3_ACCESSKEY", KEY.to_owned()),
            ("REGISTRY_STORAGE_S3_SECRETKEY", SECRET.to_owned()),
            ("REGISTRY_STORAGE_S3_ROOTDIRECTORY", ROOT.to_owned()),
            ("REGISTRY_HEALTH_STORAGEDRIVER_ENABLED", "false".to_owned()),
        ]
    }

    async fn registry(&self) -> Server {
        Server::with(|settings| self.set(settings)).await
    }

    fn options(&self) -> object::S3Options {
        object::S3Options {
            bucket: BUCKET.to_owned(),
            region: "us-east-1".to_owned(),
            endpoint: Some(format!("http://{}", self.address)),
            is_path_style: true,
            keys: Some((SecretString::from(KEY), SecretString::from(SECRET))),
            session_token: None,
            ca_pem: None,
            is_insecure: false,
            is_encrypted: false,
            encryption_key: None,
        }
    }
}

async fn open(options: &object::S3Options) -> Result<BucketStore, StoreError> {
    let bucket = Arc::new(object::s3(options).unwrap());
    BucketStore::open(bucket, "", PART_BYTES_MIN).await
}

#[tokio::test]
async fn whole_parts_of_an_upload_survive_kill_9() {
    let s3 = S3::start().await;
    let root = tempfile::tempdir().unwrap();
    let settings = s3.variables();
    let settings = settings.iter().map(|(name, value)| (*name, &**value));
    let chunk = PART_BYTES_MIN.to_string();
    let chunk = [("REGISTRY_STORAGE_S3_CHUNKSIZE", &*chunk)];
    let settings: Vec<_> = settings.chain(chunk).collect();
    let talker = Server::plain().await;
    let process = Process::start(root.path(), &settings).await;
    let (base, port) = (process.base.clone(), process.port());
    let start = talker.request(Method::POST, &format!("{base}/v2/a/blobs/uploads/"));
    let upload = header(&start.send().await.unwrap(), &LOCATION);

    let part = usize::try_from(PART_BYTES_MIN).unwrap();
    let content: Vec<u8> = (0..=250).cycle().take(4 * part).collect();
    // Three parts and a half; then the client pauses, and the process dies.
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let stream = futures_util::stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    });
    let patch = talker.request(Method::PATCH, &upload);
    let patch = tokio::spawn(patch.body(reqwest::Body::wrap_stream(stream)).send());
    let sent = content[..3 * part + part / 2].to_vec();
    sender.send(Ok(sent)).await.unwrap();
    let is_recorded = async || {
        let state = s3.bucket.state();
        let mut records = state
            .objects
            .iter()
            .filter(|(key, _)| key.contains("/parts."));
        records.any(|(_, record)| record.content.split(|byte| *byte == b'\n').count() == 2 + 3)
    };
    eventually(is_recorded).await;
    drop(process);
    assert!(patch.await.unwrap().is_err());

    let _process = Process::start_at(root.path(), port, &settings).await;
    let range = header(&talker.get(&upload).await, &RANGE);
    assert_eq!(range, format!("0-{}", 3 * part - 1));
    let digest = Digest::sha256(&content);
    let done = talker
        .finish(&upload, &digest.to_string(), &content[3 * part..])
        .await;
    assert_eq!(done.status(), StatusCode::CREATED);
    let stored = talker.get(&format!("{base}/v2/a/blobs/{digest}")).await;
    assert!(stored.bytes().await.unwrap() == content);
    assert!(s3.bucket.state().parts.is_empty(), "parts stay");
}

#[tokio::test]
async fn the_store_keeps_the_rules_of_every_store() {
    let s3 = S3::start().await;
    conformance::all(&open(&s3.options()).await.unwrap()).await;
}

#[tokio::test]
async fn an_unusable_bucket_is_reported_at_the_start() {
    let s3 = S3::start().await;
    let mut wrong = s3.options();
    wrong.keys = Some((SecretString::from(KEY), SecretString::from("hidden")));
    let mut absent = s3.options();
    absent.bucket = "other".to_owned();
    for options in [wrong, absent] {
        let error = open(&options).await.unwrap_err();
        let reported = format!("{error} {error:?}");
        assert!(
            matches!(error, StoreError::Unavailable { .. }),
            "{reported}"
        );
        assert!(!reported.contains("hidden"), "{reported}");
    }
}

#[tokio::test]
async fn images_go_in_and_out() {
    let s3 = S3::start().await;
    let server = s3.registry().await;
    let image = server.push_image("team/app", "v1", "layer").await;
    let got = server.get("/v2/team/app/manifests/v1").await;
    assert_eq!(got.text().await.unwrap(), image);
    // In parts, with the rest after a cut.
    let content: Vec<u8> = (0..12_000_000_u32)
        .map(|n| u8::try_from(n % 251).unwrap())
        .collect();
    let location = server.upload("team/app").await;
    server
        .patch(&location, Some("0-5999999"), &content[..6_000_000])
        .await;
    assert_eq!(header(&server.get(&location).await, &RANGE), "0-5999999");
    let digest = Digest::sha256(&content);
    let done = server
        .finish(&location, &digest.to_string(), &content[6_000_000..])
        .await;
    assert_eq!(done.status(), StatusCode::CREATED);
    let path = format!("/v2/team/app/blobs/{digest}");
    assert!(server.get(&path).await.bytes().await.unwrap() == content);
    let part = server
        .request(Method::GET, &path)
        .header(RANGE, "bytes=5999990-6000009");
    let part = part.send().await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.bytes().await.unwrap(), content[5_999_990..6_000_010]);
    assert_eq!(s3.keys("repositories/team/app/_uploads"), [""; 0]);
    assert!(s3.bucket.state().parts.is_empty());
    let family = push_family(&server, "team/family").await;
    assert_family(&server, "team/family", &family).await;
    let usage: Value = server.get("/v2/_atoll/usage").await.json().await.unwrap();
    assert_eq!(
        (&usage["quotas"], &usage["storage"]["free"]),
        (&json!([]), &Value::Null)
    );
    // Another replica has it all.
    let other = s3.registry().await;
    let got = other.get("/v2/team/app/manifests/v1").await;
    assert_eq!(got.text().await.unwrap(), image);
    assert_eq!(other.head(&path).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn tags_repositories_and_referrers_are_listed() {
    let s3 = S3::start().await;
    let server = s3.registry().await;
    for (name, tag) in [
        ("b", "x"),
        ("a", "2"),
        ("a", "1"),
        ("a", "10"),
        ("a/c", "x"),
    ] {
        server.push_image(name, tag, tag).await;
    }
    let tags = server.get("/v2/a/tags/list?n=2").await;
    assert!(header(&tags, &LINK).contains("last=10"), "{tags:?}");
    assert_eq!(
        tags.json::<Value>().await.unwrap()["tags"],
        json!(["1", "10"])
    );
    let catalog = server
        .get("/v2/_catalog?last=a")
        .await
        .json::<Value>()
        .await
        .unwrap();
    assert_eq!(catalog["repositories"], json!(["a/c", "b"]));
    let subject = Digest::sha256(server.push_image("a", "s", "subject").await.as_bytes());
    let config = server.push_blob("a", b"{}").await;
    let body = json!({
        "schemaVersion": 2, "mediaType": crate::server::OCI_MANIFEST, "layers": [],
        "config": {"mediaType": "x/y", "digest": config, "size": 2},
        "subject": {"mediaType": "x", "digest": subject, "size": 1},
    });
    let signature = Digest::sha256(body.to_string().as_bytes());
    let put = server
        .put_manifest("a", &signature.to_string(), body.to_string())
        .await;
    assert_eq!(named(&put, "oci-subject"), subject.to_string());
    let list = server.get(&format!("/v2/a/referrers/{subject}")).await;
    let list = list.json::<Value>().await.unwrap();
    assert_eq!(list["manifests"][0]["digest"], json!(signature));
    let path = format!("/v2/a/manifests/{signature}");
    assert_eq!(server.delete(&path).await.status(), StatusCode::ACCEPTED);
    let list = server.get(&format!("/v2/a/referrers/{subject}")).await;
    assert_eq!(list.json::<Value>().await.unwrap()["manifests"], json!([]));
}

#[tokio::test]
async fn deleted_images_leave_no_bytes() {
    let s3 = S3::start().await;
    let server = s3.registry().await;
    let kept = server.push_image("a", "t", "kept").await;
    let gone = Digest::sha256(server.push_image("a", "u", "gone").await.as_bytes());
    server.delete(&format!("/v2/a/manifests/{gone}")).await;
    let collect = server
        .request(Method::POST, "/v2/_atoll/gc")
        .send()
        .await
        .unwrap();
    let collected = collect.json::<Value>().await.unwrap();
    assert_eq!(
        (&collected["links"], &collected["blobs"]),
        (&json!(1), &json!(2))
    );
    let got = server.get("/v2/a/manifests/t").await;
    assert_eq!(got.text().await.unwrap(), kept);
    let blobs = s3.keys("blobs");
    assert_eq!(blobs.len(), 3, "{blobs:?}");
}

/// Never a 404 for existing content: clients would believe it.
#[tokio::test]
async fn a_server_that_is_gone_is_503_until_it_is_back() {
    let s3 = S3::start().await;
    let server = s3.registry().await;
    let image = server.push_image("a", "t", "x").await;
    let layer = Digest::sha256(b"x");
    let location = server.upload("a").await;
    server.patch(&location, None, b"hello ").await;
    let (bucket, address) = s3.kill().await;
    for path in [
        "/v2/a/manifests/t".to_owned(),
        format!("/v2/a/manifests/{}", Digest::sha256(image.as_bytes())),
        format!("/v2/a/blobs/{layer}"),
        "/v2/a/tags/list".to_owned(),
        "/v2/_catalog".to_owned(),
        format!("/v2/a/referrers/{layer}"),
        location.clone(),
    ] {
        let answer = server.get(&path).await;
        assert!(!header(&answer, &RETRY_AFTER).is_empty(), "{path}");
        assert_eq!(refusal(answer).await, is(503, "UNAVAILABLE"), "{path}");
    }
    let body = manifest(&layer, &[]);
    let put = server.put_manifest("a", "u", body).await;
    assert_eq!(refusal(put).await, is(503, "UNAVAILABLE"));
    let patch = server.patch(&location, None, b"lost").await;
    assert_eq!(refusal(patch).await, is(503, "UNAVAILABLE"));
    let s3 = S3::listen(bucket, address).await;
    let got = server.get("/v2/a/manifests/t").await;
    assert_eq!(got.text().await.unwrap(), image);
    let digest = Digest::sha256(b"hello world").to_string();
    let done = server.finish(&location, &digest, b"world").await;
    assert_eq!(done.status(), StatusCode::CREATED);
    // A server whose bucket has gone says 404 itself.
    s3.bucket.state().is_gone = true;
    let answer = server.get("/v2/a/manifests/t").await;
    assert_eq!(refusal(answer).await, is(503, "UNAVAILABLE"));
}
