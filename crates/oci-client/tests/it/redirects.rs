//! Redirects: logins stay at the origin that asked for them.

use oci::Error;
use oci_client::{Client, ClientOptions, Credentials, Login};
use testkit::wire::{Wire, answer, has_login};

use crate::client::{MANIFEST, reference};

/// A server that demands a login, with tokens from `realm`.
async fn demanding(realm: String) -> Wire {
    Wire::start(move |_| {
        let demand = format!("WWW-Authenticate: Bearer realm=\"{realm}/token\"\r\n");
        vec![answer("401 Unauthorized", &demand, ""); 4]
    })
    .await
}

/// A registry that accepts a login, and redirects to `target`.
async fn redirecting(target: String) -> Wire {
    Wire::start(move |_| {
        let basic = "WWW-Authenticate: Basic realm=\"r\"\r\n";
        vec![
            answer("401 Unauthorized", basic, ""),
            answer(
                "307 Temporary Redirect",
                &format!("Location: {target}\r\n"),
                "",
            ),
        ]
    })
    .await
}

/// A client with logins for all servers, so that a leak is detected.
fn client(wires: &[&Wire]) -> Client {
    let login = || Login {
        user: "me".to_owned(),
        password: "secret".into(),
    };
    let registries = wires.iter().map(|wire| wire.address.to_string());
    let credentials = registries
        .clone()
        .fold(Credentials::anonymous(), |known, registry| {
            known.with(registry, login())
        });
    Client::new(ClientOptions {
        credentials,
        insecure_registries: registries.collect(),
        attempts: Some(1),
        ..ClientOptions::default()
    })
    .unwrap()
}

