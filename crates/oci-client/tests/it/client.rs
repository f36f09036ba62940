//! The client on unreliable networks and with faulty registries.

use oci::{Descriptor, Digest, Error, Reference};
use oci_client::client::BlobSource;
use oci_client::{Client, ClientOptions, Credentials, Login, Mirrors};
use testkit::wire::{Wire, answer};

pub(crate) fn client() -> Client {
    let login = Login {
        user: "me".to_owned(),
        password: "secret".into(),
    };
    Client::new(ClientOptions {
        credentials: Credentials::anonymous().with("127.0.0.1", login),
        insecure: true,
        ..ClientOptions::default()
    })
    .unwrap()
}

pub(crate) fn client_for(wire: &Wire) -> Client {
    let login = Login {
        user: "me".to_owned(),
        password: "secret".into(),
    };
    Client::new(ClientOptions {
        credentials: Credentials::anonymous().with(wire.address.to_string(), login),
        insecure: true,
        ..ClientOptions::default()
    })
    .unwrap()
}

pub(crate) fn reference(wire: &Wire, rest: &str) -> Reference {
    format!("{}/a/b{rest}", wire.address).parse().unwrap()
}

fn blob(content: &str) -> Descriptor {
    Descriptor {
        media_type: String::new(),
        digest: Digest::sha256(content.as_bytes()),
        size: content.len() as u64,
        platform: None,
        annotations: None,
    }
}

pub(crate) const MANIFEST: &str = r#"{"schemaVersion":2,"manifests":[]}"#;

#[tokio::test]
async fn an_interrupted_download_is_resumed() {
    let wire = Wire::start(|_| {
        vec![
            "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello".to_owned(),
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 6\r\n\r\n wo".to_owned(),
            // The server ignores Range: the first bytes come again.
            answer("200 OK", "", "hello world"),
        ]
    })
    .await;
    let mut out = Vec::new();
    client()
        .pull_blob(&reference(&wire, ""), &blob("hello world"), &mut out)
        .await
        .unwrap();
    assert_eq!(out, b"hello world");
    let requests = wire.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[1].contains("range: bytes=5-"), "{}", requests[1]);
    assert!(requests[2].contains("range: bytes=8-"), "{}", requests[2]);
}

