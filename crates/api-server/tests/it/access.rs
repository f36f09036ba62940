//! Access to every operation, with every kind of credential.

use api_server::operations::access::{Role, Scheme};
use api_server::operations::{OPERATIONS, Operation};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::tokens::{TokenKey, message};

use crate::harness::{Server, merged};
use crate::secured::{
    AUDIENCE, ISSUER, KEY_ID, Owned, SecuredServer, UNKNOWN, image_token, now, with,
};

/// Operations in an order in which deletions come last, those of parts before those of wholes.
fn operations() -> Vec<&'static Operation> {
    let mut all: Vec<_> = OPERATIONS.iter().collect();
    all.sort_by_key(|one| match one.method {
        "DELETE" => usize::MAX - one.path.len(),
        _ => 0,
    });
    all
}

/// Whether the path, the query or the body of [`SecuredServer::call`] names a cluster or an infra-env.
fn has_resource(operation: &Operation) -> bool {
    operation.path.contains("{cluster_id}")
        || operation.path.contains("{infra_env_id}")
        || ["v2ListEvents", "streamEvents", "v2TriggerEvent"].contains(&operation.id)
}

#[track_caller]
fn assert_refused(operation: &Operation, case: &str, found: (u16, String), expected: u16) {
    let (status, text) = found;
    assert_eq!(status, expected, "{} with {case}: {text}", operation.id);
    let body: Value = serde_json::from_str(&text).unwrap();
    match status {
        401 | 403 => {
            assert_eq!(body["code"], status, "{text}");
            assert!(body["message"].is_string(), "{text}");
        }
        _ => assert_eq!(body["kind"], "Error", "{text}"),
    }
}

