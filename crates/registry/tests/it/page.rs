//! The pages for people, as a browser gets them.

use oci::Digest;
use oci::media_type::{OCI_CONFIG, OCI_INDEX, OCI_LAYER, OCI_MANIFEST};
use reqwest::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::auth::{guarded, request_as};
use crate::server::{Server, USER, header, named};

const HTML: &str = "text/html; charset=utf-8";
/// As Firefox sends it.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
/// Harmful where it arrives unescaped.
const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{0}\u{1b}[2J\u{202e}";

async fn browse(request: RequestBuilder) -> Response {
    request.header(ACCEPT, BROWSER).send().await.unwrap()
}

/// The page at `path`, with the headers that every page must have.
async fn page(server: &Server, path: &str) -> String {
    let response = browse(server.request(Method::GET, path)).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    checked(response).await
}

async fn checked(response: Response) -> String {
    assert_eq!(header(&response, &CONTENT_TYPE), HTML);
    let policy = named(&response, "content-security-policy");
    assert!(
        policy.starts_with("default-src 'none';") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(named(&response, "x-content-type-options"), "nosniff");
    let text = response.text().await.unwrap();
    assert!(
        text.starts_with("<!DOCTYPE html><html lang=\"en\">"),
        "{text}"
    );
    assert!(!text.contains("<script") && !text.contains(" on"), "{text}");
    let no_control = |c: char| !c.is_control() || c == '\n' || c == '\t';
    assert!(text.chars().all(no_control) && !text.contains('\u{202e}'));
    text
}

async fn put(server: &Server, name: &str, target: &str, body: &Value) -> Digest {
    let kind = body["mediaType"].as_str().unwrap();
    let body = body.to_string();
    let digest = Digest::sha256(body.as_bytes());
    let target = if target.is_empty() {
        digest.to_string()
    } else {
        target.to_owned()
    };
    let response = server.put_typed(name, &target, kind, body).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    digest
}

fn descriptor(kind: &str, digest: &Digest, size: usize) -> Value {
    json!({"mediaType": kind, "digest": digest, "size": size})
}

/// An image whose configuration is `config`; its manifest's digest.
async fn push_image(
    server: &Server,
    name: &str,
    target: &str,
    config: &str,
    notes: Value,
) -> Digest {
    let layer = server.push_blob(name, b"layer").await;
    let config_digest = server.push_blob(name, config.as_bytes()).await;
    let body = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "annotations": notes,
        "config": descriptor(OCI_CONFIG, &config_digest, config.len()),
        "layers": [descriptor(OCI_LAYER, &layer, 5)],
    });
    put(server, name, target, &body).await
}

fn config(architecture: &str, variant: &str) -> String {
    json!({
        "created": "2020-01-02T03:04:05Z", "os": "linux", "architecture": architecture, "variant": variant,
        "config": {
            "Entrypoint": ["/bin/serve", "--now"], "Env": ["PATH=/bin", "TOKEN=hush-hush"],
            "Labels": {"maker": "somebody"}, "User": "1001",
        },
        "history": [
            {"created_by": "COPY serve /bin/serve"},
            {"created_by": "ENV TOKEN", "empty_layer": true},
        ],
    })
    .to_string()
}

/// An index of two images under the tag `all`, and a signature of it; the digests of all four.
async fn push_index(server: &Server, name: &str) -> [Digest; 4] {
    let mut children = Vec::new();
    for (architecture, variant) in [("amd64", ""), ("arm64", "v8")] {
        let config = config(architecture, variant);
        children.push(push_image(server, name, "", &config, json!({})).await);
    }
    let entry = |digest: &Digest, architecture: &str, variant: &str| {
        json!({
            "mediaType": OCI_MANIFEST, "digest": digest, "size": 7,
            "platform": {"os": "linux", "architecture": architecture, "variant": variant},
        })
    };
    let body = json!({
        "schemaVersion": 2, "mediaType": OCI_INDEX,
        "manifests": [entry(&children[0], "amd64", ""), entry(&children[1], "arm64", "v8")],
    });
    let index = put(server, name, "all", &body).await;
    let empty = server.push_blob(name, b"{}").await;
    let body = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": "example/signature",
        "config": descriptor("application/vnd.oci.empty.v1+json", &empty, 2), "layers": [],
        "subject": descriptor(OCI_INDEX, &index, 7), "annotations": {"signed-by": "me"},
    });
    let signature = put(server, name, "", &body).await;
    let [amd64, arm64] = children.try_into().unwrap();
    [index, amd64, arm64, signature]
}

