//! Error responses: both shapes, and the checks of the API description.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Server, cluster_params, merged};

const NOWHERE: &str = "/v2/clusters/00000000-0000-4000-8000-000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn handlers_respond_in_the_shape_error() {
    let server = Server::start().await;
    let body = server.get(NOWHERE).await.expect(404);
    let reason = body["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.contains("00000000-0000-4000-8000-000000000000"),
        "{reason}"
    );
    assert_eq!(
        body,
        json!({ "code": "404", "href": "", "id": 404, "kind": "Error", "reason": reason })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_and_methods() {
    let server = Server::start().await;
    let body = server.get("/v2/nothing").await.expect(404);
    assert_eq!(
        body,
        json!({ "code": 404, "message": "path /api/assisted-install/v2/nothing was not found" })
    );
    let answer = Server::send(server.request(Method::PUT, "/v2/clusters")).await;
    assert_eq!(answer.header("allow"), "GET,POST");
    let body = answer.expect(405);
    assert_eq!(
        body,
        json!({ "code": 405, "message": "method PUT is not allowed, but [GET,POST] are" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_media_types_are_refused() {
    let server = Server::start().await;
    let request = server
        .request(Method::POST, "/v2/clusters")
        .header("content-type", "text/plain")
        .body("x");
    let body = Server::send(request).await.expect(400);
    assert_eq!(
        body["message"],
        "unsupported media type \"text/plain\", only [application/json] are allowed"
    );
    let request = server
        .request(Method::GET, "/v2/clusters")
        .header("accept", "text/html");
    let body = Server::send(request).await.expect(400);
    assert_eq!(
        body["message"],
        "unsupported media type requested, only [application/json] are available"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn null_members_are_absent() {
    let server = Server::start().await;
    let nulls =
        json!({ "base_dns_domain": null, "tags": null, "platform": null, "api_vips": null });
    let id = server.cluster(nulls).await;
    let nulls = json!({ "name": null, "base_dns_domain": null });
    let path = format!("/v2/clusters/{id}");
    let kept = server.patch(&path, &nulls).await.expect(201);
    assert_eq!(kept["name"], "demo");
    let body = server.patch(&path, &json!([])).await.expect(400);
    assert!(body["message"].as_str().unwrap().contains("list"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_responses_are_compressed_on_request() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let get = |path: String, coding| {
        let request = server.request(Method::GET, &path);
        Server::send(request.header("accept-encoding", coding))
    };
    let path = format!("/v2/clusters/{id}");
    let packed = get(path.clone(), "gzip").await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    let plain = get(path.clone(), "identity").await;
    assert_eq!(plain.header("content-encoding"), "");
    assert!(packed.body.is_null() && plain.body.is_object());
    let short = get(format!("{path}/ui-settings"), "gzip").await;
    assert_eq!(short.header("content-encoding"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn body_errors_name_the_field() {
    let server = Server::start().await;
    for (body, message) in [
        (json!({}), "name in body is required"),
        (
            merged(cluster_params(), json!({ "colour": "red" })),
            "unknown field `colour`",
        ),
        (
            merged(cluster_params(), json!({ "control_plane_count": "three" })),
            "control_plane_count: invalid type",
        ),
        (
            merged(cluster_params(), json!({ "network_type": "Carrier" })),
            "network_type",
        ),
        (
            merged(
                cluster_params(),
                json!({ "cluster_network_cidr": "0.0.0.a/8" }),
            ),
            "cluster_network_cidr in body should match '^(?:(?:(?:[0-9]{1,3}\\.){3}",
        ),
    ] {
        let answer = server.post("/v2/clusters", &body).await.expect(400);
        assert_eq!(answer["code"], 400);
        assert!(
            answer["message"].as_str().unwrap().contains(message),
            "{answer}"
        );
    }
    let empty = server
        .request(Method::POST, "/v2/clusters")
        .header("content-type", "application/json");
    assert_eq!(
        Server::send(empty).await.expect(400)["message"],
        "new-cluster-params in body is required"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_ids_are_refused() {
    let server = Server::start().await;
    let body = server.get("/v2/clusters/demo").await.expect(400);
    assert_eq!(
        body,
        json!({ "code": 400, "message": "cluster_id in path must be of type uuid: \"demo\"" })
    );
    let body = server.get("/v2/events?limit=many").await.expect(400);
    assert_eq!(
        body["message"],
        "limit in query must be of type int64: \"many\""
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn slashes_are_normalized() {
    let server = Server::start().await;
    for path in [
        "/v2/clusters",
        "/v2/clusters/",
        "//v2//clusters//",
        "/v2/clusters//default-config",
    ] {
        server.get(path).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nul_characters_are_refused() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    server
        .put(&format!("/v2/clusters/{id}/ui-settings"), &json!("a\u{0}b"))
        .await
        .expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn service_routes_are_served() {
    let server = Server::start().await;
    for (path, code) in [("/health", 200), ("/ready", 200), ("/metrics", 404)] {
        assert_eq!(server.plain(path).await, code, "{path}");
    }
}
