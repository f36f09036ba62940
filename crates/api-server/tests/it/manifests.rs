//! Custom manifests.

use serde_json::json;

use crate::harness::Server;

/// `kind: ConfigMap` in base64.
const CONTENT: &str = "a2luZDogQ29uZmlnTWFwCg==";

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_created_updated_and_deleted() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/manifests");
    assert_eq!(server.get(&path).await.expect(200), json!([]));
    let params = json!({ "folder": "openshift", "file_name": "mine.yaml", "content": CONTENT });
    let made = server.post(&path, &params).await.expect(201);
    assert_eq!(
        made,
        json!({ "folder": "openshift", "file_name": "mine.yaml", "manifest_source": "user" })
    );
    assert_eq!(server.get(&path).await.expect(200), json!([made]));
    let file = server
        .get(&format!(
            "{path}/files?folder=openshift&file_name=mine.yaml"
        ))
        .await;
    assert_eq!(file.text, "kind: ConfigMap\n");

    let same_name = json!({ "folder": "manifests", "file_name": "mine.yaml", "content": CONTENT });
    server.post(&path, &same_name).await.expect(400);
    let change = json!({ "folder": "openshift", "file_name": "mine.yaml", "updated_folder": "manifests", "updated_file_name": "ours.yml" });
    server.patch(&path, &change).await.expect(200);
    server
        .delete(&format!("{path}?folder=openshift&file_name=mine.yaml"))
        .await
        .expect(404);
    server
        .delete(&format!("{path}?file_name=ours.yml"))
        .await
        .expect(200);
    assert_eq!(server.get(&path).await.expect(200), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_deleted_without_their_folder() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/manifests");
    for folder in ["manifests", "openshift"] {
        let params = json!({ "folder": folder, "file_name": "mine.yaml", "content": CONTENT });
        server.post(&path, &params).await.expect(201);
        let file = format!("{path}?file_name=mine.yaml");
        server.delete(&file).await.expect(200);
        assert_eq!(server.get(&path).await.expect(200), json!([]));
        server.delete(&file).await.expect(404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_manifests_are_refused() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/manifests");
    for (name, status) in [
        ("a.txt", 400),
        ("../a.yaml", 400),
        ("a b.yaml", 422),
        (".a.yaml", 422),
    ] {
        let params = json!({ "file_name": name, "content": CONTENT });
        let answer = server.post(&path, &params).await;
        assert_eq!(answer.status.as_u16(), status, "{name}: {}", answer.text);
    }
    server
        .post(&path, &json!({ "file_name": "a.yaml", "content": "***" }))
        .await
        .expect(400);
    server
        .post(&path, &json!({ "file_name": "a.yaml" }))
        .await
        .expect(400);
}
