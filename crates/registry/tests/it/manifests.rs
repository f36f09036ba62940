//! Manifests and tags.

use oci::media_type::{DOCKER_LIST, DOCKER_MANIFEST, OCI_INDEX};
use oci::{Algorithm, Digest, MANIFEST_LIMIT_BYTES};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION};
use reqwest::{Method, StatusCode};

use crate::server::{OCI_MANIFEST, Server, header, is, manifest, named, refusal};

#[tokio::test]
async fn bytes_come_back_as_they_were() {
    let server = Server::plain().await;
    let body = server.push_image("a/b", "v1", "layer").await;
    let digest = Digest::sha256(body.as_bytes()).to_string();
    for target in ["v1", &digest] {
        let path = format!("/v2/a/b/manifests/{target}");
        let head = server.head(&path).await;
        let got = server.get(&path).await;
        for response in [&head, &got] {
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(header(response, &CONTENT_TYPE), OCI_MANIFEST);
            assert_eq!(header(response, &CONTENT_LENGTH), body.len().to_string());
            assert_eq!(named(response, "docker-content-digest"), digest);
            assert_eq!(header(response, &ETAG), format!("\"{digest}\""));
        }
        assert_eq!(got.text().await.unwrap(), body);
        let known = server
            .request(Method::GET, &path)
            .header(IF_NONE_MATCH, &digest)
            .send()
            .await
            .unwrap();
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    }
    let again = server.put_manifest("a/b", "v1", &*body).await;
    assert_eq!(
        header(&again, &LOCATION),
        format!("{}/v2/a/b/manifests/{digest}", server.base)
    );
}

