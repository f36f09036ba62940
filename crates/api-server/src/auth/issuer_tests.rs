use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use testkit::tokens::TokenKey;

use super::*;
use crate::auth::KEYS;
use crate::settings::AuthType;

const NOW: i64 = 1_800_000_000;

fn settings(jwks: &Value) -> Settings {
    Settings {
        auth_type: AuthType::Oidc,
        jwks_cert: jwks.to_string(),
        oidc_issuer: "https://issuer.example".to_owned(),
        oidc_audience: "installer".to_owned(),
        admin_users: service::settings::CommaList(vec!["root".to_owned()]),
        read_only_admin_users: service::settings::CommaList(vec!["auditor".to_owned()]),
        ..Settings::default()
    }
}

fn claims(change: &Value) -> Value {
    let mut claims = json!({
        "iss": "https://issuer.example", "aud": "installer", "exp": NOW + 60, "username": "alice",
        "org_id": "research", "email": "alice@lab.example",
    });
    claims
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    claims
}

#[tokio::test]
async fn claims_name_the_user() {
    let key = TokenKey::new().unwrap();
    let issuer = TokenIssuer::open(&settings(&key.jwks("one")))
        .await
        .unwrap();
    let user = async |change: Value| {
        let token = key.sign_with_id("one", &claims(&change)).unwrap();
        issuer.user(&token, NOW).await
    };
    let alice = TokenUser {
        name: "alice".to_owned(),
        org_id: "research".to_owned(),
        email_domain: "lab.example".to_owned(),
        role: Role::User,
    };
    assert_eq!(user(json!({})).await.unwrap(), alice);
    assert_eq!(
        user(json!({ "aud": ["x", "installer"] })).await.unwrap(),
        alice
    );
    let preferred =
        json!({ "username": null, "preferred_username": "bob", "email": null, "org_id": 7 });
    let bob = user(preferred).await.unwrap();
    assert_eq!((bob.name.as_str(), bob.org_id.as_str()), ("bob", ""));
    assert_eq!(bob.email_domain, "Unknown");
    for (name, role) in [("root", Role::Admin), ("auditor", Role::ReadOnlyAdmin)] {
        assert_eq!(user(json!({ "username": name })).await.unwrap().role, role);
    }
    for change in [
        json!({ "iss": "https://other.example" }),
        json!({ "iss": null }),
        json!({ "aud": "other" }),
        json!({ "aud": null }),
        json!({ "aud": ["installers"] }),
        json!({ "exp": NOW }),
        json!({ "exp": null }),
        json!({ "username": "" }),
        json!({ "username": ["root"] }),
        json!({ "username": "a\u{0}b" }),
        json!({ "username": "x".repeat(1025) }),
    ] {
        let error = user(change.clone()).await.expect_err(&change.to_string());
        assert!(matches!(error, Error::Unauthenticated { .. }), "{error:?}");
    }
}