#[tokio::test]
async fn whoever_wants_no_page_learns_that_the_registry_lives() {
    let (_dir, server) = guarded(&[], |_, _| {}).await;
    for accept in ["*/*", "application/json"] {
        let request = server.request(Method::GET, "/").header(ACCEPT, accept);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(named(&response, "vary"), "accept");
        assert_eq!(response.text().await.unwrap(), "");
    }
    let head = server.head("/").await;
    assert_eq!(head.status(), StatusCode::OK);
    for path in ["/", "/ui/", "/ui/image/a", "/ui/style.css"] {
        let refused = browse(server.request(Method::GET, path)).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(
            named(&refused, "www-authenticate"),
            "Basic realm=\"Registry\""
        );
        checked(refused).await;
        let shown = browse(request_as(&server, USER, Method::GET, path)).await;
        assert_ne!(shown.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    let post = server.request(Method::POST, "/ui/").send().await.unwrap();
    assert_eq!(post.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn everything_that_was_pushed_can_be_found() {
    let server = Server::plain().await;
    let [index, amd64, arm64, signature] = push_index(&server, "team/app").await;
    for path in ["/", "/ui/"] {
        let text = page(&server, path).await;
        assert!(
            text.contains("<a href=\"/ui/image/team/app\">team/app</a>"),
            "{text}"
        );
    }
    let text = page(&server, "/ui/image/team/app").await;
    for part in [
        "Tags: 1, manifests: 4, size: ",
        "href=\"/ui/image/team/app:all\"",
        "linux/amd64, linux/arm64/v8",
        "years ago",
        &format!("href=\"/ui/image/team/app@{index}\""),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let host = server.address();
    let by_digest = page(&server, &format!("/ui/image/team/app@{index}")).await;
    let by_tag = page(&server, "/ui/image/team/app:all").await;
    for (text, image) in [
        (&by_digest, format!("team/app@{index}")),
        (&by_tag, "team/app:all".to_owned()),
    ] {
        for part in [
            index.to_string(),
            "linux/arm64/v8".to_owned(),
            format!("href=\"/ui/image/team/app@{amd64}\""),
            format!("href=\"/ui/image/team/app@{arm64}\""),
            format!("href=\"/ui/image/team/app@{signature}\""),
            "example/signature".to_owned(),
            "signed-by: me".to_owned(),
            "href=\"/ui/image/team/app:all\"".to_owned(),
            format!("podman pull --tls-verify=false {host}/{image}"),
            format!("docker pull {host}/{image}"),
            format!("skopeo copy --src-tls-verify=false docker://{host}/{image} oci:app"),
            format!("oras pull --plain-http {host}/{image}"),
        ] {
            assert!(text.contains(&part), "{part}: {text}");
        }
    }
    let text = page(&server, &format!("/ui/image/team/app@{arm64}")).await;
    for part in [
        "linux/arm64/v8",
        "/bin/serve",
        "TOKEN",
        "maker",
        "somebody",
        "1001",
        "COPY serve /bin/serve",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("hush-hush"), "{text}");
    let text = page(&server, &format!("/ui/image/team/app@{signature}")).await;
    assert!(
        text.contains(&format!("href=\"/ui/image/team/app@{index}\"")),
        "{text}"
    );
    let layer = Digest::sha256(b"layer");
    server.push_blob("other", b"layer").await;
    let text = page(&server, &format!("/ui/blob/team/app@{layer}")).await;
    for part in [
        layer.to_string(),
        "5 B".to_owned(),
        "href=\"/ui/image/other\"".to_owned(),
        format!("href=\"/ui/image/team/app@{amd64}\""),
        format!("href=\"/ui/image/team/app@{arm64}\""),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    let text = page(&server, &format!("/ui/image/team/app@{amd64}")).await;
    assert!(
        text.contains("Part of") && text.contains(&format!("href=\"/ui/image/team/app@{index}\""))
    );
}

#[tokio::test]
async fn what_was_pushed_does_no_harm() {
    let server = Server::plain().await;
    let hostile = json!({
        "created": HOSTILE, "os": HOSTILE, "architecture": "x", "author": HOSTILE,
        "config": {"Entrypoint": [HOSTILE], "Env": [HOSTILE], "Labels": {HOSTILE: HOSTILE}, "User": HOSTILE},
        "history": [{"created_by": HOSTILE}],
    });
    let notes = json!({HOSTILE: HOSTILE, "long": "é".repeat(1 << 19)});
    push_image(&server, "a", "hostile", &hostile.to_string(), notes).await;
    let broken = push_image(&server, "a", "broken", "{\"history\": 1}", json!({})).await;
    let huge = " ".repeat((4 << 20) + 1);
    push_image(&server, "a", "huge", &huge, json!({})).await;
    let body = json!({
        "schemaVersion": 2, "mediaType": OCI_INDEX, "artifactType": HOSTILE, "annotations": {HOSTILE: HOSTILE},
        "subject": descriptor(HOSTILE, &broken, 1),
        "manifests": [{
            "mediaType": HOSTILE, "digest": broken, "size": u64::MAX,
            "platform": {"os": HOSTILE, "architecture": HOSTILE},
        }],
    });
    put(&server, "a", "index", &body).await;
    let empty = server.push_blob("a", b"{}").await;
    let body = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": HOSTILE,
        "config": descriptor(HOSTILE, &empty, 2), "layers": [descriptor(HOSTILE, &empty, 2)],
        "subject": descriptor(OCI_MANIFEST, &broken, 1), "annotations": {HOSTILE: HOSTILE},
    });
    put(&server, "a", "artifact", &body).await;
    page(&server, "/ui/image/a").await;
    let shown = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;\u{fffd}\u{fffd}[2J\u{fffd}";
    for (tag, part) in [
        ("hostile", shown),
        ("hostile", "… (1.0 MiB)"),
        ("broken", "it cannot be read"),
        ("broken", shown),
        ("huge", "it has more than 4.0 MiB"),
        ("index", shown),
        ("artifact", shown),
    ] {
        let text = page(&server, &format!("/ui/image/a:{tag}")).await;
        assert!(text.contains(part), "{tag}: {text}");
        assert!(text.len() < 100_000, "{tag}: {}", text.len());
    }
    let search = page(&server, "/ui/?q=%3Cscript%3E%22").await;
    assert!(
        search.contains("value=\"&lt;script&gt;&quot;\""),
        "{search}"
    );
}

#[tokio::test]
async fn lists_come_in_pages_and_can_be_searched() {
    let server = Server::plain().await;
    for n in 0..60 {
        server.push_image(&format!("many/{n:02}"), "t", "x").await;
    }
    let kind = OCI_INDEX;
    let body = json!({"schemaVersion": 2, "mediaType": kind, "manifests": []}).to_string();
    for n in 0..60 {
        let target = format!("v{n:02}");
        let pushed = server.put_typed("tags", &target, kind, body.clone()).await;
        assert_eq!(pushed.status(), StatusCode::CREATED);
    }
    for (path, first, last, next) in [
        ("/ui/", "many/00", "many/49", "/ui/?last=many%2F49"),
        (
            "/ui/image/tags",
            "tags:v00",
            "tags:v49",
            "/ui/image/tags?last=v49",
        ),
        (
            "/ui/?q=many",
            "many/00",
            "many/49",
            "/ui/?q=many&amp;last=many%2F49",
        ),
    ] {
        let text = page(&server, path).await;
        assert!(text.contains(&format!("/ui/image/{first}\"")), "{path}");
        assert!(text.contains(&format!("/ui/image/{last}\"")), "{path}");
        assert!(
            text.contains(&format!("rel=\"next\" href=\"{next}\"")),
            "{path}: {text}"
        );
        let text = page(&server, &next.replace("&amp;", "&")).await;
        assert!(!text.contains(&format!("/ui/image/{last}\"")), "{path}");
        assert!(
            text.contains("First page") && !text.contains("rel=\"next\""),
            "{path}"
        );
    }
    let text = page(&server, "/ui/?q=/3").await;
    assert!(text.contains("/ui/image/many/30\"") && !text.contains("/ui/image/many/20\""));
    let none = page(&server, "/ui/?q=nowhere").await;
    assert!(
        none.contains("No repository has that in its name."),
        "{none}"
    );
    let digest = Digest::sha256(body.as_bytes());
    let text = page(&server, &format!("/ui/image/tags@{digest}")).await;
    assert_eq!(text.matches("href=\"/ui/image/tags:v").count(), 60);
}

#[tokio::test]
async fn browsers_ask_before_they_show_what_they_have() {
    let server = Server::plain().await;
    server.push_image("a", "t", "x").await;
    for path in [
        "/",
        "/ui/image/a",
        "/ui/image/a:t",
        "/ui/style.css",
        "/ui/icon.svg",
    ] {
        let first = browse(server.request(Method::GET, path)).await;
        let etag = header(&first, &ETAG);
        assert_eq!(header(&first, &CACHE_CONTROL), "private, no-cache");
        let length = first.text().await.unwrap().len();
        let head = browse(server.request(Method::HEAD, path)).await;
        assert_eq!(head.status(), StatusCode::OK, "{path}");
        assert_eq!(named(&head, "content-length"), length.to_string(), "{path}");
        let known = server
            .request(Method::GET, path)
            .header(IF_NONE_MATCH, &etag);
        let known = browse(known).await;
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED, "{path}");
    }
    let before = header(&browse(server.request(Method::GET, "/ui/")).await, &ETAG);
    server.push_image("b", "t", "x").await;
    let after = header(&browse(server.request(Method::GET, "/ui/")).await, &ETAG);
    assert_ne!(before, after);
}

#[tokio::test]
async fn nobody_sees_what_they_may_not_pull() {
    let rules = r#"
rules:
  - {users: [admin], repositories: ["**"], actions: [push, delete]}
  - {users: [reader], repositories: ["open/*"], actions: [pull]}
"#;
    let (_dir, server) = guarded(&["reader"], |settings, dir| {
        let path = dir.path().join("rules.yaml");
        std::fs::write(&path, rules).unwrap();
        settings.registry_auth_policy_path = Some(path);
    })
    .await;
    let body = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": []}).to_string();
    for name in ["open/a", "closed/a"] {
        let path = format!("/v2/{name}/manifests/t");
        let put = request_as(&server, USER, Method::PUT, &path).header(CONTENT_TYPE, OCI_INDEX);
        let put = put.body(body.clone()).send().await.unwrap();
        assert_eq!(put.status(), StatusCode::CREATED);
    }
    let list = async |user| {
        let list = browse(request_as(&server, user, Method::GET, "/")).await;
        checked(list).await
    };
    assert!(list(USER).await.contains("closed/a"));
    let seen = list("reader").await;
    assert!(
        seen.contains("open/a") && !seen.contains("closed"),
        "{seen}"
    );
    assert!(
        seen.contains("Logged in as <strong>reader</strong>"),
        "{seen}"
    );
    let digest = Digest::sha256(body.as_bytes());
    for (path, status) in [
        ("/ui/image/open/a".to_owned(), 200),
        ("/ui/image/open/a:t".to_owned(), 200),
        ("/ui/image/open/none".to_owned(), 404),
        ("/ui/image/closed/a".to_owned(), 403),
        ("/ui/image/closed/none".to_owned(), 403),
        ("/ui/image/closed/a:t".to_owned(), 403),
        (format!("/ui/image/closed/a@{digest}"), 403),
        (format!("/ui/blob/closed/a@{digest}"), 403),
    ] {
        let seen = browse(request_as(&server, "reader", Method::GET, &path)).await;
        assert_eq!(seen.status().as_u16(), status, "{path}");
        checked(seen).await;
    }
}

#[tokio::test]
async fn where_everybody_may_look_somebody_can_log_in() {
    let (_dir, server) = guarded(&[], |settings, _| {
        settings.registry_auth_anonymouspull = true;
    })
    .await;
    let text = page(&server, "/ui/").await;
    assert!(text.contains("href=\"/ui/login\""), "{text}");
    let asked = browse(server.request(Method::GET, "/ui/login")).await;
    assert_eq!(asked.status(), StatusCode::UNAUTHORIZED);
    assert!(named(&asked, "www-authenticate").starts_with("Basic "));
    let seen = browse(request_as(&server, USER, Method::GET, "/ui/")).await;
    assert!(!checked(seen).await.contains("/ui/login"));
    let back = browse(request_as(&server, USER, Method::GET, "/ui/login")).await;
    assert_eq!(back.url().path(), "/ui/");
    assert!(checked(back).await.contains("Logged in as"));
}
