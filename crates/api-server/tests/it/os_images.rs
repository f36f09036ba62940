//! OS images of the settings and added ones.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{PULL_SECRET, Server};
use crate::secured::SecuredServer;

fn params() -> Value {
    json!({
        "openshift_version": "4.20", "cpu_architecture": "aarch64", "version": "420.96",
        "url": "oci://registry.example.com:5000/openshift/boot-images:420.96-aarch64", "sha256": "AB".repeat(32),
    })
}

fn source(image: &Value) -> (&str, bool) {
    let version = image["openshift_version"].as_str().unwrap();
    (version, image["is_added"].as_bool().unwrap())
}

async fn create_infra_env(server: &Server) -> u16 {
    let params = json!({
        "name": "rack", "pull_secret": PULL_SECRET, "openshift_version": "4.20", "cpu_architecture": "arm64",
    });
    server.post("/v2/infra-envs", &params).await.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn added_os_images_are_on_offer_in_every_replica() {
    let server = Server::start().await;
    let other = Server::on(server.database.clone(), |_| {}).await;
    other.wait_ready().await;
    for (member, wrong) in [
        ("openshift_version", "latest"),
        ("version", "../420"),
        ("url", "https://root:hunter2@files.example/live.iso"),
        ("sha256", "1"),
    ] {
        let mut params = params();
        params[member] = wrong.into();
        let refused = server.post("/v2/os-images", &params).await.expect(400);
        let reason = refused["reason"].as_str().unwrap();
        assert!(
            reason.contains(member) && !reason.contains("hunter2"),
            "{refused}"
        );
    }
    let mut own = params();
    own["openshift_version"] = "4.18".into();
    own["cpu_architecture"] = "x86_64".into();
    server.post("/v2/os-images", &own).await.expect(409);
    server.delete("/v2/os-images/4.18").await.expect(409);

    assert_eq!(create_infra_env(&server).await, 400);
    let added = server.post("/v2/os-images", &params()).await.expect(201);
    assert_eq!(
        (
            &added["cpu_architecture"],
            &added["added_by"],
            &added["is_added"]
        ),
        (&json!("arm64"), &json!("admin"), &json!(true))
    );
    assert_eq!(create_infra_env(&server).await, 201);
    while create_infra_env(&other).await != 201 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let all = server.get("/v2/os-images").await.expect(200);
    let all: Vec<_> = all.as_array().unwrap().iter().map(source).collect();
    assert_eq!(all, [("4.18", false), ("4.19", false), ("4.20", true)]);

    let path = "/v2/os-images/4.20?cpu_architecture=aarch64";
    server.delete(path).await.expect(204);
    server.delete(path).await.expect(404);
    assert_eq!(create_infra_env(&server).await, 400);
}

// limit: added OS images
#[tokio::test(flavor = "multi_thread")]
async fn so_many_os_images_are_added() {
    let server = Server::start().await;
    let add = async |minor: u32| {
        let mut params = params();
        params["openshift_version"] = format!("4.{minor}").into();
        server.post("/v2/os-images", &params).await.status.as_u16()
    };
    for minor in 20..70 {
        assert_eq!(add(minor).await, 201);
    }
    assert_eq!(add(70).await, 409);
    // One takes the place of another.
    assert_eq!(add(69).await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn image_services_need_no_credentials_and_users_are_no_administrators() {
    let site = SecuredServer::oidc(|_| {}).await;
    // At first it was not read yet, which is no empty list: image services would remove their files.
    let added = async || {
        site.server
            .until("the list was read", async || {
                let added = site.server.outside("/os-images").await;
                if added.status == 503 {
                    Err(added.text)
                } else {
                    Ok(added.expect(200))
                }
            })
            .await
    };
    assert_eq!(added().await, json!([]));
    let add = async |user: &str| {
        let body = params();
        site.send(user, Method::POST, "/v2/os-images", Some(&body))
            .await
            .status
            .as_u16()
    };
    assert_eq!((add("alice").await, add("root").await), (403, 201));
    let expected = json!([{
        "openshift_version": "4.20", "cpu_architecture": "arm64", "version": "420.96",
        "url": params()["url"], "sha256": "ab".repeat(32),
    }]);
    assert_eq!(added().await, expected);
    assert_eq!(
        site.get("alice", "/v2/os-images").await.status.as_u16(),
        403
    );
}