/// The claims of users in dex's own password database, which have no username.
#[tokio::test]
async fn another_claim_names_the_user() {
    let key = TokenKey::new().unwrap();
    let user = async |claim: &str, change: Value| {
        let settings = Settings {
            oidc_username_claim: claim.to_owned(),
            ..settings(&key.jwks("one"))
        };
        let issuer = TokenIssuer::open(&settings).await.unwrap();
        let dex = json!({ "username": null, "sub": "CgIxMRIFbG9jYWw", "name": "Alice", "email_verified": true });
        let mut claims = claims(&dex);
        let changed = change.as_object().unwrap().clone();
        claims.as_object_mut().unwrap().extend(changed);
        let token = key.sign_with_id("one", &claims).unwrap();
        issuer.user(&token, NOW).await.map(|user| user.name)
    };
    assert_eq!(user("email", json!({})).await.unwrap(), "alice@lab.example");
    assert_eq!(user("sub", json!({})).await.unwrap(), "CgIxMRIFbG9jYWw");
    let unstated = json!({ "email_verified": null });
    user("email", unstated).await.unwrap();
    for (claim, change, reason) in [
        ("", json!({}), "OIDC_USERNAME_CLAIM"),
        ("upn", json!({}), "no upn"),
        ("email", json!({ "email": null }), "no email"),
        ("email", json!({ "email_verified": false }), "not verified"),
        (
            "email",
            json!({ "email_verified": "false" }),
            "not verified",
        ),
    ] {
        let error = user(claim, change).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn only_keys_of_the_issuer_sign() {
    let (key, other) = (TokenKey::new().unwrap(), TokenKey::new().unwrap());
    let issuer = TokenIssuer::open(&settings(&key.jwks("one")))
        .await
        .unwrap();
    let claims = claims(&json!({}));
    for token in [
        other.sign_with_id("one", &claims).unwrap(),
        key.sign_with_id("two", &claims).unwrap(),
        key.sign(&claims).unwrap(),
        key.sign_as(&json!({ "alg": "RS256", "kid": "one" }), &claims)
            .unwrap(),
        key.sign_as(&json!({ "alg": "HS256", "kid": "one" }), &claims)
            .unwrap(),
        key.sign_as(&json!({ "alg": "none", "kid": "one" }), &claims)
            .unwrap(),
    ] {
        let error = issuer.user(&token, NOW).await.unwrap_err();
        assert!(matches!(error, Error::Unauthenticated { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn keys_of_rsa_sign() {
    let pair = ring::signature::RsaKeyPair::from_pkcs8(&rsa_key()).unwrap();
    let (n, e) = {
        let public = pair.public();
        let parts = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(public);
        (parts.n, parts.e)
    };
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let jwks = json!({ "keys": [
        { "kty": "RSA", "use": "enc", "kid": "other", "n": encode(&n), "e": encode(&e) },
        { "kty": "oct", "kid": "secret", "k": "AAAA" },
        { "kty": "RSA", "use": "sig", "alg": "RS256", "kid": "rsa", "n": encode(&n), "e": encode(&e) },
    ] });
    let issuer = TokenIssuer::open(&settings(&jwks)).await.unwrap();
    let token = |algorithm: &str, id: &str| {
        let header = json!({ "alg": algorithm, "kid": id });
        let message = testkit::tokens::message(&header, &claims(&json!({})));
        let mut signature = vec![0; pair.public().modulus_len()];
        let random = ring::rand::SystemRandom::new();
        let padding = &ring::signature::RSA_PKCS1_SHA256;
        pair.sign(padding, &random, message.as_bytes(), &mut signature)
            .unwrap();
        format!("{message}.{}", encode(&signature))
    };
    let user = issuer.user(&token("RS256", "rsa"), NOW).await.unwrap();
    assert_eq!(user.name, "alice");
    for (algorithm, id) in [
        ("RS256", "other"),
        ("RS256", "secret"),
        ("PS256", "rsa"),
        ("ES256", "rsa"),
    ] {
        issuer.user(&token(algorithm, id), NOW).await.unwrap_err();
    }
}

/// A key of 2048 bits, which openssl made for this test.
fn rsa_key() -> Vec<u8> {
    let pem = include_str!("fixtures/rsa.pem");
    let lines = pem.lines().filter(|line| !line.starts_with('-'));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}

// limit: keys of a token issuer
#[tokio::test]
async fn further_keys_are_unknown() {
    let key = TokenKey::new().unwrap();
    let jwks: Vec<Value> = (0..=KEYS)
        .map(|number| key.jwks(&number.to_string())["keys"][0].clone())
        .collect();
    let issuer = TokenIssuer::open(&settings(&json!({ "keys": jwks })))
        .await
        .unwrap();
    let user = async |number: usize| {
        let token = key
            .sign_with_id(&number.to_string(), &claims(&json!({})))
            .unwrap();
        issuer.user(&token, NOW).await
    };
    user(KEYS - 1).await.unwrap();
    user(KEYS).await.unwrap_err();
}

#[tokio::test]
async fn sets_without_keys_are_refused() {
    for jwks in [
        json!({}),
        json!({ "keys": [] }),
        json!({ "keys": [{ "kty": "oct", "kid": "x" }] }),
    ] {
        let error = TokenIssuer::open(&settings(&jwks)).await.unwrap_err();
        assert!(error.to_string().contains("JWKS_CERT"), "{error}");
    }
}

#[test]
fn names_that_users_may_change_are_a_warning() {
    let key = TokenKey::new().unwrap();
    for (claim, administrators, expected) in [
        ("", "root", true),
        ("preferred_username", "root", true),
        ("sub", "root", false),
        ("email", "root", false),
        ("", "", false),
    ] {
        let settings = Settings {
            auth_type: crate::settings::AuthType::Oidc,
            oidc_username_claim: claim.to_owned(),
            admin_users: service::settings::Setting::parse(administrators).unwrap(),
            read_only_admin_users: service::settings::CommaList::default(),
            ..settings(&key.jwks("one"))
        };
        let warning = settings.username_warning();
        assert_eq!(warning.is_some(), expected, "{claim}: {warning:?}");
    }
}
