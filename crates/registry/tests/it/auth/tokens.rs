//! Tokens of another server, which signs them with a key that the registry knows.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Query, State};
use axum::{Json, Router, routing};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use oci::{Digest, Reference, media_type};
use registry::Settings;
use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Method, Response};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Server, header, is, refusal};

const REALM: &str = "https://tokens.example/token";

/// Gives tokens.
struct Signer {
    key: EcdsaKeyPair,
    certificate: rcgen::Certificate,
}

impl Signer {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["signer".to_owned()]).unwrap();
        let pkcs8 = key.serialize_der();
        let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
        Self {
            certificate: params.self_signed(&key).unwrap(),
            key: EcdsaKeyPair::from_pkcs8(curve, &pkcs8, &SystemRandom::new()).unwrap(),
        }
    }

    fn jwk(&self, kid: &str) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let point = self.key.public_key().as_ref();
        json!({"kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..]), "kid": kid})
    }

    /// Names the signer by `header`, and the grants by `access`.
    fn token(&self, header: &Value, access: &Value, life_s: i64) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_secs()).unwrap();
        let mut head = json!({"alg": "ES256", "typ": "JWT"});
        head.as_object_mut()
            .unwrap()
            .extend(header.as_object().unwrap().clone());
        let claims = json!({"iss": "us", "aud": "registry", "sub": "ci", "nbf": now - 1,
            "exp": now + life_s, "access": access});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&head), encode(&claims));
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.unwrap().as_ref());
        format!("{message}.{signature}")
    }

    async fn server(&self, change: impl FnOnce(&mut Settings, &TempDir)) -> (TempDir, Server) {
        let dir = TempDir::new().unwrap();
        let bundle = dir.path().join("bundle.pem");
        std::fs::write(&bundle, self.certificate.pem()).unwrap();
        let server = Server::with(|settings| {
            settings.registry_auth_token_realm = Some(REALM.to_owned());
            settings.registry_auth_token_service = Some("registry".to_owned());
            settings.registry_auth_token_issuer = Some("us".to_owned());
            settings.registry_auth_token_rootcertbundle = Some(bundle);
            change(settings, &dir);
        })
        .await;
        (dir, server)
    }
}

fn repository(name: &str, actions: &[&str]) -> Value {
    json!([{"type": "repository", "name": name, "actions": actions}])
}

async fn ask(server: &Server, method: Method, path: &str, token: &str) -> Response {
    let request = server.request(method, path).bearer_auth(token);
    request.send().await.unwrap()
}

#[tokio::test]
async fn challenges_name_the_scope() {
    let signer = Signer::new();
    let (_dir, server) = signer.server(|_, _| {}).await;
    let start = format!("Bearer realm=\"{REALM}\",service=\"registry\"");
    for (method, path, scope) in [
        (Method::GET, "/v2/", ""),
        (
            Method::GET,
            "/v2/a/tags/list",
            ",scope=\"repository:a:pull\"",
        ),
        (
            Method::POST,
            "/v2/a/b/blobs/uploads/",
            ",scope=\"repository:a/b:pull,push\"",
        ),
        (
            Method::DELETE,
            "/v2/a/manifests/t",
            ",scope=\"repository:a:delete\"",
        ),
        (Method::GET, "/v2/_catalog", ",scope=\"registry:catalog:*\""),
    ] {
        let response = server.request(method, path).send().await.unwrap();
        let challenge = header(&response, &WWW_AUTHENTICATE);
        assert_eq!(challenge, format!("{start}{scope}"), "{path}");
        assert_eq!(refusal(response).await, is(401, "UNAUTHORIZED"));
    }
    // A password is no token.
    let request = server
        .request(Method::GET, "/v2/")
        .basic_auth("u", Some("p"));
    let response = request.send().await.unwrap();
    assert_eq!(refusal(response).await, is(401, "UNAUTHORIZED"));
}

