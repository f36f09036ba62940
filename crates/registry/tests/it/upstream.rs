//! Content of other registries.

mod scripted;

use std::time::Duration;

use futures_util::future::join_all;
use oci::media_type::{OCI_INDEX, OCI_MANIFEST};
use oci::{Digest, Reference};
use registry::{Settings, UpstreamConfig, UpstreamList};
use reqwest::header::{CONTENT_TYPE, RANGE, RETRY_AFTER, WARNING};
use reqwest::{Method, Response, StatusCode};
use serde_json::json;
use testkit::redirecting::{self, Redirecting};

use crate::auth::{guarded, request_as};
use crate::server::{PASSWORD, Server, USER, eventually, header, is, manifest, named, refusal};
use scripted::{Lie, Scripted};

fn below(prefix: &str, url: String) -> UpstreamConfig {
    UpstreamConfig {
        prefix: Some(prefix.parse().unwrap()),
        url,
        ..UpstreamConfig::default()
    }
}

/// Repositories below `copy` come from there.
fn copies(upstream: &Scripted) -> impl FnOnce(&mut Settings) + use<> {
    let upstream = below("copy", format!("http://{}", upstream.address));
    move |settings| settings.registry_proxy_upstreams = UpstreamList(vec![upstream])
}

fn is_unconfirmed(response: &Response) -> bool {
    assert_eq!(response.status(), StatusCode::OK);
    header(response, &WARNING).starts_with("299 - \"")
}

fn content(length: usize) -> Vec<u8> {
    let bytes = (0..length).map(|n| u8::try_from(n * n % 251).unwrap());
    bytes.collect()
}

/// An image that the upstream has under a tag: its manifest's and its layer's digest.
fn put_image(upstream: &Scripted, name: &str, tag: &str, layer: Vec<u8>) -> (Digest, Digest) {
    let config = upstream.put_blob(name, "{}");
    let length = layer.len();
    let layer = upstream.put_blob(name, layer);
    let body = manifest(&config, &[(&layer, length)]);
    (upstream.put_manifest(name, tag, &body), layer)
}

/// An index of one image, and a signature of it; the digests of all three.
async fn push_index(server: &Server, name: &str, tag: &str) -> [Digest; 3] {
    let client = server.client();
    let reference: Reference = format!("{}/{name}:{tag}", server.address())
        .parse()
        .unwrap();
    let push = async |content: &'static [u8]| {
        let pushed = client.push_blob_bytes(&reference, "x", content.into());
        pushed.await.unwrap().digest
    };
    let (config, layer) = (push(b"{}").await, push(b"layer").await);
    let put = async |body: String, tag: bool| {
        let parsed = oci::Manifest::parse(body.into(), None).unwrap();
        let digest = parsed.digest.clone();
        let reference = if tag {
            reference.clone()
        } else {
            reference.with_digest(digest.clone())
        };
        client.push_manifest(&reference, &parsed).await.unwrap();
        digest
    };
    let child = put(manifest(&config, &[(&layer, 5)]), false).await;
    let index = json!({
        "schemaVersion": 2, "mediaType": OCI_INDEX,
        "manifests": [{"mediaType": OCI_MANIFEST, "digest": child, "size": 7}],
    });
    let index = put(index.to_string(), true).await;
    let signature = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": "example/signature", "layers": [],
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2},
        "subject": {"mediaType": OCI_INDEX, "digest": index, "size": 7},
    });
    let signature = put(signature.to_string(), false).await;
    [index, child, signature]
}