/// Access passed; the operation itself may refuse the empty request.
#[track_caller]
fn assert_allowed(operation: &Operation, case: &str, found: (u16, String)) {
    let (status, text) = found;
    let id = operation.id;
    assert!(
        ![401, 403].contains(&status),
        "{id} with {case}: {status} {text}"
    );
    assert!(status < 500, "{id} with {case}: {status} {text}");
    let hides = ["\"cluster ", "\"infra-env "];
    let hidden = status == 404 && hides.iter().any(|part| text.contains(part));
    assert!(!hidden, "{id} with {case}: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_needs_a_token_of_the_local_key() {
    let site = SecuredServer::local(|_| {}).await;
    let (own, other) = (site.resources("own").await, site.resources("other").await);
    let scheme_token = |scheme: Scheme, key: &TokenKey, more: Value| {
        let claims = match scheme {
            // Newer than those that an operation withdraws.
            Scheme::Agent | Scheme::Url => {
                json!({ "infra_env_id": own.infra_env, "generation": 9 })
            }
            _ => json!({ "auth_scheme": scheme.name() }),
        };
        key.sign(&merged(claims, more)).unwrap()
    };
    for operation in operations() {
        let call =
            async |credential: Option<(Scheme, &str)>| site.call(operation, &own, credential).await;
        assert_refused(operation, "no token", call(None).await, 401);
        for scheme in Scheme::ALL {
            let name = scheme.name();
            if scheme == Scheme::Link {
                continue;
            }
            // Files of clusters have URLs of their own kind.
            let is_of_cluster = scheme == Scheme::Url && !operation.path.contains("infra_env_id");
            let own_token = if is_of_cluster {
                site.key
                    .sign(&json!({ "cluster_id": own.cluster }))
                    .unwrap()
            } else {
                scheme_token(scheme, &site.key, json!({}))
            };
            let is_image = matches!(scheme, Scheme::Image | Scheme::ImageUrl);
            if is_image || !operation.access.includes(scheme) {
                let found = call(Some((scheme, &own_token))).await;
                assert_refused(operation, name, found, 401);
                continue;
            }
            let unsigned = message(&json!({ "alg": "none" }), &json!({ "auth_scheme": name }));
            for (case, token) in [
                (
                    "bad signature",
                    scheme_token(scheme, &site.stranger, json!({})),
                ),
                (
                    "expired",
                    scheme_token(scheme, &site.key, json!({ "exp": now() - 1 })),
                ),
                ("no signature", format!("{unsigned}.")),
            ] {
                let found = call(Some((scheme, &token))).await;
                assert_refused(operation, &format!("{case} of {name}"), found, 401);
            }
            let kind = if scheme == Scheme::Watcher {
                "userAuth"
            } else {
                "watcherAuth"
            };
            let wrong = site.key.sign(&json!({ "auth_scheme": kind })).unwrap();
            let found = call(Some((scheme, &wrong))).await;
            assert_refused(operation, &format!("wrong kind for {name}"), found, 403);
            if has_resource(operation) && matches!(scheme, Scheme::Agent | Scheme::Url) {
                for claims in [
                    json!({ "infra_env_id": other.infra_env }),
                    json!({ "cluster_id": other.cluster }),
                    json!({ "cluster_id": UNKNOWN }),
                ] {
                    let foreign = site.key.sign(&claims).unwrap();
                    let found = call(Some((scheme, &foreign))).await;
                    assert_refused(operation, &format!("foreign {name}"), found, 404);
                }
            }
            let found = call(Some((scheme, &own_token))).await;
            assert_allowed(operation, name, found);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_checks_users_of_the_issuer() {
    let site = SecuredServer::oidc(|_| {}).await;
    let (own, other) = (site.resources("alice").await, site.resources("bob").await);
    let good = json!({ "iss": ISSUER, "aud": AUDIENCE, "exp": now() + 600, "username": "alice" });
    let forged = site.stranger.sign_with_id(KEY_ID, &good).unwrap();
    let unknown = site.key.sign_with_id("two", &good).unwrap();
    for operation in operations() {
        let call =
            async |credential: Option<(Scheme, &str)>| site.call(operation, &own, credential).await;
        let roles = operation.access.roles;
        let has_role = |role: Role| roles.contains(&role);
        assert_refused(operation, "no token", call(None).await, 401);
        for scheme in [Scheme::Url, Scheme::Watcher] {
            let found = call(Some((scheme, &forged))).await;
            assert_refused(operation, scheme.name(), found, 401);
        }
        check_agents(&site, operation, &own, &other).await;
        check_images(&site, operation, &own, &other).await;
        if roles.is_empty() {
            let found = call(Some((Scheme::User, &site.user("root")))).await;
            assert_refused(operation, "a user", found, 401);
            continue;
        }
        for (case, token) in [
            ("bad signature", forged.clone()),
            ("unknown key", unknown.clone()),
            (
                "expired",
                site.user_with("alice", json!({ "exp": now() - 1 })),
            ),
            (
                "another audience",
                site.user_with("alice", json!({ "aud": "other" })),
            ),
            (
                "another issuer",
                site.user_with("alice", json!({ "iss": "https://other.example" })),
            ),
            ("the token of an agent", own.agent.clone()),
        ] {
            let found = call(Some((Scheme::User, &token))).await;
            assert_refused(operation, case, found, 401);
        }
        let is_deletion = operation.method == "DELETE";
        for (name, role) in [
            ("auditor", Role::ReadOnlyAdmin),
            ("bob", Role::User),
            ("root", Role::Admin),
            ("alice", Role::User),
        ] {
            if is_deletion && name == "root" {
                continue;
            }
            let found = call(Some((Scheme::User, &site.user(name)))).await;
            if !has_role(role) {
                assert_refused(operation, name, found, 403);
            } else if name == "bob" && has_resource(operation) {
                assert_refused(operation, name, found, 404);
            } else {
                assert_allowed(operation, name, found);
            }
        }
    }
}

async fn check_agents(site: &SecuredServer, operation: &Operation, own: &Owned, other: &Owned) {
    let call = async |token: &str| {
        site.call(operation, own, Some((Scheme::Agent, token)))
            .await
    };
    let found = call(&other.agent).await;
    assert_refused(operation, "another agent", found, 401);
    let found = call(&own.agent).await;
    if operation.access.includes(Scheme::Agent) {
        assert_allowed(operation, "the agent", found);
    } else {
        assert_refused(operation, "an agent", found, 401);
    }
}

async fn check_images(site: &SecuredServer, operation: &Operation, own: &Owned, other: &Owned) {
    for scheme in [Scheme::Image, Scheme::ImageUrl] {
        let call = async |token: &str| site.call(operation, own, Some((scheme, token))).await;
        // Fetched each time: an operation replaces the key.
        let token = image_token(site, "alice", &own.infra_env).await;
        if !operation.access.includes(scheme) {
            assert_refused(operation, "an image", call(&token).await, 401);
            continue;
        }
        let foreign = image_token(site, "bob", &other.infra_env).await;
        assert_refused(operation, "another image", call(&foreign).await, 403);
        let (signed, _) = token.rsplit_once('.').unwrap();
        let (_, signature) = foreign.rsplit_once('.').unwrap();
        let forged = format!("{signed}.{signature}");
        assert_refused(operation, "a forged image", call(&forged).await, 401);
        assert_allowed(operation, "the image", call(&token).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_authentication_nothing_is_checked() {
    let server = Server::start().await;
    for scheme in Scheme::ALL {
        let request = server.request(Method::GET, "/v2/clusters");
        Server::send(with(request, scheme, "nonsense"))
            .await
            .expect(200);
    }
}
