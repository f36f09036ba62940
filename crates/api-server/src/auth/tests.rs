use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use model::Error;
use proptest::prelude::*;
use ring::hmac;
use serde_json::{Value, json};
use testkit::tokens::{TokenKey, message};

use super::*;

const NOW: i64 = 1_800_000_000;
const ID: &str = "0d7c0a52-9b9d-4f7c-9d0a-0d9b6f7f0a01";

fn settings(key: &TokenKey) -> Settings {
    Settings {
        auth_type: AuthType::Local,
        ec_public_key_pem: key.public_pem.clone(),
        ec_private_key_pem: key.private_pem.clone().into(),
        ..Settings::default()
    }
}

/// A key, and the authentication that accepts its tokens.
async fn local() -> (TokenKey, Authentication) {
    let key = TokenKey::new().unwrap();
    let auth = Authentication::open(&settings(&key)).await.unwrap();
    (key, auth)
}

fn status(result: &Result<Caller, Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(Error::Unauthenticated { .. }) => 401,
        Err(Error::Forbidden { .. }) => 403,
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn only_tokens_of_the_own_key_are_valid() {
    let (key, auth) = local().await;
    let claims = json!({ "infra_env_id": ID });
    let check = |token: &str| status(&auth.agent(token, NOW));
    assert_eq!(check(&key.sign(&claims).unwrap()), 200);
    let other = TokenKey::new().unwrap();
    assert_eq!(check(&other.sign(&claims).unwrap()), 401);
    let unsigned = message(&json!({ "alg": "none" }), &claims);
    assert_eq!(check(&format!("{unsigned}.")), 401);
    for header in [
        json!({ "alg": "none" }),
        json!({ "alg": "RS256" }),
        json!({ "alg": "es256" }),
        json!({ "alg": "ES256", "crit": ["b64"], "b64": false }),
        json!({}),
    ] {
        let token = key.sign_as(&header, &claims).unwrap();
        assert_eq!(check(&token), 401, "{header}");
    }
    // The public key as the secret of HS256.
    let confused = message(&json!({ "alg": "HS256" }), &claims);
    for secret in [key.public_pem.as_bytes(), key.public_pem.trim().as_bytes()] {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&secret, confused.as_bytes()));
        assert_eq!(check(&format!("{confused}.{signature}")), 401);
    }
    // The signature of another message.
    let token = key.sign(&claims).unwrap();
    let (_, signature) = token.rsplit_once('.').unwrap();
    let changed = message(&json!({ "alg": "ES256" }), &json!({ "infra_env_id": "x" }));
    assert_eq!(check(&format!("{changed}.{signature}")), 401);
    for malformed in [
        "",
        ".",
        "..",
        "a.b.c",
        "a.b.c.d",
        &format!("{token}.x"),
        "é.é.é",
    ] {
        assert_eq!(check(malformed), 401, "{malformed}");
    }
}

#[tokio::test]
async fn times_of_tokens_are_checked() {
    let (key, auth) = local().await;
    for (times, expected) in [
        (json!({}), 200),
        (json!({ "exp": NOW + 1 }), 200),
        (json!({ "exp": NOW }), 401),
        (json!({ "exp": "soon" }), 401),
        (json!({ "nbf": NOW + 60 }), 200),
        (json!({ "nbf": NOW + 61 }), 401),
    ] {
        let mut claims = json!({ "cluster_id": ID });
        claims
            .as_object_mut()
            .unwrap()
            .extend(times.as_object().unwrap().clone());
        let result = auth.agent(&key.sign(&claims).unwrap(), NOW);
        assert_eq!(status(&result), expected, "{times}");
    }
}

// limit: token
#[tokio::test]
async fn long_tokens_are_refused() {
    let (key, auth) = local().await;
    let token = |padding: usize| {
        let claims = json!({ "infra_env_id": ID, "padding": "x".repeat(padding) });
        key.sign(&claims).unwrap()
    };
    let overhead = token(0).len();
    let longest = token((TOKEN_BYTES - overhead) / 4 * 3 - 3);
    assert!(longest.len() <= TOKEN_BYTES && longest.len() > TOKEN_BYTES - 16);
    assert_eq!(status(&auth.agent(&longest, NOW)), 200);
    let longer = token((TOKEN_BYTES - overhead) / 4 * 3 + 9);
    assert!(longer.len() > TOKEN_BYTES);
    assert_eq!(status(&auth.agent(&longer, NOW)), 401);
}