#[tokio::test]
async fn what_was_fetched_is_there_when_the_upstream_is_not() {
    let upstream = Server::closed().await;
    let [index, child, signature] = push_index(&upstream, "team/app", "v1").await;
    let trusted = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&trusted, upstream.ca.as_ref().unwrap()).unwrap();
    let config = UpstreamConfig {
        username: Some(USER.to_owned()),
        password: Some(PASSWORD.into()),
        cafile: Some(trusted.path().to_owned()),
        ..below("copy", upstream.base.clone())
    };
    let server = Server::with(|settings| {
        settings.registry_proxy_upstreams = UpstreamList(vec![config]);
    })
    .await;
    let layer = Digest::sha256(b"layer");
    let paths = [
        "manifests/v1".to_owned(),
        format!("manifests/{index}"),
        format!("manifests/{child}"),
        format!("blobs/{layer}"),
        format!("blobs/{}", Digest::sha256(b"{}")),
        "tags/list".to_owned(),
        format!("referrers/{index}"),
        format!("manifests/{signature}"),
    ];
    let paths = paths.map(|path| format!("/v2/copy/team/app/{path}"));
    let mut bodies = Vec::new();
    for path in &paths {
        let response = server.get(path).await;
        assert!(!is_unconfirmed(&response), "{path}");
        bodies.push(response.bytes().await.unwrap());
    }
    assert_eq!(Digest::sha256(&bodies[0]), index);
    assert_eq!(bodies[3], &b"layer"[..]);
    assert_eq!(bodies[5], r#"{"name":"copy/team/app","tags":["v1"]}"#);
    let listed = String::from_utf8_lossy(&bodies[6]);
    assert!(listed.contains(&signature.to_string()), "{listed}");
    upstream.stop().await;
    let server = server.restart().await;
    for (path, body) in paths.iter().zip(bodies) {
        let response = server.get(path).await;
        let has_to_ask = ["/v1", "/list", "referrers"]
            .iter()
            .any(|part| path.contains(part));
        assert_eq!(is_unconfirmed(&response), has_to_ask, "{path}");
        assert_eq!(response.bytes().await.unwrap(), body, "{path}");
    }
    let other = server.get("/v2/copy/team/app/manifests/v2").await;
    assert_eq!(refusal(other).await, is(503, "UNAVAILABLE"));
}

#[tokio::test]
async fn a_blob_behind_a_redirect_gets_no_login() {
    let redirecting = Redirecting::start().await;
    let config = UpstreamConfig {
        username: Some(redirecting::USER.to_owned()),
        password: Some(redirecting::PASSWORD.into()),
        ..below("copy", format!("http://{}", redirecting.registry.address))
    };
    let server = Server::with(|settings| {
        settings.registry_proxy_upstreams = UpstreamList(vec![config]);
    })
    .await;
    let below = format!("/v2/copy/{}", redirecting::REPOSITORY);
    let manifest = server.get(&format!("{below}/manifests/v1")).await;
    assert_eq!(manifest.status(), StatusCode::OK);
    let blob = format!("{below}/blobs/{}", redirecting.layer);
    // Why it does not give that out is in the log.
    assert_eq!(refusal(server.get(&blob).await).await, is(403, "DENIED"));
    redirecting.check_requests().unwrap();
}

#[tokio::test]
async fn copies_are_not_pushed_to_and_the_rest_is() {
    let upstream = Scripted::start().await;
    let server = Server::with(copies(&upstream)).await;
    let digest = Digest::sha256(b"");
    let upload = format!("/v2/copy/a/blobs/uploads/{}", uuid::Uuid::nil());
    for (method, path) in [
        (Method::PUT, "/v2/copy/a/manifests/t"),
        (Method::DELETE, "/v2/copy/a/manifests/t"),
        (Method::POST, "/v2/copy/a/blobs/uploads/"),
        (Method::PATCH, &upload),
        (Method::DELETE, &format!("/v2/copy/a/blobs/{digest}")),
    ] {
        let refused = server.request(method, path).send().await.unwrap();
        assert_eq!(refusal(refused).await, is(405, "UNSUPPORTED"), "{path}");
    }
    for name in ["copy", "copying/a", "a/copy/b"] {
        server.push_image(name, "t", "x").await;
        assert_eq!(
            server
                .get(&format!("/v2/{name}/manifests/t"))
                .await
                .status(),
            200
        );
    }
    assert!(upstream.seen("").is_empty(), "{:?}", upstream.seen(""));
    // One for all: nothing can be pushed.
    let all = Server::with(|settings| {
        settings.registry_proxy_remoteurl = Some(format!("http://{}/", upstream.address));
    })
    .await;
    let (image, _) = put_image(&upstream, "a", "t", vec![1]);
    let pulled = all.get("/v2/a/manifests/t").await;
    assert_eq!(named(&pulled, "docker-content-digest"), image.to_string());
    let refused = all.put_manifest("a", "t", "{}").await;
    assert_eq!(refusal(refused).await, is(405, "UNSUPPORTED"));
}

