//! Signed links to files of clusters.

use serde_json::{Value, json};

use crate::harness::{BASE, Server};
use crate::installation::install_single_node;

/// `kind: ConfigMap` in base64.
const CONTENT: &str = "a2luZDogQ29uZmlnTWFwCg==";
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// The link's path below the API's base path.
fn path(link: &Value) -> String {
    let url = link["url"].as_str().unwrap();
    let origin = format!("http://192.0.2.10:8090{BASE}");
    url.strip_prefix(&origin).expect(url).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_to_files_are_signed() {
    let server = Server::start().await;
    install_single_node(&server).await;
    let clusters = server.get("/v2/clusters").await.expect(200);
    let cluster = format!("/v2/clusters/{}", clusters[0]["id"].as_str().unwrap());
    for (operation, file) in [
        ("downloads/files-presigned", "bootstrap.ign"),
        ("downloads/files-presigned", "install-config.yaml"),
        ("downloads/credentials-presigned", "kubeconfig"),
    ] {
        let link = server
            .get(&format!("{cluster}/{operation}?file_name={file}"))
            .await
            .expect(200);
        assert_ne!(link["expires_at"], "0001-01-01T00:00:00.000Z");
        let path = path(&link);
        let response = server.get(&path).await;
        assert_eq!(response.status, 200, "{file}: {}", response.text);
        assert_eq!(
            response.header("content-disposition"),
            format!("attachment; filename=\"{file}\"")
        );
        let other = path.replace(file, "metadata.json");
        let refused = server.get(&other).await.expect(403);
        assert!(
            refused["message"].as_str().unwrap().contains("signature"),
            "{refused}"
        );
        let later = path.replace("expires=", "expires=9");
        server.get(&later).await.expect(403);
    }
    let logs = server
        .get(&format!(
            "{cluster}/downloads/files-presigned?file_name=logs"
        ))
        .await
        .expect(200);
    assert_eq!(server.get(&path(&logs)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_existing_files_have_links() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let cluster = format!("/v2/clusters/{id}");
    let link = async |query: &str| {
        let path = format!("{cluster}/downloads/files-presigned?{query}");
        server.get(&path).await
    };
    link("file_name=bootstrap.ign").await.expect(409);
    link("file_name=passwords").await.expect(400);
    link("file_name=manifests").await.expect(400);
    link("file_name=logs&logs_type=controller")
        .await
        .expect(409);
    let manifest = "file_name=manifests&additional_name=openshift/mine.yaml";
    link(manifest).await.expect(404);
    let params = json!({ "folder": "openshift", "file_name": "mine.yaml", "content": CONTENT });
    server
        .post(&format!("{cluster}/manifests"), &params)
        .await
        .expect(201);
    let link = link(manifest).await.expect(200);
    assert_eq!(server.get(&path(&link)).await.text, "kind: ConfigMap\n");
    let foreign = path(&link).replace(&id, &server.cluster(json!({ "name": "other" })).await);
    server.get(&foreign).await.expect(403);
    let path = format!("/v2/clusters/{UNKNOWN}/downloads/credentials-presigned");
    server
        .get(&format!("{path}?file_name=kubeconfig"))
        .await
        .expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_keys_of_infra_envs_are_replaced() {
    let server = Server::start().await;
    let id = server.infra_env(None).await;
    let regenerate = async |id: &str| {
        let path = format!("/v2/infra-envs/{id}/regenerate-signing-key");
        server.post(&path, &json!({})).await
    };
    assert_eq!(regenerate(&id).await.expect(204), Value::Null);
    regenerate(&id).await.expect(204);
    regenerate(UNKNOWN).await.expect(404);
}
