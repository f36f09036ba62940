//! TLS and passwords.

use oci::Error;
use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Method, StatusCode};

use crate::server::{PASSWORD, Server, USER, header, is, refusal};

#[tokio::test]
async fn nothing_below_v2_without_a_password() {
    let server = Server::closed().await;
    for path in ["/v2/", "/v2/_catalog", "/v2/a/tags/list", "/v2/nothing"] {
        let refused = server.get(path).await;
        assert_eq!(
            header(&refused, &WWW_AUTHENTICATE),
            "Basic realm=\"Registry\""
        );
        assert_eq!(
            header(
                &refused,
                &"docker-distribution-api-version".parse().unwrap()
            ),
            "registry/2.0"
        );
        assert_eq!(refusal(refused).await, is(401, "UNAUTHORIZED"));
    }
    for (user, password) in [(USER, "wrong"), ("nobody", PASSWORD), (USER, "")] {
        let refused = server
            .request(Method::GET, "/v2/")
            .basic_auth(user, Some(password))
            .send()
            .await
            .unwrap();
        assert_eq!(
            refused.status(),
            StatusCode::UNAUTHORIZED,
            "{user}:{password}"
        );
    }
    for path in ["/", "/health"] {
        assert_eq!(server.get(path).await.status(), StatusCode::OK);
    }
    let let_in = server
        .request(Method::GET, "/v2/")
        .basic_auth(USER, Some(PASSWORD))
        .send()
        .await
        .unwrap();
    assert_eq!(let_in.status(), StatusCode::OK);
}

#[tokio::test]
async fn our_client_logs_in_or_says_why_not() {
    let server = Server::closed().await;
    assert_eq!(
        server
            .client()
            .catalog(&server.address().to_string())
            .await
            .unwrap(),
        Vec::<String>::new()
    );
    let options = oci::ClientOptions {
        ca_pem: server.ca.clone().map(String::into_bytes),
        ..oci::ClientOptions::default()
    };
    let stranger = oci::Client::new(options).unwrap();
    let refused = stranger
        .catalog(&server.address().to_string())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, Error::Unauthenticated { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn certificates_count() {
    let server = Server::closed().await;
    let careless = oci::Client::new(oci::ClientOptions {
        insecure: true,
        ..oci::ClientOptions::default()
    })
    .unwrap();
    let refused = careless
        .catalog(&server.address().to_string())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, Error::Unauthenticated { .. }),
        "reached without a CA: {refused:?}"
    );
    assert!(
        service::http_client(None, false)
            .unwrap()
            .get(format!("{}/v2/", server.base))
            .send()
            .await
            .is_err()
    );
}