#[tokio::test]
async fn a_tag_follows_its_upstream_as_soon_as_that_is_there() {
    let mut upstream = Scripted::start().await;
    let server = Server::with(copies(&upstream)).await;
    let get = async || {
        let response = server.get("/v2/copy/a/manifests/t").await;
        (
            named(&response, "docker-content-digest"),
            is_unconfirmed(&response),
        )
    };
    let (first, _) = put_image(&upstream, "a", "t", vec![1]);
    assert_eq!(get().await, (first.to_string(), false));
    assert_eq!(get().await, (first.to_string(), false));
    assert_eq!(upstream.seen("GET /v2/a/manifests").len(), 1);
    let (second, _) = put_image(&upstream, "a", "t", vec![2]);
    assert_eq!(get().await, (second.to_string(), false));
    upstream.stop().await;
    let (third, _) = put_image(&upstream, "a", "t", vec![3]);
    assert_eq!(get().await, (second.to_string(), true));
    upstream.resume().await;
    eventually(async || get().await == (third.to_string(), false)).await;
    for digest in [first, second] {
        let old = server.get(&format!("/v2/copy/a/manifests/{digest}")).await;
        assert!(!is_unconfirmed(&old));
    }
}

#[tokio::test]
async fn a_tag_is_not_asked_for_again_too_soon() {
    let upstream = Scripted::start().await;
    put_image(&upstream, "a", "t", vec![1]);
    let server = Server::with(|settings| {
        copies(&upstream)(settings);
        settings.registry_proxy_tagttl = Duration::from_hours(1);
    })
    .await;
    for _ in 0..3 {
        assert!(!is_unconfirmed(&server.get("/v2/copy/a/manifests/t").await));
    }
    assert_eq!(upstream.seen("HEAD /v2/a/manifests/t").len(), 1);
}

#[tokio::test]
async fn many_pulls_are_one_fetch_and_nobody_waits_for_its_end() {
    let upstream = Scripted::start().await;
    let layer = content(1_000_000);
    let (_, digest) = put_image(&upstream, "a", "t", layer.clone());
    let server = Server::with(copies(&upstream)).await;
    upstream.hold(true);
    let path = format!("/v2/copy/a/blobs/{digest}");
    let begun = join_all((0..20).map(async |_| {
        let mut response = server.get(&path).await;
        assert_eq!(response.content_length(), Some(1_000_000));
        let first = response.chunk().await.unwrap().unwrap();
        (response, first)
    }));
    let begun = begun.await;
    let part = server
        .request(Method::GET, &path)
        .header(RANGE, "bytes=10-19");
    let part = part.send().await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.bytes().await.unwrap(), layer[10..20]);
    upstream.hold(false);
    for (response, first) in begun {
        let rest = response.bytes().await.unwrap();
        assert!([first, rest].concat() == layer);
    }
    assert_eq!(upstream.seen("GET /v2/a/blobs").len(), 1);
    assert!(server.get(&path).await.bytes().await.unwrap() == layer);
    assert_eq!(upstream.seen("GET /v2/a/blobs").len(), 1);
}

#[tokio::test]
async fn a_fetch_goes_on_without_its_client() {
    let mut upstream = Scripted::start().await;
    let layer = content(1_000_000);
    let (_, digest) = put_image(&upstream, "a", "t", layer.clone());
    let server = Server::with(copies(&upstream)).await;
    upstream.hold(true);
    let path = format!("/v2/copy/a/blobs/{digest}");
    let mut client = server.get(&path).await;
    client.chunk().await.unwrap().unwrap();
    drop(client);
    upstream.hold(false);
    let kept = server.content(&format!(
        "repositories/copy/a/_layers/sha256/{}/link",
        digest.hex()
    ));
    eventually(async || kept.exists()).await;
    upstream.stop().await;
    assert!(server.get(&path).await.bytes().await.unwrap() == layer);
}

#[tokio::test]
async fn a_blob_that_breaks_off_goes_on_where_it_ended() {
    let upstream = Scripted::start().await;
    let layer = content(500_000);
    let (_, digest) = put_image(&upstream, "a", "t", layer.clone());
    let server = Server::with(copies(&upstream)).await;
    upstream.cut(&[100_000, 200_000]);
    let path = format!("/v2/copy/a/blobs/{digest}");
    assert!(server.get(&path).await.bytes().await.unwrap() == layer);
    let seen = upstream.seen("GET /v2/a/blobs");
    assert!(
        seen.len() == 3 && seen[1].contains("bytes=") && seen[2].contains("bytes="),
        "{seen:?}"
    );
}

