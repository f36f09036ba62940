//! Blobs: every way in, every way out.

use oci::{Algorithm, Digest};
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_NONE_MATCH, LOCATION, RANGE};
use reqwest::{Body, Method, StatusCode};

use crate::server::{Server, header, is, named, refusal};

const HELLO: &[u8] = b"hello world";

#[tokio::test]
async fn the_base_answers() {
    let server = Server::plain().await;
    for path in ["/", "/health", "/ready", "/v2/"] {
        assert_eq!(server.get(path).await.status(), StatusCode::OK, "{path}");
    }
    let base = server.get("/v2/").await;
    assert_eq!(
        named(&base, "docker-distribution-api-version"),
        "registry/2.0"
    );
    assert_eq!(base.text().await.unwrap(), "{}");
    assert_eq!(server.head("/v2/").await.status(), StatusCode::OK);
    assert_eq!(
        refusal(server.get("/v2/nothing").await).await,
        is(404, "NAME_UNKNOWN")
    );
    let refused = server
        .request(Method::PUT, "/v2/_catalog")
        .send()
        .await
        .unwrap();
    assert_eq!(named(&refused, "allow"), "GET, HEAD");
    assert_eq!(refusal(refused).await, is(405, "UNSUPPORTED"));
}

#[tokio::test]
async fn whole_in_one_piece() {
    let server = Server::plain().await;
    let digest = Digest::sha256(HELLO);
    let location = server.upload("a/b").await;
    assert!(location.starts_with(&server.base), "{location}");
    let done = server.finish(&location, &digest.to_string(), HELLO).await;
    assert_eq!(done.status(), StatusCode::CREATED);
    assert_eq!(named(&done, "docker-content-digest"), digest.to_string());
    assert_eq!(
        header(&done, &LOCATION),
        format!("{}/v2/a/b/blobs/{digest}", server.base)
    );
    let got = server.get(&header(&done, &LOCATION)).await;
    assert_eq!(header(&got, &ETAG), format!("\"{digest}\""));
    assert_eq!(got.bytes().await.unwrap(), HELLO);
    assert_eq!(
        refusal(server.get(&location).await).await,
        is(404, "BLOB_UPLOAD_UNKNOWN")
    );
}