#[tokio::test]
async fn a_token_allows_what_it_grants() {
    let signer = Signer::new();
    let (_dir, server) = signer.server(|_, _| {}).await;
    let token = |access: &Value| signer.token(&json!({}), access, 60);
    let pull = token(&repository("a", &["pull"]));
    let push = token(&repository("a", &["pull", "push"]));
    let uploads = "/v2/a/blobs/uploads/";
    assert_eq!(ask(&server, Method::GET, "/v2/", &pull).await.status(), 200);
    let started = ask(&server, Method::POST, uploads, &push).await;
    assert_eq!(started.status(), 202);
    let refused = ask(&server, Method::POST, uploads, &pull).await;
    let challenge = header(&refused, &WWW_AUTHENTICATE);
    assert!(
        challenge.ends_with(",scope=\"repository:a:pull,push\",error=\"insufficient_scope\""),
        "{challenge}"
    );
    assert_eq!(refusal(refused).await, is(401, "UNAUTHORIZED"));
    let elsewhere = ask(&server, Method::GET, "/v2/b/tags/list", &push).await;
    assert_eq!(refusal(elsewhere).await, is(401, "UNAUTHORIZED"));
    let registry = |name| token(&json!([{"type": "registry", "name": name, "actions": ["*"]}]));
    let (catalog, maintenance) = (registry("catalog"), registry("maintenance"));
    for (token, lists, maintains) in [
        (&push, 401, 401),
        (&catalog, 200, 401),
        (&maintenance, 401, 200),
    ] {
        let listed = ask(&server, Method::GET, "/v2/_catalog", token).await;
        assert_eq!(listed.status(), lists);
        for (method, path) in [
            (Method::POST, "/v2/_atoll/gc?dryrun"),
            (Method::GET, "/v2/_atoll/usage"),
        ] {
            let maintained = ask(&server, method, path, token).await;
            assert_eq!(maintained.status(), maintains, "{path}");
        }
    }
    let manifests = "/v2/_atoll/manifests?repository=a";
    for (token, status) in [(&pull, 404), (&catalog, 401), (&maintenance, 401)] {
        let listed = ask(&server, Method::GET, manifests, token).await;
        assert_eq!(listed.status(), status);
        if status == 401 {
            let challenge = header(&listed, &WWW_AUTHENTICATE);
            assert!(
                challenge.contains("scope=\"repository:a:pull\""),
                "{challenge}"
            );
        }
    }
    let only_push = token(&repository("a", &["push"]));
    let read = ask(&server, Method::GET, "/v2/a/tags/list", &only_push).await;
    assert_eq!(refusal(read).await, is(401, "UNAUTHORIZED"));
}

#[tokio::test]
async fn the_key_is_found_however_the_token_names_it() {
    let signer = Signer::new();
    let x5c = json!([STANDARD.encode(signer.certificate.der())]);
    let (_dir, server) = signer.server(|_, _| {}).await;
    let status = async |server: &Server, signer: &Signer, header: Value| {
        let token = signer.token(&header, &json!([]), 60);
        ask(server, Method::GET, "/v2/", &token).await.status()
    };
    for header in [
        json!({}),
        json!({"x5c": x5c}),
        json!({"jwk": signer.jwk("x")}),
    ] {
        assert_eq!(
            status(&server, &signer, header.clone()).await,
            200,
            "{header}"
        );
    }
    let stranger = Signer::new();
    let own = json!([STANDARD.encode(stranger.certificate.der())]);
    for header in [
        json!({}),
        json!({"x5c": x5c}),
        json!({"x5c": own}),
        json!({"jwk": stranger.jwk("x")}),
        json!({"kid": "x"}),
        json!({"alg": "none"}),
    ] {
        assert_eq!(
            status(&server, &stranger, header.clone()).await,
            401,
            "{header}"
        );
    }
    let (_dir, server) = signer
        .server(|settings, dir| {
            let path = dir.path().join("jwks.json");
            let unknown = json!({"kty": "oct", "k": "AA", "kid": "k"});
            let keys = json!({"keys": [unknown, signer.jwk("ours")]});
            std::fs::write(&path, keys.to_string()).unwrap();
            settings.registry_auth_token_rootcertbundle = None;
            settings.registry_auth_token_jwks = Some(path);
        })
        .await;
    assert_eq!(status(&server, &signer, json!({"kid": "ours"})).await, 200);
    assert_eq!(status(&server, &signer, json!({"kid": "other"})).await, 401);
    assert_eq!(
        status(&server, &stranger, json!({"kid": "ours"})).await,
        401
    );
}