#[tokio::test]
async fn what_is_not_what_it_says_is_not_kept() {
    let upstream = Scripted::start().await;
    let server = Server::with(copies(&upstream)).await;
    let mut wrong = content(500_000);
    let digest = Digest::sha256(&wrong);
    wrong[400_000] ^= 1;
    upstream.put_under("a", &digest, wrong);
    let path = format!("/v2/copy/a/blobs/{digest}");
    for _ in 0..2 {
        upstream.hold(true);
        let cut = server.get(&path).await;
        assert_eq!(cut.status(), StatusCode::OK);
        upstream.hold(false);
        assert!(cut.bytes().await.is_err(), "the last bytes must not come");
    }
    assert_eq!(upstream.seen("GET /v2/a/blobs").len(), 2);
    upstream.put_under("a", &digest, content(500_000));
    let right = server.get(&path).await;
    assert!(right.bytes().await.unwrap() == content(500_000));
    let named = upstream.put_manifest("a", "t", "{}");
    let refused = server.get(&format!("/v2/copy/a/manifests/{named}")).await;
    assert_eq!(refusal(refused).await, is(502, "UNAVAILABLE"));
}

/// Only content that its digest names is served or kept, also from an upstream with wrong digests and media types.
#[tokio::test]
async fn lies_of_an_upstream_about_manifests_poison_nothing() {
    let upstream = Scripted::start().await;
    put_image(&upstream, "a", "t", vec![1]);
    let (other, _) = put_image(&upstream, "a", "other", vec![2]);
    let server = Server::with(copies(&upstream)).await;
    for lie in [
        Lie::Digest(Digest::sha256(b"none")),
        Lie::MediaType(OCI_INDEX),
        Lie::MediaType("application/vnd.docker.distribution.manifest.list.v2+json"),
        Lie::MediaType("application/vnd.docker.distribution.manifest.v1+prettyjws"),
        Lie::Truncated,
        Lie::Endless,
    ] {
        upstream.lie(Some(lie.clone()));
        let status = server.get("/v2/copy/a/manifests/t").await.status();
        assert!(
            [404, 502, 503].contains(&status.as_u16()),
            "{lie:?}: {status}"
        );
        let kept = server.content("repositories/copy/a/_manifests/tags/t");
        assert!(!kept.exists(), "{lie:?}");
    }
    // The upstream moves its tags; the content is that of the named digest.
    upstream.lie(Some(Lie::Digest(other.clone())));
    let got = server.get("/v2/copy/a/manifests/t").await;
    assert_eq!(Digest::sha256(&got.bytes().await.unwrap()), other);
    upstream.lie(None);
    let (right, _) = put_image(&upstream, "a", "t", vec![1]);
    eventually(async || {
        let got = server.get("/v2/copy/a/manifests/t").await;
        let is_right = got.status() == StatusCode::OK;
        is_right && Digest::sha256(&got.bytes().await.unwrap()) == right
    })
    .await;
    // Neither does a lie replace content that is here.
    upstream.lie(Some(Lie::MediaType(OCI_INDEX)));
    let got = server.get("/v2/copy/a/manifests/t").await;
    assert_eq!(header(&got, &CONTENT_TYPE), OCI_MANIFEST);
    assert_eq!(Digest::sha256(&got.bytes().await.unwrap()), right);
}

#[tokio::test]
async fn lies_of_an_upstream_about_blobs_poison_nothing() {
    let upstream = Scripted::start().await;
    let layer = content(300_000);
    let (_, digest) = put_image(&upstream, "a", "t", layer.clone());
    let server = Server::with(copies(&upstream)).await;
    let path = format!("/v2/copy/a/blobs/{digest}");
    for lie in [
        Lie::Size(0),
        Lie::Size(1),
        Lie::Size(299_999),
        Lie::Size(300_001),
        Lie::Size(usize::MAX >> 1),
        Lie::Endless,
    ] {
        upstream.lie(Some(lie.clone()));
        let got = server.get(&path).await;
        let status = got.status();
        let is_whole = got.bytes().await.is_ok();
        assert!(!(status.is_success() && is_whole), "{lie:?}: {status}");
        let link = format!("repositories/copy/a/_layers/sha256/{}/link", digest.hex());
        assert!(!server.content(&link).exists(), "{lie:?}");
        // Bytes that came are given back.
        let uploads = server.content("repositories/copy/a/_uploads");
        eventually(async || std::fs::read_dir(&uploads).map_or(0, Iterator::count) == 0).await;
    }
    // Content that is here already has the size that it has.
    server.push_blob("own", &layer).await;
    upstream.lie(Some(Lie::Size(7)));
    let got = server.get(&path).await;
    assert_eq!(got.content_length(), Some(300_000));
    assert!(got.bytes().await.unwrap() == layer);
}

