//! TLS, passwords and rights.

mod anonymous;
mod backoff;
mod policy;
mod tokens;

use oci::Error;
use registry::Settings;
use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Method, RequestBuilder, StatusCode};
use tempfile::TempDir;

use crate::server::{PASSWORD, Server, USER, header, is, refusal};

/// Plain HTTP; `USER` and `more` have `PASSWORD`. The folder holds files for `change`.
pub(crate) async fn guarded(
    more: &[&str],
    change: impl FnOnce(&mut Settings, &TempDir),
) -> (TempDir, Server) {
    let dir = TempDir::new().unwrap();
    let line = registry::htpasswd::line(USER, PASSWORD).unwrap();
    let hash = line.split_once(':').unwrap().1;
    let lines: Vec<_> = [&[USER], more]
        .concat()
        .iter()
        .map(|user| format!("{user}:{hash}"))
        .collect();
    let users = dir.path().join("users");
    std::fs::write(&users, lines.join("\n")).unwrap();
    let server = Server::with(|settings| {
        settings.registry_auth_htpasswd_path = Some(users);
        change(settings, &dir);
    })
    .await;
    (dir, server)
}

pub(crate) fn request_as(
    server: &Server,
    user: &str,
    method: Method,
    path: &str,
) -> RequestBuilder {
    server
        .request(method, path)
        .basic_auth(user, Some(PASSWORD))
}

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
    let options = oci_client::ClientOptions {
        ca_pem: server.ca.clone().map(String::into_bytes),
        ..oci_client::ClientOptions::default()
    };
    let stranger = oci_client::Client::new(options).unwrap();
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
    let careless = oci_client::Client::new(oci_client::ClientOptions {
        insecure: true,
        ..oci_client::ClientOptions::default()
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

/// `openssl req -x509` marks its certificates as authorities, and such certificates are common.
#[tokio::test]
async fn a_given_certificate_may_call_itself_an_authority() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("cert"), dir.path().join("key"));
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pair = rcgen::KeyPair::generate().unwrap();
    let pem = params.self_signed(&pair).unwrap().pem();
    std::fs::write(&cert, &pem).unwrap();
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    let server = Server::with(|settings| {
        settings.registry_http_tls_certificate = Some(cert.clone());
        settings.registry_http_tls_key = Some(key.clone());
    })
    .await;
    let client = |ca: &str| {
        oci_client::Client::new(oci_client::ClientOptions {
            ca_pem: Some(ca.as_bytes().to_vec()),
            ..oci_client::ClientOptions::default()
        })
        .unwrap()
    };
    let port = server.address().port();
    assert!(
        client(&pem)
            .catalog(&format!("127.0.0.1:{port}"))
            .await
            .is_ok()
    );
    let other = testkit::certificates::self_signed("127.0.0.1")
        .unwrap()
        .cert;
    for (ca, host) in [(&other, "127.0.0.1"), (&pem, "localhost")] {
        let refused = client(ca)
            .catalog(&format!("{host}:{port}"))
            .await
            .unwrap_err();
        assert!(
            refused.chain().contains("certificate"),
            "{}",
            refused.chain()
        );
    }
}
