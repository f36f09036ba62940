//! All manifests of a repository, tagged or not.

use futures_util::{StreamExt as _, stream};
use oci::Digest;
use oci::media_type::{OCI_CONFIG, OCI_INDEX};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::server::{OCI_MANIFEST, Server, is, manifest, named, refusal};

/// Most entries of a page.
const PAGE_LIMIT: usize = 1000;

/// The entries of a page, and the path of the next one.
pub(crate) async fn list(server: &Server, path: &str) -> (Vec<Value>, Option<String>) {
    let response = server.get(path).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    let link = named(&response, "link");
    let next = link
        .strip_prefix('<')
        .and_then(|link| link.strip_suffix(">; rel=\"next\""));
    let body: Value = response.json().await.unwrap();
    (
        body["manifests"].as_array().unwrap().clone(),
        next.map(str::to_owned),
    )
}

/// Pushes an image, an index of it and a signature of the index; their digests.
pub(crate) async fn push_family(server: &Server, name: &str) -> [Digest; 3] {
    let image = server.push_image(name, "platform", "layer").await;
    let path = format!("/v2/{name}/manifests/platform");
    assert_eq!(server.delete(&path).await.status(), StatusCode::ACCEPTED);
    let child = Digest::sha256(image.as_bytes());
    let entry = json!({"mediaType": OCI_MANIFEST, "digest": child, "size": image.len()});
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]});
    let index = index.to_string();
    let digest = Digest::sha256(index.as_bytes());
    for tag in ["v1", "latest"] {
        let pushed = server.put_typed(name, tag, OCI_INDEX, &*index).await;
        assert_eq!(pushed.status(), StatusCode::CREATED);
    }
    let signature = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": "application/x.signature",
        "config": {"mediaType": OCI_CONFIG, "digest": Digest::sha256(b"{}"), "size": 2}, "layers": [],
        "subject": {"mediaType": OCI_INDEX, "digest": digest, "size": index.len()},
    })
    .to_string();
    let signed = Digest::sha256(signature.as_bytes());
    let target = signed.to_string();
    let pushed = server.put_manifest(name, &target, &*signature).await;
    assert_eq!(pushed.status(), StatusCode::CREATED);
    [child, digest, signed]
}

/// The list is that of [`push_family`].
pub(crate) async fn assert_family(server: &Server, name: &str, family: &[Digest; 3]) {
    let path = format!("/v2/_atoll/manifests?repository={name}");
    let (entries, next) = list(server, &path).await;
    assert_eq!((entries.len(), next), (3, None));
    let digests: Vec<_> = entries
        .iter()
        .map(|entry| entry["digest"].as_str().unwrap())
        .collect();
    assert!(digests.is_sorted(), "{digests:?}");
    let find = |digest: &Digest| {
        let entry = entries
            .iter()
            .find(|entry| entry["digest"] == json!(digest));
        let mut entry = entry.unwrap().clone();
        let pushed_at = entry.as_object_mut().unwrap().remove("pushedAt").unwrap();
        assert!(pushed_at.as_str().unwrap().ends_with('Z'), "{pushed_at}");
        assert!(
            entry
                .as_object_mut()
                .unwrap()
                .remove("size")
                .unwrap()
                .as_u64()
                .unwrap()
                > 100
        );
        entry
    };
    let [image, index, signature] = family;
    assert_eq!(
        find(image),
        json!({"digest": image, "mediaType": OCI_MANIFEST, "artifactType": OCI_CONFIG, "contentSize": 7, "tags": []})
    );
    assert_eq!(
        find(index),
        json!({"digest": index, "mediaType": OCI_INDEX, "manifests": [image], "tags": ["latest", "v1"]})
    );
    assert_eq!(
        find(signature),
        json!({
            "digest": signature, "mediaType": OCI_MANIFEST, "artifactType": "application/x.signature",
            "subject": index, "contentSize": 2, "tags": [],
        })
    );
    let mut paged = Vec::new();
    let mut next = Some(format!("{path}&n=1"));
    while let Some(path) = next {
        let page;
        (page, next) = list(server, &path).await;
        assert_eq!(page.len(), 1, "{path}");
        paged.extend(page);
    }
    assert_eq!(paged, entries);
}

