//! Tokens of images, agents and users, and the keys of their issuer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api_server::operations::access::Scheme;
use api_server::settings::BaseUrl;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::tokens::TokenKey;

use crate::harness::{AGENT, PULL_SECRET, Server, cluster_params, host_id, merged};
use crate::secured::{
    AUDIENCE, ISSUER, SecuredServer, agent_token, cloud_token, image_token, now, with,
};

#[tokio::test(flavor = "multi_thread")]
async fn images_carry_the_tokens_of_their_agents() {
    let site = SecuredServer::local(|_| {}).await;
    let own = site.resources("own").await;
    let path = format!("/v2/infra-envs/{}", own.infra_env);
    let infra_env = site.get("own", &path).await.expect(200);
    let url = infra_env["download_url"].as_str().unwrap();
    let (_, rest) = url.split_once("/byapikey/").expect(url);
    let api_key = rest.split('/').next().unwrap();
    let file = format!("{path}/downloads/files?file_name=discovery.ign");
    let request = site.server.request(Method::GET, &file);
    let ignition = Server::send(with(request, Scheme::Url, api_key)).await;
    assert_eq!(ignition.status, 200, "{}", ignition.text);
    // Downloads of an image in parts get parts of the same bytes.
    let request = site.server.request(Method::GET, &file);
    let again = Server::send(with(request, Scheme::Url, api_key)).await;
    assert_eq!(again.text, ignition.text);
    let again = site.get("own", &path).await.expect(200);
    assert_eq!(again["download_url"], url);
    let token = agent_token(&ignition.body);
    let poll = site.server.request(
        Method::GET,
        &format!("{path}/hosts/{}/instructions", own.host),
    );
    Server::send(with(poll, Scheme::Agent, &token))
        .await
        .expect(200);
    // Boot scripts of the firmware, which has no credentials, name signed URLs.
    let script = format!("{path}/downloads/files?file_name=ipxe-script");
    let script = site.get("own", &script).await.text;
    assert!(script.contains("&api_key="), "{script}");
    let link = format!("{path}/downloads/files-presigned?file_name=discovery.ign");
    let link = site.get("own", &link).await.expect(200);
    assert!(
        link["url"].as_str().unwrap().contains("&api_key="),
        "{link}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_images_expire_and_are_withdrawn() {
    let site =
        SecuredServer::oidc(|settings| settings.image_expiration_time = Duration::ZERO).await;
    let own = site.resources("alice").await;
    let path = format!("/v2/infra-envs/{}", own.infra_env);
    let token = image_token(&site, "alice", &own.infra_env).await;
    let request = site.server.request(Method::GET, &path);
    let expired = Server::send(with(request, Scheme::Image, &token))
        .await
        .expect(401);
    assert!(
        expired["message"].as_str().unwrap().contains("expired"),
        "{expired}"
    );

    let site = SecuredServer::oidc(|_| {}).await;
    let own = site.resources("alice").await;
    let path = format!("/v2/infra-envs/{}", own.infra_env);
    let link = site
        .get("alice", &format!("{path}/downloads/image-url"))
        .await
        .expect(200);
    assert_ne!(link["expires_at"], "0001-01-01T00:00:00.000Z");
    let token = image_token(&site, "alice", &own.infra_env).await;
    let open = async |token: &str| {
        let request = site.server.request(Method::GET, &path);
        Server::send(with(request, Scheme::Image, token)).await
    };
    let shown = open(&token).await.expect(200);
    assert!(
        shown["download_url"].as_str().unwrap().contains("/byid/"),
        "{shown}"
    );
    let regenerate = format!("{path}/regenerate-signing-key");
    site.send("alice", Method::POST, &regenerate, None)
        .await
        .expect(204);
    open(&token).await.expect(401);
    let token = image_token(&site, "alice", &own.infra_env).await;
    open(&token).await.expect(200);
    let ignition = format!("{path}/downloads/files?file_name=discovery.ign");
    let ignition = site.get("alice", &ignition).await.expect(200);
    assert_eq!(agent_token(&ignition), cloud_token("alice"));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_an_issuer_need_a_pull_secret_or_a_key() {
    let site = SecuredServer::oidc(|_| {}).await;
    let params = json!({ "name": "x", "pull_secret": PULL_SECRET, "openshift_version": "4.18" });
    let refused = site
        .send("alice", Method::POST, "/v2/infra-envs", Some(&params))
        .await;
    let refused = refused.expect(400);
    assert!(
        refused["reason"]
            .as_str()
            .unwrap()
            .contains("cloud.openshift.com"),
        "{refused}"
    );
    let params = merged(cluster_params(), json!({ "name": "x" }));
    site.send("alice", Method::POST, "/v2/clusters", Some(&params))
        .await
        .expect(400);

    let keys = TokenKey::new().unwrap();
    let site = SecuredServer::oidc(|settings| {
        settings.ec_public_key_pem.clone_from(&keys.public_pem);
        settings.ec_private_key_pem = keys.private_pem.clone().into();
    })
    .await;
    let params = json!({ "name": "x", "pull_secret": PULL_SECRET, "openshift_version": "4.18" });
    let created = site
        .send("alice", Method::POST, "/v2/infra-envs", Some(&params))
        .await;
    let id = created.expect(201)["id"].as_str().unwrap().to_owned();
    let ignition = format!("/v2/infra-envs/{id}/downloads/files?file_name=discovery.ign");
    let token = agent_token(&site.get("alice", &ignition).await.expect(200));
    let params = json!({ "host_id": host_id(1), "discovery_agent_version": AGENT });
    let register = site
        .server
        .request(Method::POST, &format!("/v2/infra-envs/{id}/hosts"));
    let register = with(register.json(&params), Scheme::Agent, &token);
    Server::send(register).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_links_need_no_token() {
    let site = SecuredServer::local(|_| {}).await;
    let own = site.resources("own").await;
    let manifests = format!("/v2/clusters/{}/manifests", own.cluster);
    let manifest = json!({ "folder": "openshift", "file_name": "a.yaml", "content": "a2luZDogQ29uZmlnTWFwCg==" });
    site.send("own", Method::POST, &manifests, Some(&manifest))
        .await
        .expect(201);
    let link = format!(
        "/v2/clusters/{}/downloads/files-presigned?file_name=manifests&additional_name=openshift/a.yaml",
        own.cluster
    );
    let link = site.get("own", &link).await.expect(200);
    let (_, path) = link["url"]
        .as_str()
        .unwrap()
        .split_once("/api/assisted-install")
        .unwrap();
    assert_eq!(site.server.get(path).await.text, "kind: ConfigMap\n");
    site.server
        .get(&path.replace("a.yaml", "b.yaml"))
        .await
        .expect(403);
    let (unsigned, _) = path.split_once("&expires").unwrap();
    site.server.get(unsigned).await.expect(401);
}

/// A token issuer that serves `keys`, and counts the requests.
async fn issuer(keys: Value) -> (String, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let serve = axum::routing::get(move || async move {
        counted.fetch_add(1, Ordering::Relaxed);
        axum::Json(keys)
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/certs", listener.local_addr().unwrap());
    let router = axum::Router::new().route("/certs", serve);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, count)
}

// limit: fetches of the keys of a token issuer
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_fetched_once_for_many_tokens() {
    let keys = TokenKey::new().unwrap();
    let (url, count) = issuer(keys.jwks("served")).await;
    let site = SecuredServer::oidc(|settings| {
        settings.jwks_cert = String::new();
        settings.jwks_url = Some(BaseUrl(url));
    })
    .await;
    let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "exp": now() + 600, "username": "alice" });
    let list = async |token: String| {
        let request = site.server.request(Method::GET, "/v2/clusters");
        Server::send(with(request, Scheme::User, &format!("Bearer {token}"))).await
    };
    for number in 0..20 {
        let unknown = keys
            .sign_with_id(&format!("unknown-{number}"), &claims)
            .unwrap();
        list(unknown).await.expect(401);
        let known = keys.sign_with_id("served", &claims).unwrap();
        list(known).await.expect(200);
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_issuer_is_no_refusal() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/certs", listener.local_addr().unwrap());
    drop(listener);
    let site = SecuredServer::oidc(|settings| {
        settings.jwks_cert = String::new();
        settings.jwks_url = Some(BaseUrl(url));
    })
    .await;
    let answer = site.get("alice", "/v2/clusters").await;
    assert_eq!(answer.header("retry-after"), "5");
    answer.expect(503);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_code_of_a_link_is_exchanged_once() {
    let site = SecuredServer::local(|_| {}).await;
    let code = |key: &TokenKey, more: Value| {
        let claims = json!({
            "auth_scheme": "logInCode", "sub": "alice", "exp": now() + 600,
            "jti": "0d7c0a52-9b9d-4f7c-9d0a-0d9b6f7f0a01",
        });
        key.sign(&merged(claims, more)).unwrap()
    };
    let redeem = async |code: &str| {
        let url = format!("{}/log-in-codes", site.server.url);
        let request = service::http_client(None, false)
            .unwrap()
            .post(url)
            .json(&json!({ "code": code }));
        Server::send(request).await
    };
    for wrong in [
        code(&site.stranger, json!({})),
        code(&site.key, json!({ "exp": now() - 1 })),
        code(&site.key, json!({ "exp": null })),
        code(&site.key, json!({ "jti": "x" })),
        code(&site.key, json!({ "sub": "" })),
        site.user("alice").replace("Bearer ", ""),
        "x".to_owned(),
    ] {
        assert_eq!(redeem(&wrong).await.status, 401, "{wrong}");
    }
    let good = code(&site.key, json!({}));
    // A code opens no operation by itself.
    let list = site.server.request(Method::GET, "/v2/clusters");
    assert_eq!(
        Server::send(with(list, Scheme::User, &good)).await.status,
        403
    );
    let answers = futures_util::future::join_all((0..8).map(|_| redeem(&good))).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|one| one.status == 200);
    assert_eq!((won.len(), lost.len()), (1, 7));
    for answer in lost {
        assert!(answer.text.contains("was used"), "{}", answer.text);
    }
    let token = won[0].body["token"].as_str().unwrap();
    let list = site.server.request(Method::GET, "/v2/clusters");
    Server::send(with(list, Scheme::User, token))
        .await
        .expect(200);
}
