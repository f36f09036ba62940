//! Signatures and other referrers, found by their subject.

use reqwest::header::{CONTENT_TYPE, LINK};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use oci::Digest;
use oci::media_type::{OCI_INDEX, OCI_MANIFEST};

use crate::server::{Server, header, is, named, refusal};

/// Pushes an artifact that refers to `subject`; its digest.
async fn attach(server: &Server, subject: &Digest, kind: &str) -> Digest {
    let config = server.push_blob("a", b"{}").await;
    let body = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": kind, "layers": [],
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2},
        "subject": {"mediaType": OCI_MANIFEST, "digest": subject, "size": 7},
        "annotations": {"kind": kind},
    })
    .to_string();
    let digest = Digest::sha256(body.as_bytes());
    let response = server.put_manifest("a", &digest.to_string(), body).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(named(&response, "oci-subject"), subject.to_string());
    digest
}

async fn entries(response: Response) -> Vec<Value> {
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(header(&response, &CONTENT_TYPE), OCI_INDEX);
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(body["schemaVersion"], 2);
    assert_eq!(body["mediaType"], OCI_INDEX);
    body["manifests"].as_array().unwrap().clone()
}

#[tokio::test]
async fn what_refers_to_a_manifest_is_listed() {
    let server = Server::plain().await;
    let image = server.push_image("a", "t", "x").await;
    let subject = Digest::sha256(image.as_bytes());
    let path = format!("/v2/a/referrers/{subject}");
    assert_eq!(entries(server.get(&path).await).await, [json!(null); 0]);
    let signature = attach(&server, &subject, "example/signature").await;
    let bill = attach(&server, &subject, "example/bill").await;
    let all = entries(server.get(&path).await).await;
    assert_eq!(all.len(), 2);
    let filtered = server
        .get(&format!("{path}?artifactType=example%2Fsignature"))
        .await;
    assert_eq!(named(&filtered, "oci-filters-applied"), "artifactType");
    let filtered = entries(filtered).await;
    assert_eq!(filtered.len(), 1);
    assert_eq!(filtered[0]["digest"], json!(signature));
    assert_eq!(filtered[0]["mediaType"], OCI_MANIFEST);
    assert_eq!(filtered[0]["artifactType"], "example/signature");
    assert_eq!(filtered[0]["annotations"]["kind"], "example/signature");
    assert!(filtered[0]["size"].as_u64().unwrap() > 0);
    let gone = server.delete(&format!("/v2/a/manifests/{signature}")).await;
    assert_eq!(gone.status(), StatusCode::ACCEPTED);
    let left = entries(server.get(&path).await).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["digest"], json!(bill));
    // The subject may be deleted before its referrers.
    server.delete(&format!("/v2/a/manifests/{subject}")).await;
    let server = server.restart().await;
    assert_eq!(entries(server.get(&path).await).await.len(), 1);
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let server = Server::plain().await;
    let subject = Digest::sha256(b"never pushed");
    for n in 0..5 {
        attach(&server, &subject, &format!("example/{n}")).await;
    }
    let mut next = format!("/v2/a/referrers/{subject}?n=2");
    let mut found = Vec::new();
    loop {
        let response = server.get(&next).await;
        let link = header(&response, &LINK);
        found.extend(entries(response).await);
        match link.strip_prefix('<').and_then(|link| link.split_once('>')) {
            Some((path, rest)) => {
                assert_eq!(rest, "; rel=\"next\"");
                next = path.to_owned();
            }
            None => break,
        }
    }
    let mut digests: Vec<_> = found
        .iter()
        .map(|entry| entry["digest"].to_string())
        .collect();
    assert_eq!(digests.len(), 5);
    assert!(digests.is_sorted());
    digests.dedup();
    assert_eq!(digests.len(), 5);
}

#[tokio::test]
async fn nothing_is_an_empty_list_and_nonsense_is_refused() {
    let server = Server::plain().await;
    let nobody = format!("/v2/none/referrers/{}", Digest::sha256(b"x"));
    assert_eq!(entries(server.get(&nobody).await).await, [json!(null); 0]);
    for (path, status, code) in [
        ("/v2/a/referrers/latest", 400, "DIGEST_INVALID"),
        ("/v2/a/referrers/sha256:1", 400, "DIGEST_INVALID"),
    ] {
        assert_eq!(
            refusal(server.get(path).await).await,
            is(status, code),
            "{path}"
        );
    }
    let extensions = server.get("/v2/_oci/ext/discover").await;
    assert_eq!(extensions.text().await.unwrap(), r#"{"extensions":[]}"#);
}