#[tokio::test]
async fn every_manifest_is_listed_with_its_tags() {
    let server = Server::plain().await;
    let family = push_family(&server, "team/app").await;
    server.push_image("team", "t", "of another").await;
    server.push_image("team/app/more", "t", "of another").await;
    assert_family(&server, "team/app", &family).await;
    let server = server.restart().await;
    assert_family(&server, "team%2Fapp", &family).await;
    let (page, next) = list(&server, "/v2/_atoll/manifests?repository=team/app&n=2").await;
    let last = page[1]["digest"].as_str().unwrap().replace(':', "%3A");
    let expected = format!("/v2/_atoll/manifests?last={last}&n=2&repository=team%2Fapp");
    assert_eq!(next, Some(expected));
    let (page, next) = list(&server, "/v2/_atoll/manifests?repository=team/app&n=0").await;
    assert_eq!((page.len(), next), (0, None));
    for digest in &family {
        server
            .delete(&format!("/v2/team/app/manifests/{digest}"))
            .await;
    }
    let (page, _) = list(&server, "/v2/_atoll/manifests?repository=team/app").await;
    assert_eq!(page.len(), 0, "a repository that had manifests");
}

#[tokio::test]
async fn damaged_manifests_are_listed_without_their_content() {
    let server = Server::plain().await;
    let image = server.push_image("a", "t", "layer").await;
    let digest = Digest::sha256(image.as_bytes());
    let data = format!("blobs/sha256/{}/{}/data", &digest.hex()[..2], digest.hex());
    let path = server.content(&data);
    let server = server
        .restart_with(|_| std::fs::write(path, "{}").unwrap())
        .await;
    let (entries, _) = list(&server, "/v2/_atoll/manifests?repository=a").await;
    let [entry] = &entries[..] else {
        panic!("{entries:?}")
    };
    assert_eq!(
        (&entry["digest"], &entry["tags"]),
        (&json!(digest), &json!(["t"]))
    );
    assert_eq!(
        (&entry["mediaType"], &entry["size"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn mistakes_are_refused() {
    let server = Server::plain().await;
    server.push_image("a", "t", "layer").await;
    server.push_blob("bare", b"x").await;
    for (query, status, code) in [
        ("", 400, "NAME_INVALID"),
        ("?repository=A", 400, "NAME_INVALID"),
        ("?repository=none", 404, "NAME_UNKNOWN"),
        ("?repository=bare", 404, "NAME_UNKNOWN"),
        ("?repository=a&n=-1", 400, "PAGINATION_NUMBER_INVALID"),
        ("?repository=a&last=t", 400, "DIGEST_INVALID"),
    ] {
        let response = server.get(&format!("/v2/_atoll/manifests{query}")).await;
        assert_eq!(refusal(response).await, is(status, code), "{query}");
    }
    let deleted = server.delete("/v2/_atoll/manifests?repository=a").await;
    assert_eq!(deleted.status(), StatusCode::METHOD_NOT_ALLOWED);
}

// limit: manifests of a page
#[tokio::test]
async fn a_page_is_bounded() {
    let server = Server::plain().await;
    let config = server.push_blob("a", b"{}").await;
    let layer = server.push_blob("a", b"x").await;
    let pushes = (1..=PAGE_LIMIT + 1).map(|count| {
        let body = manifest(&config, &[(&layer, 1)]);
        let body = body.replacen('{', &format!("{{\"count\":{count},"), 1);
        let server = &server;
        async move {
            let digest = Digest::sha256(body.as_bytes()).to_string();
            server.put_manifest("a", &digest, body).await.status()
        }
    });
    let statuses: Vec<_> = stream::iter(pushes).buffered(32).collect().await;
    assert!(statuses.iter().all(|status| *status == StatusCode::CREATED));
    let path = "/v2/_atoll/manifests?repository=a";
    for (query, count) in [("", 100), ("&n=1000", PAGE_LIMIT), ("&n=1001", PAGE_LIMIT)] {
        let (entries, next) = list(&server, &format!("{path}{query}")).await;
        assert_eq!(entries.len(), count, "{query}");
        assert!(next.unwrap().contains(&format!("&n={count}&")));
    }
    let (_, next) = list(&server, &format!("{path}&n=1001")).await;
    let (entries, next) = list(&server, &next.unwrap()).await;
    assert_eq!((entries.len(), next), (1, None));
}
