//! Manifests of schema 1. The fixture came from `skopeo copy --format v2s1`.

use blob_store::conformance::EMPTY_LAYER;
use oci::Digest;
use oci::media_type::{DOCKER_SCHEMA1, DOCKER_SCHEMA1_SIGNED};
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;

use crate::server::{Server, header, is, named, refusal};

const SIGNED: &str = include_str!("../../../oci/fixtures/schema1.json");
/// Over the payload, as skopeo calculates it.
const DIGEST: &str = "sha256:0d4fa3d6966c1f5201eb3f9f3d0fcad2174fb2dd8c32de4bab459cce744470de";

#[tokio::test]
async fn original_bytes_come_back_under_the_digest_of_the_payload() {
    let server = Server::plain().await;
    server.push_blob("old/image", &EMPTY_LAYER).await;
    // Docker sent no better type.
    for content_type in [
        DOCKER_SCHEMA1_SIGNED,
        DOCKER_SCHEMA1,
        "application/json",
        "",
    ] {
        let response = server
            .put_typed("old/image", "t", content_type, SIGNED)
            .await;
        assert_eq!(response.status(), StatusCode::CREATED, "{content_type}");
        assert_eq!(named(&response, "docker-content-digest"), DIGEST);
    }
    let server = server.restart().await;
    for target in ["t", DIGEST] {
        let response = server
            .get(&format!("/v2/old/image/manifests/{target}"))
            .await;
        assert_eq!(header(&response, &CONTENT_TYPE), DOCKER_SCHEMA1_SIGNED);
        assert_eq!(named(&response, "docker-content-digest"), DIGEST);
        assert_eq!(response.text().await.unwrap(), SIGNED);
    }
    // The file that distribution reads when it serves the folder again.
    let data = server.content(&format!("blobs/sha256/0d/{}/data", &DIGEST[7..]));
    assert_eq!(
        Digest::sha256(&std::fs::read(data).unwrap()).to_string(),
        DIGEST
    );
}

#[tokio::test]
async fn what_distribution_kept_without_signatures_is_served() {
    let server = Server::plain().await;
    server.push_blob("old/image", &EMPTY_LAYER).await;
    server
        .put_typed("old/image", "t", DOCKER_SCHEMA1_SIGNED, SIGNED)
        .await;
    let revision = format!(
        "repositories/old/image/_manifests/revisions/sha256/{}",
        &DIGEST[7..]
    );
    std::fs::remove_file(server.content(&revision).join("signed")).unwrap();
    let response = server.get("/v2/old/image/manifests/t").await;
    assert_eq!(header(&response, &CONTENT_TYPE), DOCKER_SCHEMA1);
    let body = response.bytes().await.unwrap();
    assert_eq!(Digest::sha256(&body).to_string(), DIGEST);
}

#[tokio::test]
async fn signatures_have_to_be_there_and_right() {
    let server = Server::plain().await;
    server.push_blob("old/image", &EMPTY_LAYER).await;
    let payload = SIGNED.split_once(",\"signatures\"").unwrap().0.to_owned() + "}";
    let changed = SIGNED.replacen("\"tag\":\"t\"", "\"tag\":\"u\"", 1);
    for body in [payload, changed] {
        let response = server
            .put_typed("old/image", "t", DOCKER_SCHEMA1_SIGNED, &*body)
            .await;
        assert_eq!(refusal(response).await, is(400, "MANIFEST_UNVERIFIED"));
    }
    let none = server.get("/v2/old/image/manifests/t").await;
    assert_eq!(none.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let server = Server::with(|settings| {
        settings.registry_compatibility_schema1_enabled = false;
    })
    .await;
    server.push_blob("old/image", &EMPTY_LAYER).await;
    let response = server
        .put_typed("old/image", "t", DOCKER_SCHEMA1_SIGNED, SIGNED)
        .await;
    assert_eq!(refusal(response).await, is(405, "UNSUPPORTED"));
}