#[tokio::test]
async fn refusals_are_passed_on_unless_there_is_a_copy() {
    let demand = ("www-authenticate", "Basic realm=\"x\"");
    for ((status, name, value), expected, is_bridged) in [
        ((401, demand.0, demand.1), is(403, "DENIED"), true),
        ((403, "x-a", "b"), is(403, "DENIED"), true),
        ((404, "x-a", "b"), is(404, "MANIFEST_UNKNOWN"), false),
        (
            (429, "retry-after", "1000"),
            is(429, "TOOMANYREQUESTS"),
            true,
        ),
        ((500, "x-a", "b"), is(503, "UNAVAILABLE"), true),
    ] {
        let upstream = Scripted::start().await;
        let (_, layer) = put_image(&upstream, "a", "here", vec![1]);
        let server = Server::with(copies(&upstream)).await;
        assert!(!is_unconfirmed(
            &server.get("/v2/copy/a/manifests/here").await
        ));
        upstream.refuse(Some((status, name, value)));
        let here = server.get("/v2/copy/a/manifests/here").await;
        if is_bridged {
            assert!(is_unconfirmed(&here), "{status}");
        } else {
            assert_eq!(refusal(here).await, expected);
        }
        let before = upstream.seen("").len();
        let absent = server.get("/v2/copy/a/manifests/absent").await;
        if status == 429 {
            let wait: u64 = header(&absent, &RETRY_AFTER).parse().unwrap();
            assert!((900..=1001).contains(&wait), "{wait}");
            assert_eq!(upstream.seen("").len(), before, "it wants to be left alone");
        }
        assert_eq!(refusal(absent).await, expected);
        let blob = server.get(&format!("/v2/copy/a/blobs/{layer}")).await;
        assert_eq!(u16::from(blob.status()), expected.0, "{status}");
        let local = server.get("/v2/elsewhere/manifests/t").await;
        assert_eq!(refusal(local).await, is(404, "MANIFEST_UNKNOWN"));
    }
}

#[tokio::test]
async fn asking_about_a_blob_fetches_nothing() {
    let upstream = Scripted::start().await;
    let (_, digest) = put_image(&upstream, "a", "t", content(5000));
    let server = Server::with(copies(&upstream)).await;
    let path = format!("/v2/copy/a/blobs/{digest}");
    let head = server.head(&path).await;
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(named(&head, "content-length"), "5000");
    assert_eq!(named(&head, "docker-content-digest"), digest.to_string());
    assert!(upstream.seen("GET").is_empty());
    let unknown = format!("/v2/copy/a/blobs/{}", Digest::sha256(b"none"));
    assert_eq!(server.head(&unknown).await.status(), StatusCode::NOT_FOUND);
    // Content of another repository here is not fetched again, but served only if the upstream has it.
    let known = server.push_blob("own", &content(5000)).await;
    assert_eq!(known, digest);
    let body = server.get(&path).await.bytes().await.unwrap();
    assert!(body == content(5000) && upstream.seen("GET").is_empty());
    let hidden = server.push_blob("own", b"nobody else's").await;
    let refused = server.get(&format!("/v2/copy/a/blobs/{hidden}")).await;
    assert_eq!(refusal(refused).await, is(404, "BLOB_UNKNOWN"));
}

#[tokio::test]
async fn passwords_do_not_follow_to_other_hosts() {
    let (upstream, storage) = (Scripted::start().await, Scripted::start().await);
    let (_, digest) = put_image(&upstream, "a", "t", vec![1]);
    storage.put_blob("a", vec![1]);
    upstream.keep_blobs_at(&storage);
    upstream.demand_password();
    let server = Server::with(|settings| {
        let config = UpstreamConfig {
            username: Some("me".to_owned()),
            password: Some("hush".into()),
            ..below("copy", format!("http://{}", upstream.address))
        };
        settings.registry_proxy_upstreams = UpstreamList(vec![config]);
    })
    .await;
    let blob = server.get(&format!("/v2/copy/a/blobs/{digest}")).await;
    assert_eq!(blob.bytes().await.unwrap(), vec![1]);
    assert!(!upstream.seen("Basic").is_empty());
    assert!(!storage.seen("GET").is_empty() && storage.seen("Basic").is_empty());
}

