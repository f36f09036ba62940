//! Logins: challenges, tokens, renewal, protection against leaks.

use bytes::Bytes;
use oci::Error;
use oci_client::{Client, ClientOptions, Credentials, Login};
use testkit::wire::{Wire, answer};
use tokio_rustls::rustls::version;

use crate::client::{MANIFEST, client, client_for, reference};
use crate::trust::{self, LONG};

#[tokio::test]
async fn tokens_are_fetched_once_and_reused() {
    let wire = Wire::start(|address| {
        let demand =
            format!("WWW-Authenticate: Bearer realm=\"http://{address}/token\",service=\"s\"\r\n");
        vec![
            answer("401 Unauthorized", &demand, ""),
            answer("200 OK", "", r#"{"access_token":"T1"}"#),
            answer("200 OK", "", MANIFEST),
            answer("200 OK", "", MANIFEST),
        ]
    })
    .await;
    let client = client_for(&wire);
    for _ in 0..2 {
        client.pull_manifest(&reference(&wire, ":t")).await.unwrap();
    }
    let requests = wire.requests();
    assert_eq!(requests.len(), 4);
    assert!(
        requests[1].starts_with("GET /token?scope=repository%3Aa%2Fb%3Apull&service=s"),
        "{}",
        requests[1]
    );
    assert!(
        requests[1].contains("authorization: Basic bWU6c2VjcmV0"),
        "{}",
        requests[1]
    );
    for request in &requests[2..] {
        assert!(request.contains("authorization: Bearer T1"), "{request}");
    }
}

/// A pull with the `entry` of an authentication file from a registry with tokens.
async fn pulled_as(entry: &str, last: String) -> (Result<(), Error>, Vec<String>) {
    let wire = Wire::start(|address| {
        let demand =
            format!("WWW-Authenticate: Bearer realm=\"http://{address}/token\",service=\"s\"\r\n");
        vec![
            answer("401 Unauthorized", &demand, ""),
            answer("200 OK", "", r#"{"access_token":"T1"}"#),
            last.clone(),
        ]
    })
    .await;
    let text = format!(r#"{{"auths":{{"{}":{entry}}}}}"#, wire.address);
    let client = Client::new(ClientOptions {
        credentials: Credentials::from_auth_file(&text).unwrap(),
        insecure: true,
        attempts: Some(1),
        ..ClientOptions::default()
    });
    let pulled = client.unwrap().pull_manifest(&reference(&wire, ":t")).await;
    (pulled.map(drop), wire.requests())
}

#[tokio::test]
async fn identity_tokens_are_exchanged() {
    let entry = r#"{"identitytoken":"hunter2"}"#;
    let (pulled, requests) = pulled_as(entry, answer("200 OK", "", MANIFEST)).await;
    pulled.unwrap();
    assert!(
        requests[1].starts_with("POST /token HTTP"),
        "{}",
        requests[1]
    );
    assert!(requests[1].contains("x-www-form-urlencoded"));
    assert!(!requests[2].contains("hunter2"), "{}", requests[2]);
    assert!(requests[2].contains("authorization: Bearer T1"));
}

#[tokio::test]
async fn an_unusable_entry_is_named_by_refusals_alone() {
    let entry = r#"{"auth":"hunter2!"}"#;
    let (pulled, requests) = pulled_as(entry, answer("200 OK", "", MANIFEST)).await;
    pulled.unwrap();
    assert!(!requests[1].contains("authorization"), "{}", requests[1]);
    let (pulled, _) = pulled_as(entry, answer("401 Unauthorized", "", "")).await;
    let refused = pulled.unwrap_err().to_string();
    assert!(
        refused.contains("anonymous users") && refused.contains("has no auth of the form"),
        "{refused}"
    );
    assert!(!refused.contains("hunter2"), "{refused}");
}

/// The result of a pull when the token server answers `body`.
async fn pulled_with(body: &str) -> Result<String, Error> {
    let wire = Wire::start(|address| {
        let demand = format!("WWW-Authenticate: Bearer realm=\"http://{address}/token\"\r\n");
        vec![
            answer("401 Unauthorized", &demand, ""),
            answer("200 OK", "", body),
            answer("200 OK", "", MANIFEST),
        ]
    })
    .await;
    client_for(&wire)
        .pull_manifest(&reference(&wire, ":t"))
        .await?;
    Ok(wire.requests().pop().unwrap())
}

#[tokio::test]
async fn tokens_have_either_name_or_both() {
    for body in [
        r#"{"token":"T1"}"#,
        r#"{"access_token":"T1","expires_in":300}"#,
        r#"{"token":"T1","access_token":"T1","issued_at":"2026-01-01T00:00:00Z"}"#,
        r#"{"token":"","access_token":"T1"}"#,
        r#"{"token":null,"access_token":"T1"}"#,
    ] {
        let request = pulled_with(body).await.unwrap();
        assert!(request.contains("authorization: Bearer T1"), "{request}");
    }
}

#[tokio::test]
async fn malformed_token_responses_are_refused_and_not_shown() {
    for body in ["", "{}", r#"{"token":""}"#, r#""hunter2""#] {
        let message = pulled_with(body).await.unwrap_err().chain();
        assert!(message.contains("without a token"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    let large = format!(r#"{{"token":"{}"}}"#, "T".repeat(64 << 10));
    let refused = pulled_with(&large).await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
}

#[tokio::test]
async fn refused_logins_are_not_retried() {
    let demand = "WWW-Authenticate: Basic realm=\"Registry\"\r\n";
    let wire = Wire::start(|_| {
        vec![
            answer("401 Unauthorized", demand, ""),
            answer("401 Unauthorized", demand, ""),
        ]
    })
    .await;
    let error = client_for(&wire)
        .pull_manifest(&reference(&wire, ":t"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Unauthenticated { .. }) && error.to_string().contains("user me"),
        "{error}"
    );
    let wire = Wire::start(|_| vec![answer("401 Unauthorized", demand, "")]).await;
    let error = client()
        .pull_manifest(&reference(&wire, ":t"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("pull secret has none"),
        "{error}"
    );
}

#[tokio::test]
async fn uploads_to_another_host_are_refused() {
    let elsewhere = "Location: http://example.invalid/x\r\n";
    let wire = Wire::start(|_| {
        vec![
            answer("404 Not Found", "", ""),
            answer("202 Accepted", elsewhere, ""),
        ]
    })
    .await;
    let refused = client()
        .push_blob_bytes(&reference(&wire, ""), "x", Bytes::from_static(b"x"))
        .await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    assert!(
        wire.requests()
            .iter()
            .all(|request| !request.starts_with("PUT"))
    );
}

#[tokio::test]
async fn an_upload_continues_after_its_token_expired() {
    for last in ["201 Created", "401 Unauthorized"] {
        let wire = Wire::start(|address| {
            let demand = format!("WWW-Authenticate: Bearer realm=\"http://{address}/token\"\r\n");
            let demand = || answer("401 Unauthorized", &demand, "");
            let begun = |token: &str| {
                vec![
                    answer("404 Not Found", "", ""),
                    demand(),
                    answer("200 OK", "", &format!(r#"{{"token":"{token}"}}"#)),
                    answer("202 Accepted", "Location: /upload\r\n", ""),
                ]
            };
            let end = vec![answer(last, "", ""), answer("201 Created", "", "")];
            [begun("T1"), vec![demand()], begun("T2"), end].concat()
        })
        .await;
        let pushed = client_for(&wire)
            .push_blob_bytes(&reference(&wire, ""), "x", Bytes::from_static(b"x"))
            .await;
        let requests = wire.requests();
        let sent: Vec<_> = requests.iter().filter(|it| it.starts_with("PUT")).collect();
        assert!(sent[0].contains("authorization: Bearer T1"), "{}", sent[0]);
        assert!(sent[1].contains("authorization: Bearer T2"), "{}", sent[1]);
        assert_eq!(sent.len(), 2);
        match last {
            "201 Created" => drop(pushed.unwrap()),
            _ => assert!(
                matches!(pushed, Err(Error::Unauthenticated { .. })),
                "{pushed:?}"
            ),
        }
    }
}

#[tokio::test]
async fn logins_are_not_sent_in_clear() {
    let tokens = Wire::start(|_| Vec::new()).await;
    let demand = format!(
        "WWW-Authenticate: Bearer realm=\"http://{}/token\"\r\n",
        tokens.address
    );
    let (certificate, key) = trust::self_signed(LONG);
    let demand = answer("401 Unauthorized", &demand, "");
    let server = trust::Server::answering(demand, &certificate, &key, &version::TLS13).await;
    let registry = server.0.to_string();
    let pulled = async |is_insecure: bool| {
        let login = Login {
            user: "me".to_owned(),
            password: "secret".into(),
        };
        let client = Client::new(ClientOptions {
            credentials: Credentials::anonymous().with(registry.clone(), login),
            ca_pem: Some(certificate.pem().into_bytes()),
            insecure_registries: is_insecure.then(|| registry.clone()).into_iter().collect(),
            attempts: Some(1),
            ..ClientOptions::default()
        });
        let reference = format!("{registry}/a/b:c").parse().unwrap();
        client.unwrap().pull_manifest(&reference).await.unwrap_err()
    };
    let refused = pulled(false).await.to_string();
    assert!(refused.contains("in clear to 127.0.0.1"), "{refused}");
    assert_eq!(tokens.requests(), [""; 0]);
    pulled(true).await;
    assert!(tokens.requests()[0].contains("authorization: Basic"));
}