#[tokio::test]
async fn a_challenge_after_a_redirect_gets_no_login() {
    let c = Wire::start(|_| vec![answer("200 OK", "", r#"{"token":"T"}"#)]).await;
    let b = demanding(format!("http://{}", c.address)).await;
    let a = redirecting(format!("http://{}/blob", b.address)).await;
    let refused = client(&[&a]).pull_manifest(&reference(&a, ":t")).await;
    let Err(Error::Unauthenticated { reason }) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        reason.contains(&format!("redirects to http://{}", b.address)),
        "{reason}"
    );
    assert!(has_login(&a.requests()[1]));
    let [asked] = &b.requests()[..] else {
        panic!("{:?}", b.requests());
    };
    assert!(!has_login(asked), "{asked}");
    assert_eq!(c.requests(), [""; 0]);
}

#[tokio::test]
async fn a_redirect_back_to_the_registry_carries_no_login() {
    let basic = "WWW-Authenticate: Basic realm=\"r\"\r\n";
    let b = Wire::start(|_| Vec::new()).await;
    let to_b = format!("Location: http://{}/x\r\n", b.address);
    let a = Wire::start(|_| {
        vec![
            answer("401 Unauthorized", basic, ""),
            answer("302 Found", &to_b, ""),
            answer("401 Unauthorized", basic, ""),
        ]
    })
    .await;
    let back = format!("Location: http://{}/y\r\n", a.address);
    let b_answers = Wire::start(|_| vec![answer("302 Found", &back, "")]).await;
    let a_target = redirecting(format!("http://{}/x", b_answers.address)).await;
    client(&[&a, &a_target])
        .pull_manifest(&reference(&a_target, ":t"))
        .await
        .unwrap_err();
    for request in b_answers.requests().iter().chain(&a.requests()) {
        assert!(!has_login(request), "{request}");
    }
    assert_eq!(a.requests().len(), 1);
}

#[tokio::test]
async fn content_at_another_origin_is_read_without_a_login() {
    let b = Wire::start(|_| vec![answer("200 OK", "", MANIFEST)]).await;
    let a = redirecting(format!("http://me:secret@{}/m", b.address)).await;
    client(&[&a, &b])
        .pull_manifest(&reference(&a, ":t"))
        .await
        .unwrap();
    assert!(!has_login(&b.requests()[0]), "{}", b.requests()[0]);
}

#[tokio::test]
async fn redirects_within_an_origin_keep_the_login() {
    let a = Wire::start(|address| {
        let basic = "WWW-Authenticate: Basic realm=\"r\"\r\n";
        let on = format!("Location: http://{address}/other\r\n");
        vec![
            answer("401 Unauthorized", basic, ""),
            answer("302 Found", &on, ""),
            answer("200 OK", "", MANIFEST),
        ]
    })
    .await;
    client(&[&a])
        .pull_manifest(&reference(&a, ":t"))
        .await
        .unwrap();
    assert!(has_login(&a.requests()[2]), "{}", a.requests()[2]);
}

#[tokio::test]
async fn pages_at_another_origin_are_requested_without_a_login() {
    let b = Wire::start(|address| {
        let next = format!("Link: <http://{address}/next>; rel=\"next\"\r\n");
        vec![
            answer("200 OK", &next, r#"{"tags":["one"]}"#),
            answer("200 OK", "", r#"{"tags":["two"]}"#),
        ]
    })
    .await;
    let a = redirecting(format!("http://{}/list", b.address)).await;
    let named = reference(&a, "");
    let tags = client(&[&a, &b]).tags(&named).await.unwrap();
    assert_eq!(tags.len(), 2);
    for request in b.requests() {
        assert!(!has_login(&request), "{request}");
    }
}

#[tokio::test]
async fn a_login_does_not_follow_a_redirect_of_the_token_server() {
    let c = Wire::start(|_| {
        vec![answer(
            "401 Unauthorized",
            "WWW-Authenticate: Basic realm=\"r\"\r\n",
            "",
        )]
    })
    .await;
    let to_c = format!("Location: http://{}/token\r\n", c.address);
    let realm = Wire::start(|_| vec![answer("307 Temporary Redirect", &to_c, "")]).await;
    let a = demanding(format!("http://{}", realm.address)).await;
    client(&[&a, &c])
        .pull_manifest(&reference(&a, ":t"))
        .await
        .unwrap_err();
    assert!(has_login(&realm.requests()[0]));
    assert!(!has_login(&c.requests()[0]), "{}", c.requests()[0]);
    assert_eq!(c.requests().len(), 1);
}

#[tokio::test]
async fn endless_redirects_are_an_error() {
    let loops = |address: std::net::SocketAddr| {
        let on = format!("Location: http://{address}/again\r\n");
        vec![answer("302 Found", &on, ""); 40]
    };
    let a = Wire::start(loops).await;
    client(&[])
        .pull_manifest(&reference(&a, ":t"))
        .await
        .unwrap_err();
    let plain = Client::new(ClientOptions {
        plain_http: true,
        attempts: Some(1),
        ..ClientOptions::default()
    });
    plain
        .unwrap()
        .pull_manifest(&reference(&a, ":t"))
        .await
        .unwrap_err();
    assert!(a.requests().len() <= 12, "{}", a.requests().len());
}

#[tokio::test]
async fn plain_http_is_named_with_the_callers_remedy() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = std::sync::Arc::new(std::sync::atomic::AtomicU32::default());
    let count = accepted.clone();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let mut start = [0];
            stream.read_exact(&mut start).await.unwrap();
            let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.ok();
        }
    });
    let client = Client::new(ClientOptions {
        plain_http_remedy: Some("--insecure-registry"),
        ..ClientOptions::default()
    });
    let reference = format!("{address}/a/b:t").parse().unwrap();
    let message = client.unwrap().pull_manifest(&reference).await;
    let message = message.unwrap_err().chain();
    for part in [
        &address.to_string(),
        "plain HTTP instead of TLS",
        "--insecure-registry allows that",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("InvalidContentType"), "{message}");
    let attempts = accepted.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(attempts, 1, "retries are of no use");
}