#[tokio::test]
async fn tokens_open_their_scheme_alone() {
    let (key, auth) = local().await;
    let sign = |claims: &Value| key.sign(claims).unwrap();
    let of_scheme = |scheme: Scheme| sign(&json!({ "auth_scheme": scheme.name() }));
    let resource = sign(&json!({ "infra_env_id": ID }));
    for (scheme, accepted) in [
        (Scheme::User, [200, 403, 403, 403]),
        (Scheme::Agent, [403, 200, 403, 403]),
        (Scheme::Watcher, [403, 403, 200, 403]),
    ] {
        let token = of_scheme(scheme);
        let found = [
            status(&auth.user(&token, NOW).await),
            status(&auth.agent(&token, NOW)),
            status(&auth.watcher(&token, NOW)),
            status(&auth.url(&token, NOW)),
        ];
        assert_eq!(found, accepted, "{}", scheme.name());
    }
    assert_eq!(status(&auth.user(&resource, NOW).await), 403);
    assert_eq!(status(&auth.watcher(&resource, NOW)), 403);
    assert_eq!(status(&auth.agent(&resource, NOW)), 200);
    assert_eq!(status(&auth.url(&resource, NOW)), 200);
    let malformed = sign(&json!({ "infra_env_id": "x" }));
    assert_eq!(status(&auth.agent(&malformed, NOW)), 401);
    let user = of_scheme(Scheme::User);
    for header in [format!("Bearer {user}"), format!("bearer  {user}"), user] {
        assert_eq!(status(&auth.user(&header, NOW).await), 200, "{header}");
    }
}

#[tokio::test]
async fn refusals_have_no_part_of_the_token() {
    let (_, auth) = local().await;
    let other = TokenKey::new().unwrap();
    let token = other
        .sign(&json!({ "auth_scheme": "secretScheme" }))
        .unwrap();
    for result in [auth.agent(&token, NOW), auth.user(&token, NOW).await] {
        let text = result.unwrap_err().to_string();
        for part in token.split('.').chain(["secretScheme"]) {
            assert!(!text.contains(part), "{text}");
        }
    }
    let (key, auth) = local().await;
    let long = "x".repeat(40);
    let token = key.sign(&json!({ "auth_scheme": long })).unwrap();
    let text = auth.agent(&token, NOW).unwrap_err().to_string();
    assert!(!text.contains(&long), "{text}");
}

#[tokio::test]
async fn issued_tokens_are_valid() {
    let (_, auth) = local().await;
    let id = InfraEnvId(ID.parse().unwrap());
    let validity = TokenValidity {
        generation: 3,
        expires_s: NOW + 10,
    };
    let token = auth.infra_env_token(id, validity).unwrap();
    match auth.url(&token, NOW) {
        Ok(Caller::Url(found)) => {
            assert_eq!(found.resource, OwnedResource::InfraEnv(id));
            assert_eq!(found.generation, 3);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(status(&auth.agent(&token, NOW + 9)), 200);
    assert_eq!(status(&auth.agent(&token, NOW + 10)), 401);
}

#[tokio::test]
async fn tokens_of_earlier_versions_have_the_first_generation() {
    let (key, auth) = local().await;
    for (claims, expected) in [
        (json!({ "infra_env_id": ID }), Some(0)),
        (json!({ "infra_env_id": ID, "generation": 2 }), Some(2)),
        (json!({ "infra_env_id": ID, "generation": "2" }), None),
    ] {
        let found = match auth.agent(&key.sign(&claims).unwrap(), NOW) {
            Ok(Caller::Agent(AgentToken::Of(token))) => Some(token.generation),
            _ => None,
        };
        assert_eq!(found, expected, "{claims}");
    }
}

#[tokio::test]
async fn keys_are_also_base64() {
    let key = TokenKey::new().unwrap();
    let encoded = Settings {
        ec_public_key_pem: STANDARD.encode(&key.public_pem),
        ec_private_key_pem: STANDARD.encode(&key.private_pem).into(),
        ..settings(&key)
    };
    let auth = Authentication::open(&encoded).await.unwrap();
    let token = key.sign(&json!({ "auth_scheme": "agentAuth" })).unwrap();
    assert_eq!(status(&auth.agent(&token, NOW)), 200);
    for broken in [
        "nonsense",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
    ] {
        let settings = Settings {
            ec_public_key_pem: broken.to_owned(),
            ..settings(&key)
        };
        let error = Authentication::open(&settings).await.unwrap_err();
        assert!(error.to_string().contains("EC_PUBLIC_KEY_PEM"), "{error}");
    }
}

#[test]
fn tokens_of_images_need_their_key_and_an_expiry() {
    let (id, key) = (InfraEnvId(ID.parse().unwrap()), [7; 32]);
    let token = image_token(id, &key, NOW + 10);
    assert_eq!(subject_of_image_token(&token).unwrap(), id);
    verify_image_token(&token, &key, NOW).unwrap();
    verify_image_token(&token, &key, NOW + 10).unwrap_err();
    verify_image_token(&token, &[8; 32], NOW).unwrap_err();
    let endless = jwt::sign_with_secret(&key, &json!({ "sub": ID }));
    verify_image_token(&endless, &key, NOW).unwrap_err();
    let none = format!(
        "{}.",
        message(
            &json!({ "alg": "none" }),
            &json!({ "sub": ID, "exp": NOW + 10 })
        )
    );
    verify_image_token(&none, &key, NOW).unwrap_err();
    subject_of_image_token("a.b.c").unwrap_err();
}

proptest! {
    #[test]
    fn anything_is_parsed_or_refused(text in "[a-zA-Z0-9_.-]{0,80}|.{0,40}") {
        Token::parse(&text).ok();
        subject_of_image_token(&text).ok();
        bearer(&text);
    }
}
