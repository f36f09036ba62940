//! Pulling without a password.

use bytes::Bytes;
use oci::Reference;
use oci_client::{Client, ClientOptions};
use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{guarded, request_as};
use crate::server::{PASSWORD, Server, USER, header, is, refusal};

async fn free() -> (tempfile::TempDir, Server) {
    guarded(&[], |settings, _| {
        settings.registry_auth_anonymouspull = true;
    })
    .await
}

async fn token(server: &Server, login: Option<(&str, &str)>) -> reqwest::Response {
    let request = server.request(Method::GET, "/auth/token?service=x&scope=repository:a:pull");
    let request = login
        .into_iter()
        .fold(request, |request, (user, password)| {
            request.basic_auth(user, Some(password))
        });
    request.send().await.unwrap()
}

#[tokio::test]
async fn our_client_pulls_without_a_login_and_pushes_with_one() {
    let (_dir, server) = free().await;
    let target: Reference = format!("{}/a:t", server.address()).parse().unwrap();
    let content = Bytes::from_static(b"content");
    let kind = oci::media_type::OCI_LAYER;
    let blob = server
        .client()
        .push_blob_bytes(&target, kind, content.clone())
        .await
        .unwrap();
    let anonymous = Client::new(ClientOptions {
        insecure: true,
        ..ClientOptions::default()
    })
    .unwrap();
    let mut pulled = Vec::new();
    anonymous
        .pull_blob(&target, &blob, &mut pulled)
        .await
        .unwrap();
    assert_eq!(pulled, content);
    let refused = anonymous
        .push_blob_bytes(&target, kind, Bytes::from_static(b"other"))
        .await;
    assert!(refused.is_err());
}

/// Docker sends credentials only after a challenge of `/v2/`.
#[tokio::test]
async fn the_question_is_answered_with_a_challenge_that_needs_no_login() {
    let (_dir, server) = free().await;
    let refused = server.get("/v2/").await;
    let authority = server.address();
    assert_eq!(
        header(&refused, &WWW_AUTHENTICATE),
        format!("Bearer realm=\"http://{authority}/auth/token\",service=\"{authority}\"")
    );
    assert_eq!(refusal(refused).await, is(401, "UNAUTHORIZED"));
    let push = server.request(Method::POST, "/v2/a/b/blobs/uploads/");
    let refused = push.send().await.unwrap();
    let challenge = header(&refused, &WWW_AUTHENTICATE);
    assert!(
        challenge.contains("scope=\"repository:a/b:pull,push\""),
        "{challenge}"
    );
    assert_eq!(refusal(refused).await, is(401, "UNAUTHORIZED"));
    for (login, may_push) in [(None, 401), (Some((USER, PASSWORD)), 202)] {
        let answer: Value = token(&server, login).await.json().await.unwrap();
        let token = answer["token"].as_str().unwrap();
        let status = async |method: Method, path: &str| {
            let request = server.request(method, path).bearer_auth(token);
            request.send().await.unwrap().status().as_u16()
        };
        assert_eq!(status(Method::GET, "/v2/").await, 200);
        assert_eq!(status(Method::POST, "/v2/a/blobs/uploads/").await, may_push);
    }
}

#[tokio::test]
async fn without_a_login_there_is_only_pulling() {
    let (_dir, server) = free().await;
    let upload = request_as(&server, USER, Method::POST, "/v2/a/blobs/uploads/");
    let location = header(&upload.send().await.unwrap(), &reqwest::header::LOCATION);
    for (method, path, status) in [
        (Method::GET, "/v2/_catalog", 200),
        (Method::GET, "/v2/a/tags/list", 404),
        (Method::HEAD, "/v2/a/manifests/none", 404),
        (Method::PUT, "/v2/a/manifests/t", 401),
        (Method::DELETE, "/v2/a/manifests/t", 401),
        (Method::GET, &location, 401),
        (Method::DELETE, &location, 401),
    ] {
        let answer = server.request(method.clone(), path).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{method} {path}");
    }
    // podman sends these without a login.
    let empty = server
        .request(Method::GET, "/v2/_catalog")
        .basic_auth("", Some(""));
    assert_eq!(empty.send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn wrong_passwords_are_wrong_also_where_none_is_needed() {
    let (_dir, server) = free().await;
    for path in ["/v2/", "/v2/_catalog", "/auth/token"] {
        let request = server
            .request(Method::GET, path)
            .basic_auth(USER, Some("wrong"));
        let refused = request.send().await.unwrap();
        assert!(refused.headers().contains_key(WWW_AUTHENTICATE), "{path}");
        assert_eq!(refusal(refused).await, is(401, "UNAUTHORIZED"), "{path}");
    }
    let stale = server
        .request(Method::GET, "/v2/_catalog")
        .bearer_auth("stale");
    assert_eq!(
        stale.send().await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn no_token_without_a_login_where_there_is_nothing_to_pull() {
    let (_dir, server) = guarded(&[], |_, _| {}).await;
    let refused = token(&server, None).await;
    assert_eq!(
        header(&refused, &WWW_AUTHENTICATE),
        "Basic realm=\"Registry\""
    );
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(
        token(&server, Some((USER, PASSWORD))).await.status(),
        StatusCode::OK
    );
}