#[tokio::test]
async fn a_client_may_name_the_registry_apart() {
    let upstream = Scripted::start().await;
    put_image(&upstream, "library/app", "t", vec![1]);
    let rules = r#"
rules:
  - {users: [reader], repositories: ["copy/**"], actions: [pull]}
  - {users: [anonymous], repositories: [public], actions: [pull]}
"#;
    let (_dir, server) = guarded(&["reader"], |settings, dir| {
        copies(&upstream)(settings);
        let path = dir.path().join("rules.yaml");
        std::fs::write(&path, rules).unwrap();
        settings.registry_auth_policy_path = Some(path);
    })
    .await;
    let get = async |namespace: &str| {
        let path = format!("/v2/library/app/manifests/t?ns={namespace}");
        let request = request_as(&server, "reader", Method::GET, &path);
        request.send().await.unwrap()
    };
    for namespace in ["copy".to_owned(), upstream.address.to_string()] {
        let response = get(&namespace).await;
        assert_eq!(named(&response, "oci-namespace"), namespace);
        assert!(!is_unconfirmed(&response));
    }
    let stranger = server.get("/v2/library/app/manifests/t?ns=copy").await;
    let challenge = named(&stranger, "www-authenticate");
    assert!(
        challenge.contains("scope=\"repository:copy/library/app:pull\""),
        "{challenge}"
    );
    let other = get("elsewhere.example").await;
    assert_eq!(named(&other, "oci-namespace"), "elsewhere.example");
    assert_eq!(refusal(other).await, is(403, "DENIED"));
}

#[tokio::test]
async fn what_nobody_uses_goes_and_what_was_pushed_stays() {
    let mut upstream = Scripted::start().await;
    let (image, layer) = put_image(&upstream, "a", "t", vec![1]);
    let server = Server::plain().await;
    let pushed = server.push_image("copy/a", "own", "pushed before").await;
    let pushed = Digest::sha256(pushed.as_bytes());
    let server = server
        .restart_with(|settings| {
            copies(&upstream)(settings);
            settings.registry_proxy_ttl = Duration::from_secs(1);
            settings.registry_storage_maintenance_gc_grace = Duration::ZERO;
        })
        .await;
    let fetched = server.get("/v2/copy/a/manifests/t").await;
    assert_eq!(named(&fetched, "docker-content-digest"), image.to_string());
    let blob = server.get(&format!("/v2/copy/a/blobs/{layer}")).await;
    assert_eq!(blob.bytes().await.unwrap(), vec![1]);
    let revision = |digest: &Digest| {
        server.content(&format!(
            "repositories/copy/a/_manifests/revisions/sha256/{}/link",
            digest.hex()
        ))
    };
    eventually(async || !revision(&image).exists()).await;
    upstream.stop().await;
    // Checked on disk: a request would extend its life.
    let hex = layer.hex();
    let data = server.content(&format!("blobs/sha256/{}/{hex}/data", &hex[..2]));
    assert!(data.exists());
    eventually(async || {
        let collect = server.request(Method::POST, "/v2/_atoll/gc");
        assert_eq!(collect.send().await.unwrap().status(), StatusCode::OK);
        !data.exists()
    })
    .await;
    let gone = server.get(&format!("/v2/copy/a/blobs/{layer}")).await;
    assert_eq!(gone.status(), StatusCode::SERVICE_UNAVAILABLE);
    let stays = server.get(&format!("/v2/copy/a/manifests/{pushed}")).await;
    assert_eq!(stays.status(), StatusCode::OK);
}

#[tokio::test]
async fn what_upstreams_spare_is_counted() {
    let upstream = Scripted::start().await;
    let (_, layer) = put_image(&upstream, "a", "t", vec![1]);
    let server = Server::with(copies(&upstream)).await;
    for _ in 0..2 {
        server.get("/v2/copy/a/manifests/t").await;
        server.get(&format!("/v2/copy/a/blobs/{layer}")).await;
    }
    let text = server.get("/metrics").await.text().await.unwrap();
    for name in ["requests", "hits", "misses", "pulled_bytes", "pushed_bytes"] {
        for kind in ["blob", "manifest"] {
            let line = format!("registry_proxy_{name}_total{{type=\"{kind}\"}} ");
            assert!(text.contains(&line), "{line}: {text}");
        }
    }
}