#[tokio::test]
async fn content_of_another_digest_or_size_is_refused() {
    for body in ["HELLO WORLD", "hello world, and more"] {
        let wire = Wire::start(|_| vec![answer("200 OK", "", body)]).await;
        let refused = client()
            .pull_blob_bytes(&reference(&wire, ""), &blob("hello world"), 100)
            .await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    let wire = Wire::start(|_| vec![answer("200 OK", "", MANIFEST)]).await;
    let pinned = reference(&wire, &format!("@{}", Digest::sha256(b"other")));
    let refused = client().pull_manifest(&pinned).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

#[tokio::test]
async fn transient_failures_are_retried() {
    let wire = Wire::start(|_| {
        vec![
            answer("503 Service Unavailable", "Retry-After: 0\r\n", ""),
            String::new(),
            answer("200 OK", "Content-Type: text/plain\r\n", MANIFEST),
        ]
    })
    .await;
    let manifest = client()
        .pull_manifest(&reference(&wire, ":t"))
        .await
        .unwrap();
    assert_eq!(manifest.bytes, MANIFEST);
    assert_eq!(wire.requests().len(), 3);
}

#[tokio::test]
async fn retry_after_is_respected() {
    let busy = || answer("429 Too Many Requests", "Retry-After: 1000\r\n", "");
    let wire = Wire::start(|_| vec![busy()]).await;
    let client = client();
    let error = client
        .pull_manifest(&reference(&wire, ":t"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert_eq!(wire.requests().len(), 1);
    let rest = client.rest(&wire.address.to_string()).unwrap();
    assert!((900..=1000).contains(&rest.as_secs()), "{rest:?}");
    assert_eq!(client.rest("elsewhere"), None);
}

#[tokio::test]
async fn attempts_are_bounded() {
    let wire = Wire::start(|_| vec![String::new(); 3]).await;
    let hasty = Client::new(ClientOptions {
        plain_http: true,
        attempts: Some(2),
        ..ClientOptions::default()
    });
    let error = hasty.unwrap().pull_manifest(&reference(&wire, ":t")).await;
    assert!(matches!(error, Err(Error::Unavailable { .. })), "{error:?}");
    assert_eq!(wire.requests().len(), 2);
}

#[tokio::test]
async fn sizes_are_requested_without_content() {
    let size = "HTTP/1.1 200 OK\r\nContent-Length: 4711\r\nConnection: close\r\n\r\n";
    let wire = Wire::start(|_| vec![size.to_owned(), answer("404 Not Found", "", "")]).await;
    let (client, reference, digest) = (client(), reference(&wire, ""), Digest::sha256(b""));
    let found = client.blob_size(&reference, &digest).await.unwrap();
    assert_eq!(found, Some(4711));
    let found = client.blob_size(&reference, &digest).await.unwrap();
    assert_eq!(found, None);
    assert!(wire.requests()[0].starts_with("HEAD "));
}

#[tokio::test]
async fn referrers_are_found_by_list_or_by_tag() {
    let subject = Digest::sha256(b"subject");
    let entry = |note: &str| {
        let digest = Digest::sha256(note.as_bytes());
        format!(r#"{{"mediaType":"m","digest":"{digest}","size":1,"artifactType":"{note}"}}"#)
    };
    let index = |notes: &[&str]| {
        let entries: Vec<_> = notes.iter().map(|note| entry(note)).collect();
        let entries = entries.join(",");
        format!(r#"{{"schemaVersion":2,"manifests":[{entries}]}}"#)
    };
    let wire = Wire::start(|_| {
        let next = format!("Link: </v2/a/b/referrers/{subject}?last=x>; rel=\"next\"\r\n");
        vec![
            answer("200 OK", &next, &index(&["one"])),
            answer("200 OK", "", &index(&["two"])),
            answer("404 Not Found", "", ""),
            answer("200 OK", "", &index(&["three"])),
            answer("404 Not Found", "", ""),
            answer("404 Not Found", "", ""),
        ]
    })
    .await;
    let (client, reference) = (client(), reference(&wire, ""));
    for expected in [&["one", "two"][..], &["three"], &[]] {
        let found = client.referrers(&reference, &subject).await.unwrap();
        let found: Vec<_> = found
            .iter()
            .filter_map(|found| found.artifact_type.as_deref())
            .collect();
        assert_eq!(found, expected);
    }
    let tag = format!("GET /v2/a/b/manifests/sha256-{}", subject.hex());
    assert!(wire.requests()[3].starts_with(&tag));
}

#[tokio::test]
async fn endless_lists_are_refused() {
    // One page would be accepted.
    let page = format!(r#"{{"repositories":["{}"]}}"#, "a".repeat(40 << 20));
    let wire = Wire::start(|_| {
        let next = "Link: </v2/_catalog?last=a>; rel=\"next\"\r\n";
        vec![answer("200 OK", next, &page); 2]
    })
    .await;
    let refused = client().catalog(&wire.address.to_string()).await;
    assert!(
        matches!(refused, Err(Error::TooLarge { .. })),
        "{refused:?}"
    );
    assert_eq!(wire.requests().len(), 2);
}

#[tokio::test]
async fn refusals_are_not_retried_and_have_a_reason() {
    let body = r#"{"errors":[{"code":"DENIED","message":"not yours"}]}"#;
    let wire = Wire::start(|_| {
        vec![
            answer("403 Forbidden", "", body),
            answer("404 Not Found", "", ""),
        ]
    })
    .await;
    let denied = client()
        .pull_manifest(&reference(&wire, ":t"))
        .await
        .unwrap_err();
    assert!(
        matches!(denied, Error::Forbidden { .. }) && denied.to_string().contains("not yours"),
        "{denied}"
    );
    let absent = client()
        .pull_manifest(&reference(&wire, ":t"))
        .await
        .unwrap_err();
    assert!(matches!(absent, Error::NotFound { .. }), "{absent}");
    assert_eq!(wire.requests().len(), 2);
}

#[tokio::test]
async fn an_absent_registry_is_unavailable() {
    let wire = Wire::start(|_| Vec::new()).await;
    let gone: Reference = "127.0.0.1:1/a:t".parse().unwrap();
    let error = client().pull_manifest(&gone).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.chain().contains("127.0.0.1:1"), "{}", error.chain());
    drop(wire);
}

#[tokio::test]
async fn manifests_match_their_digest_header() {
    let with = |digest: &Digest| {
        let headers = format!("Docker-Content-Digest: {digest}\r\n");
        move |_| vec![answer("200 OK", &headers, MANIFEST)]
    };
    let right = Wire::start(with(&Digest::sha256(MANIFEST.as_bytes()))).await;
    let manifest = client().pull_manifest(&reference(&right, ":t")).await;
    assert_eq!(manifest.unwrap().bytes, MANIFEST);
    let other = Wire::start(with(&Digest::sha256(b"other"))).await;
    let damaged = client().pull_manifest(&reference(&other, ":t")).await;
    let text = damaged.unwrap_err().chain();
    let place = reference(&other, "").without_version();
    assert!(
        text.contains(&format!("{place}: the manifest of t")),
        "{text}"
    );
}

#[tokio::test]
async fn single_registries_may_be_without_tls() {
    let answers = |_| vec![answer("200 OK", "Content-Type: text/plain\r\n", MANIFEST)];
    let (plain, other) = (Wire::start(answers).await, Wire::start(answers).await);
    let client = Client::new(ClientOptions {
        insecure_registries: [plain.address.to_string()].into(),
        attempts: Some(1),
        ..ClientOptions::default()
    })
    .unwrap();
    let manifest = client.pull_manifest(&reference(&plain, ":t")).await;
    assert_eq!(manifest.unwrap().bytes, MANIFEST);
    let refused = client.pull_manifest(&reference(&other, ":t")).await;
    assert!(
        matches!(refused, Err(Error::Unavailable { .. })),
        "{refused:?}"
    );
    assert!(client.is_insecure(&plain.address.to_string()));
    assert!(!client.is_insecure(&other.address.to_string()));
}

#[tokio::test]
async fn a_registry_that_mounts_blobs_gets_no_head_requests() {
    let wire = Wire::start(|base| {
        let upload = format!("Location: {base}/v2/a/b/blobs/uploads/1\r\n");
        let found = || answer("201 Created", "", "");
        vec![
            answer("404 Not Found", "", ""),
            answer("202 Accepted", &upload, ""),
            found(),
            // The client checks whether the registry mounts the blob that was just sent.
            found(),
            found(),
        ]
    })
    .await;
    let client = client();
    for content in ["one", "two"] {
        let (digest, source) = (
            Digest::sha256(content.as_bytes()),
            BlobSource::Bytes(content.into()),
        );
        let place = reference(&wire, "");
        client.push_blob(&place, &digest, &source).await.unwrap();
    }
    let requests = wire.requests();
    let methods = requests.iter().map(|it| it.split(' ').next().unwrap());
    assert_eq!(
        methods.collect::<Vec<_>>(),
        ["HEAD", "POST", "PUT", "POST", "POST"]
    );
}

#[tokio::test]
async fn ca_certificates_are_validated() {
    for wrong in [&b"garbage"[..], b""] {
        let options = ClientOptions {
            ca_pem: Some(wrong.to_vec()),
            ..ClientOptions::default()
        };
        assert!(matches!(Client::new(options), Err(Error::Invalid { .. })));
    }
}

#[tokio::test]
async fn mirrors_are_tried_first() {
    let content = "hello world";
    let there = || {
        vec![
            answer("200 OK", "", MANIFEST),
            answer("200 OK", "", content),
        ]
    };
    let near = Wire::start(|_| there()).await;
    let missing = Wire::start(|_| vec![answer("404 Not Found", "", ""); 4]).await;
    let source = Wire::start(|_| there()).await;
    let file = |mirror: &str| {
        format!(
            "[[registry]]\nlocation = \"{}\"\n[[registry.mirror]]\nlocation = \"{}/near\"\n\
             [[registry.mirror]]\nlocation = \"{mirror}\"\n",
            source.address, missing.address
        )
    };
    let client = |mirror: &str| {
        Client::new(ClientOptions {
            insecure: true,
            mirrors: Mirrors::parse(&file(mirror)).unwrap(),
            attempts: Some(1),
            ..ClientOptions::default()
        })
        .unwrap()
    };
    let read = async |client: &Client| {
        let manifest = client.pull_manifest(&reference(&source, ":t")).await;
        assert_eq!(manifest.unwrap().bytes, MANIFEST);
        let named = reference(&source, "");
        let bytes = client.pull_blob_bytes(&named, &blob(content), 100).await;
        assert_eq!(bytes.unwrap(), content);
    };
    read(&client(&near.address.to_string())).await;
    assert!(source.requests().is_empty());
    assert!(missing.requests()[0].starts_with("GET /v2/near/a/b/manifests/t "));
    assert!(near.requests()[0].starts_with("GET /v2/a/b/manifests/t "));

    // A closed port.
    let client = client("127.0.0.1:1");
    read(&client).await;
    assert_eq!((source.requests().len(), missing.requests().len()), (2, 4));

    // Its responses are used up: it closes the connection.
    let refused = client.pull_manifest(&reference(&source, ":t")).await;
    let message = refused.unwrap_err().chain();
    let expected = format!("mirror {}/near/a/b:t", missing.address);
    assert!(message.contains(&expected), "{message}");
}