#[tokio::test]
async fn whole_with_the_first_request() {
    let server = Server::plain().await;
    for content in [HELLO, b""] {
        let digest = Digest::sha256(content);
        let path = format!("/v2/a/blobs/uploads/?digest={digest}");
        let done = server
            .request(Method::POST, &path)
            .body(content)
            .send()
            .await
            .unwrap();
        assert_eq!(done.status(), StatusCode::CREATED);
        assert_eq!(
            server
                .get(&header(&done, &LOCATION))
                .await
                .bytes()
                .await
                .unwrap(),
            content
        );
    }
    let path = format!("/v2/a/blobs/uploads/?digest={}", Digest::sha256(b"x"));
    let wrong = server
        .request(Method::POST, &path)
        .body(HELLO)
        .send()
        .await
        .unwrap();
    assert_eq!(refusal(wrong).await, is(400, "DIGEST_INVALID"));
    assert_eq!(
        std::fs::read_dir(server.content("repositories/a/_uploads"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test]
async fn in_pieces() {
    let server = Server::plain().await;
    let location = server.upload("a").await;
    let first = server.patch(&location, Some("0-5"), &HELLO[..6]).await;
    assert_eq!(
        (first.status(), header(&first, &RANGE)),
        (StatusCode::ACCEPTED, "0-5".to_owned())
    );
    let location = header(&first, &LOCATION);
    for wrong in ["0-4", "5-9", "7-11", "x"] {
        let refused = server.patch(&location, Some(wrong), b"12345").await;
        assert_eq!(refusal(refused).await, is(416, "RANGE_INVALID"), "{wrong}");
    }
    assert_eq!(
        refusal(server.patch(&location, Some("6-10"), b"1").await).await,
        is(400, "SIZE_INVALID")
    );
    let status = server.get(&location).await;
    assert_eq!(
        (status.status(), header(&status, &RANGE)),
        (StatusCode::NO_CONTENT, "0-5".to_owned())
    );
    assert_eq!(named(&status, "docker-upload-uuid").len(), 36);
    assert!(
        server
            .patch(&location, Some("6-7"), &HELLO[6..8])
            .await
            .status()
            .is_success()
    );
    // The last bytes come with the digest.
    let digest = Digest::sha256(HELLO);
    let done = server
        .finish(&location, &digest.to_string(), &HELLO[8..])
        .await;
    assert_eq!(done.status(), StatusCode::CREATED);
    let got = server.get(&format!("/v2/a/blobs/{digest}")).await;
    assert_eq!(got.bytes().await.unwrap(), HELLO);
}

#[tokio::test]
async fn in_a_stream_of_unknown_length() {
    let server = Server::plain().await;
    let location = server.upload("a").await;
    let chunks: Vec<Result<_, std::io::Error>> = (0..40).map(|n| Ok(vec![n; 50_000])).collect();
    let whole: Vec<u8> = (0..40).flat_map(|n| vec![n; 50_000]).collect();
    let body = Body::wrap_stream(futures_util::stream::iter(chunks));
    let sent = server
        .request(Method::PATCH, &location)
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(header(&sent, &RANGE), "0-1999999");
    let digest = Digest::sha256(&whole);
    assert_eq!(
        server
            .finish(&location, &digest.to_string(), b"")
            .await
            .status(),
        StatusCode::CREATED
    );
    assert_eq!(
        server
            .get(&format!("/v2/a/blobs/{digest}"))
            .await
            .bytes()
            .await
            .unwrap(),
        whole
    );
}

#[tokio::test]
async fn long_digests() {
    let server = Server::plain().await;
    let digest = Digest::of(Algorithm::Sha512, HELLO);
    let started = server
        .request(Method::POST, "/v2/a/blobs/uploads/?digest-algorithm=sha512")
        .send()
        .await
        .unwrap();
    let done = server
        .finish(&header(&started, &LOCATION), &digest.to_string(), HELLO)
        .await;
    assert_eq!(done.status(), StatusCode::CREATED);
    let got = server.get(&format!("/v2/a/blobs/{digest}")).await;
    assert_eq!(named(&got, "docker-content-digest"), digest.to_string());
    assert_eq!(got.bytes().await.unwrap(), HELLO);
    let unknown = server
        .request(Method::POST, "/v2/a/blobs/uploads/?digest-algorithm=md5")
        .send()
        .await
        .unwrap();
    assert_eq!(refusal(unknown).await, is(400, "DIGEST_INVALID"));
}

#[tokio::test]
async fn parts_and_heads() {
    let server = Server::plain().await;
    let digest = server.push_blob("a", HELLO).await;
    let path = format!("/v2/a/blobs/{digest}");
    let head = server.head(&path).await;
    assert_eq!(
        (head.status(), header(&head, &CONTENT_LENGTH)),
        (StatusCode::OK, "11".to_owned())
    );
    assert_eq!(named(&head, "accept-ranges"), "bytes");
    assert!(head.bytes().await.unwrap().is_empty());
    for (range, status, content_range, body) in [
        ("bytes=0-4", 206, "bytes 0-4/11", "hello"),
        ("bytes=6-", 206, "bytes 6-10/11", "world"),
        ("bytes=-5", 206, "bytes 6-10/11", "world"),
        ("bytes=11-", 416, "bytes */11", ""),
        ("bytes=0-1,3-4", 200, "", "hello world"),
    ] {
        let got = server
            .request(Method::GET, &path)
            .header(RANGE, range)
            .send()
            .await
            .unwrap();
        assert_eq!(
            (got.status().as_u16(), header(&got, &CONTENT_RANGE).as_str()),
            (status, content_range),
            "{range}"
        );
        assert_eq!(got.text().await.unwrap(), body, "{range}");
    }
    let stale = server
        .request(Method::GET, &path)
        .header(RANGE, "bytes=0-4")
        .header("if-range", "\"other\"")
        .send()
        .await
        .unwrap();
    assert_eq!(stale.status(), StatusCode::OK);
    for tag in [format!("\"{digest}\""), digest.to_string()] {
        let known = server
            .request(Method::GET, &path)
            .header(IF_NONE_MATCH, &tag)
            .send()
            .await
            .unwrap();
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    }
    let absent = format!("/v2/a/blobs/{}", Digest::sha256(b"absent"));
    let request = server
        .request(Method::GET, &absent)
        .header(IF_NONE_MATCH, "*");
    assert_eq!(
        refusal(request.send().await.unwrap()).await,
        is(404, "BLOB_UNKNOWN")
    );
}

#[tokio::test]
async fn blobs_of_other_repositories_are_mounted_or_uploaded() {
    let server = Server::plain().await;
    let digest = server.push_blob("from/here", HELLO).await;
    assert_eq!(
        server
            .head(&format!("/v2/to/blobs/{digest}"))
            .await
            .status(),
        StatusCode::NOT_FOUND
    );
    let mount = |query: String| {
        server
            .request(Method::POST, &format!("/v2/to/blobs/uploads/?{query}"))
            .send()
    };
    for refused in [
        format!("mount={digest}&from=nowhere"),
        format!("mount={digest}&from=NOT-A-NAME"),
        "mount=garbage&from=from/here".to_owned(),
    ] {
        assert_eq!(mount(refused).await.unwrap().status(), StatusCode::ACCEPTED);
    }
    let mounted = mount(format!("mount={digest}&from=from%2Fhere&origin=x"))
        .await
        .unwrap();
    assert_eq!(mounted.status(), StatusCode::CREATED);
    assert_eq!(
        server
            .get(&header(&mounted, &LOCATION))
            .await
            .bytes()
            .await
            .unwrap(),
        HELLO
    );
    let anonymous = server
        .request(
            Method::POST,
            &format!("/v2/third/blobs/uploads/?mount={digest}"),
        )
        .send()
        .await
        .unwrap();
    assert_eq!(anonymous.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn deleted_blobs_are_gone_at_once_and_only_there() {
    let server = Server::plain().await;
    let digest = server.push_blob("a", HELLO).await;
    server.push_blob("b", HELLO).await;
    let path = format!("/v2/a/blobs/{digest}");
    assert_eq!(server.delete(&path).await.status(), StatusCode::ACCEPTED);
    assert_eq!(server.head(&path).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(
        refusal(server.delete(&path).await).await,
        is(404, "BLOB_UNKNOWN")
    );
    assert_eq!(
        server.head(&format!("/v2/b/blobs/{digest}")).await.status(),
        StatusCode::OK
    );
    let closed = Server::with(|settings| settings.registry_storage_delete_enabled = false).await;
    let digest = closed.push_blob("a", HELLO).await;
    assert_eq!(
        refusal(closed.delete(&format!("/v2/a/blobs/{digest}")).await).await,
        is(405, "UNSUPPORTED")
    );
    // An upload of one's own is not content.
    let location = closed.upload("a").await;
    assert_eq!(
        closed.delete(&location).await.status(),
        StatusCode::NO_CONTENT
    );
}

#[tokio::test]
async fn what_cannot_be_uploaded() {
    let server = Server::plain().await;
    let location = server.upload("a").await;
    let missing = server
        .request(Method::PUT, &location)
        .body(HELLO)
        .send()
        .await
        .unwrap();
    assert_eq!(refusal(missing).await, is(400, "DIGEST_INVALID"));
    for wrong in ["", "sha256:x", "md5:d41d8cd98f00b204e9800998ecf8427e"] {
        assert_eq!(
            refusal(server.finish(&location, wrong, HELLO).await).await,
            is(400, "DIGEST_INVALID"),
            "{wrong:?}"
        );
    }
    let claimed = Digest::sha256(b"claimed");
    assert_eq!(
        refusal(server.finish(&location, &claimed.to_string(), HELLO).await).await,
        is(400, "DIGEST_INVALID")
    );
    for digest in [claimed, Digest::sha256(HELLO)] {
        assert_eq!(
            server.head(&format!("/v2/a/blobs/{digest}")).await.status(),
            StatusCode::NOT_FOUND
        );
    }
    assert_eq!(
        refusal(server.patch(&location, None, b"x").await).await,
        is(404, "BLOB_UPLOAD_UNKNOWN")
    );
    let other = server.upload("a").await.replace("/v2/a/", "/v2/b/");
    assert_eq!(
        refusal(server.patch(&other, None, b"x").await).await,
        is(404, "BLOB_UPLOAD_UNKNOWN")
    );
    for name in ["A", "a%2Fb", "_a", "a..b", &"a".repeat(256)] {
        let refused = server
            .request(Method::POST, &format!("/v2/{name}/blobs/uploads/"))
            .send()
            .await
            .unwrap();
        assert_eq!(refusal(refused).await, is(400, "NAME_INVALID"), "{name}");
    }
}

#[tokio::test]
async fn locations_follow_the_proxy_or_the_settings() {
    let server = Server::plain().await;
    let request = server.request(Method::POST, "/v2/a/blobs/uploads/");
    let proxied = request
        .header("x-forwarded-proto", "https")
        .header("x-forwarded-host", "out:8443")
        .send()
        .await
        .unwrap();
    assert!(header(&proxied, &LOCATION).starts_with("https://out:8443/v2/a/blobs/uploads/"));
    let fixed = Server::with(|settings| {
        settings.registry_http_host = Some("https://r.example/".to_owned());
    })
    .await;
    assert!(
        fixed
            .upload("a")
            .await
            .starts_with("https://r.example/v2/a/")
    );
    let relative = Server::with(|settings| settings.registry_http_relativeurls = true).await;
    assert!(relative.upload("a").await.starts_with("/v2/a/"));
}