#[tokio::test]
async fn absent_manifests_are_unknown_even_to_caches() {
    let server = Server::plain().await;
    server.push_image("a", "v1", "x").await;
    let absent = Digest::sha256(b"absent");
    for path in [
        "/v2/a/manifests/v2".to_owned(),
        "/v2/b/manifests/v1".to_owned(),
        format!("/v2/a/manifests/{absent}"),
    ] {
        let request = server
            .request(Method::GET, &path)
            .header(IF_NONE_MATCH, format!("\"{absent}\""));
        assert_eq!(
            refusal(request.send().await.unwrap()).await,
            is(404, "MANIFEST_UNKNOWN")
        );
        assert_eq!(server.head(&path).await.status(), StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn what_is_no_manifest_is_refused() {
    let server = Server::plain().await;
    let config = server.push_blob("a", b"{}").await;
    let good = manifest(&config, &[]);
    let both = good.replace("\"schemaVersion\"", "\"manifests\":[],\"schemaVersion\"");
    for body in [
        "",
        "null",
        "[]",
        "{}",
        "{\"schemaVersion\":1}",
        &good[..20],
        &both,
    ] {
        assert_eq!(
            refusal(server.put_manifest("a", "t", body).await).await,
            is(400, "MANIFEST_INVALID"),
            "{body}"
        );
    }
    for media_type in [OCI_INDEX, "text/plain", DOCKER_MANIFEST] {
        let refused = server.put_typed("a", "t", media_type, good.clone()).await;
        assert_eq!(
            refusal(refused).await,
            is(400, "MANIFEST_INVALID"),
            "{media_type}"
        );
    }
    let wrong = server
        .put_manifest("a", &Digest::sha256(b"x").to_string(), &*good)
        .await;
    assert_eq!(refusal(wrong).await, is(400, "DIGEST_INVALID"));
    assert_eq!(
        refusal(server.put_manifest("a", "sha256:x", &*good).await).await,
        is(400, "DIGEST_INVALID")
    );
    assert_eq!(
        refusal(server.put_manifest("a", ".t", &*good).await).await,
        is(400, "TAG_INVALID")
    );
    assert_eq!(
        refusal(server.get("/v2/a/manifests/t").await).await,
        is(404, "MANIFEST_UNKNOWN")
    );
}

#[tokio::test]
async fn every_missing_blob_is_named() {
    let server = Server::plain().await;
    server.push_blob("other", b"{}").await;
    let (config, layer) = (Digest::sha256(b"{}"), Digest::sha256(b"layer"));
    let refused = server
        .put_manifest("a", "t", manifest(&config, &[(&layer, 5)]))
        .await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let body: serde_json::Value = refused.json().await.unwrap();
    let errors = body["errors"].as_array().unwrap();
    assert!(
        errors
            .iter()
            .all(|error| error["code"] == "MANIFEST_BLOB_UNKNOWN")
    );
    let details: Vec<_> = errors
        .iter()
        .map(|error| error["detail"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(details, [config.to_string(), layer.to_string()]);
}

#[tokio::test]
async fn four_megabytes_are_taken_and_more_is_not() {
    let server = Server::plain().await;
    let config = server.push_blob("a", b"{}").await;
    let padded = |size: usize| {
        let body = manifest(&config, &[]);
        let space = " ".repeat(size - body.len());
        format!("{body}{space}")
    };
    assert_eq!(
        server
            .put_manifest("a", "t", padded(MANIFEST_LIMIT_BYTES))
            .await
            .status(),
        StatusCode::CREATED
    );
    assert_eq!(
        server
            .get("/v2/a/manifests/t")
            .await
            .bytes()
            .await
            .unwrap()
            .len(),
        MANIFEST_LIMIT_BYTES
    );
    let refused = server
        .put_manifest("a", "t", padded(MANIFEST_LIMIT_BYTES + 1))
        .await;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn indexes_of_some_platforms_are_taken() {
    let server = Server::plain().await;
    let child = server.push_image("a", "child", "x").await;
    let entry = |digest: Digest, architecture: &str| {
        serde_json::json!({
            "mediaType": OCI_MANIFEST, "digest": digest, "size": child.len(),
            "platform": {"os": "linux", "architecture": architecture},
        })
    };
    let there = entry(Digest::sha256(child.as_bytes()), "amd64");
    let absent = entry(Digest::sha256(b"absent"), "arm64");
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [there, absent]});
    let put = server.put_typed("a", "some", OCI_INDEX, index.to_string());
    assert_eq!(put.await.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn indexes_need_their_manifests() {
    let server = Server::plain().await;
    let child = server.push_image("a", "child", "x").await;
    let digest = Digest::sha256(child.as_bytes());
    let index = |digest: &Digest| {
        let entry =
            serde_json::json!({"mediaType": OCI_MANIFEST, "digest": digest, "size": child.len()});
        serde_json::json!({"schemaVersion": 2, "manifests": [entry]}).to_string()
    };
    let refused = server
        .put_typed("a", "all", OCI_INDEX, index(&Digest::sha256(b"absent")))
        .await;
    assert_eq!(refusal(refused).await, is(400, "MANIFEST_BLOB_UNKNOWN"));
    assert_eq!(
        server
            .put_typed("a", "all", OCI_INDEX, index(&digest))
            .await
            .status(),
        StatusCode::CREATED
    );
    assert_eq!(
        header(&server.get("/v2/a/manifests/all").await, &CONTENT_TYPE),
        OCI_INDEX
    );
}

#[tokio::test]
async fn old_clients_get_the_image_of_a_list() {
    let server = Server::plain().await;
    let config = server.push_blob("a", b"{}").await;
    let image = serde_json::json!({
        "schemaVersion": 2, "mediaType": DOCKER_MANIFEST,
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": config, "size": 2}, "layers": [],
    })
    .to_string();
    let digest = Digest::sha256(image.as_bytes());
    server
        .put_typed("a", &digest.to_string(), DOCKER_MANIFEST, image.clone())
        .await;
    let entry = serde_json::json!({
        "mediaType": DOCKER_MANIFEST, "digest": digest, "size": image.len(), "platform": {"architecture": "amd64", "os": "linux"},
    });
    let list =
        serde_json::json!({"schemaVersion": 2, "mediaType": DOCKER_LIST, "manifests": [entry]})
            .to_string();
    assert_eq!(
        server
            .put_typed("a", "t", DOCKER_LIST, list.clone())
            .await
            .status(),
        StatusCode::CREATED
    );
    for (accept, expected) in [
        (DOCKER_MANIFEST.to_owned(), &image),
        (format!("{DOCKER_MANIFEST}, {DOCKER_LIST}"), &list),
        (format!("{DOCKER_MANIFEST}, */*"), &list),
        (OCI_MANIFEST.to_owned(), &list),
    ] {
        let got = server
            .request(Method::GET, "/v2/a/manifests/t")
            .header(ACCEPT, &accept)
            .send()
            .await
            .unwrap();
        assert_eq!(&got.text().await.unwrap(), expected, "{accept}");
    }
}

#[tokio::test]
async fn several_tags_with_one_push() {
    let server = Server::plain().await;
    let config = server.push_blob("a", b"{}").await;
    let body = manifest(&config, &[]);
    let digest = Digest::sha256(body.as_bytes());
    let pushed = server
        .put_manifest("a", &format!("{digest}?tag=v1&tag=v1.2"), &*body)
        .await;
    assert_eq!(pushed.status(), StatusCode::CREATED);
    let tags: Vec<_> = pushed.headers().get_all("oci-tag").iter().collect();
    assert_eq!(tags, ["v1", "v1.2"]);
    assert_eq!(
        server
            .get("/v2/a/manifests/v1.2")
            .await
            .text()
            .await
            .unwrap(),
        body
    );
    assert_eq!(
        refusal(server.put_manifest("a", "t?tag=u", &*body).await).await,
        is(400, "TAG_INVALID")
    );
    let many: Vec<_> = (0..70).map(|n| format!("tag=t{n}")).collect();
    let refused = server
        .put_manifest("a", &format!("{digest}?{}", many.join("&")), &*body)
        .await;
    assert_eq!(refused.status(), StatusCode::URI_TOO_LONG);
}

#[tokio::test]
async fn long_digests_are_addresses_too() {
    let server = Server::plain().await;
    let config = server.push_blob("a", b"{}").await;
    let body = manifest(&config, &[]);
    let digest = Digest::of(Algorithm::Sha512, body.as_bytes());
    let pushed = server.put_manifest("a", &digest.to_string(), &*body).await;
    assert_eq!(named(&pushed, "docker-content-digest"), digest.to_string());
    let got = server.get(&format!("/v2/a/manifests/{digest}")).await;
    assert_eq!(named(&got, "docker-content-digest"), digest.to_string());
    assert_eq!(got.text().await.unwrap(), body);
}

#[tokio::test]
async fn deleting_by_tag_and_by_digest() {
    let server = Server::plain().await;
    let body = server.push_image("a", "one", "x").await;
    server.put_manifest("a", "two", &*body).await;
    let digest = Digest::sha256(body.as_bytes());
    assert_eq!(
        server.delete("/v2/a/manifests/one").await.status(),
        StatusCode::ACCEPTED
    );
    assert_eq!(
        refusal(server.delete("/v2/a/manifests/one").await).await,
        is(404, "MANIFEST_UNKNOWN")
    );
    assert_eq!(
        server.get("/v2/a/manifests/two").await.status(),
        StatusCode::OK
    );
    assert_eq!(
        server
            .delete(&format!("/v2/a/manifests/{digest}"))
            .await
            .status(),
        StatusCode::ACCEPTED
    );
    for target in ["two".to_owned(), digest.to_string()] {
        assert_eq!(
            server
                .get(&format!("/v2/a/manifests/{target}"))
                .await
                .status(),
            StatusCode::NOT_FOUND
        );
    }
    let closed = Server::with(|settings| settings.registry_storage_delete_enabled = false).await;
    closed.push_image("a", "t", "x").await;
    assert_eq!(
        refusal(closed.delete("/v2/a/manifests/t").await).await,
        is(405, "UNSUPPORTED")
    );
}