#[tokio::test]
async fn a_token_that_does_not_count_is_named_as_such() {
    let signer = Signer::new();
    let (_dir, server) = signer.server(|_, _| {}).await;
    let late = signer.token(&json!({}), &json!([]), -120);
    let good = signer.token(&json!({}), &json!([]), 60);
    let (rest, signature) = good.rsplit_once('.').unwrap();
    let forged = format!("{rest}x.{signature}");
    for token in [late.as_str(), &forged, "x", "a.b.c", "..", "anonymous"] {
        let response = ask(&server, Method::GET, "/v2/", token).await;
        let challenge = header(&response, &WWW_AUTHENTICATE);
        assert!(
            challenge.ends_with(",error=\"invalid_token\""),
            "{challenge}"
        );
        assert_eq!(refusal(response).await, is(401, "UNAUTHORIZED"), "{token}");
    }
}

#[tokio::test]
async fn an_algorithm_that_is_not_wanted_does_not_count() {
    let signer = Signer::new();
    let (_dir, server) = signer
        .server(|settings, _| {
            settings.registry_auth_token_signingalgorithms.0 = vec!["RS256".to_owned()];
        })
        .await;
    let token = signer.token(&json!({}), &json!([]), 60);
    assert_eq!(
        ask(&server, Method::GET, "/v2/", &token).await.status(),
        401
    );
}

/// A token endpoint that grants the requested actions on one repository.
async fn give(
    State(signer): State<std::sync::Arc<Signer>>,
    Query(query): Query<HashMap<String, String>>,
) -> Json<Value> {
    assert_eq!(query["service"], "registry");
    let scope = query.get("scope").cloned().unwrap_or_default();
    let parts: Vec<_> = scope.split(':').collect();
    let access = match parts[..] {
        ["repository", name, actions] => repository(name, &actions.split(',').collect::<Vec<_>>()),
        _ => json!([]),
    };
    Json(json!({"token": signer.token(&json!({}), &access, 60), "expires_in": 60}))
}

#[tokio::test]
async fn a_client_gets_its_tokens_and_pushes_and_pulls() {
    let signer = std::sync::Arc::new(Signer::new());
    let router = Router::new()
        .route("/token", routing::get(give))
        .with_state(signer.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let realm = format!("http://{}/token", listener.local_addr().unwrap());
    let tokens = tokio::spawn(async move { axum::serve(listener, router).await });
    let (_dir, server) = signer
        .server(|settings, _| settings.registry_auth_token_realm = Some(realm))
        .await;
    let client = server.client();
    let image: Reference = format!("{}/a/b:t", server.address()).parse().unwrap();
    let content = bytes::Bytes::from_static(b"{}");
    let blob = client
        .push_blob_bytes(&image, media_type::OCI_CONFIG, content)
        .await
        .unwrap();
    assert_eq!(blob.digest, Digest::sha256(b"{}"));
    let manifest = json!({"schemaVersion": 2, "config": blob, "layers": []}).to_string();
    let manifest = oci::Manifest::parse(manifest.into(), None).unwrap();
    client.push_manifest(&image, &manifest).await.unwrap();
    assert_eq!(client.pull_manifest(&image).await.unwrap(), manifest);
    tokens.abort();
}
