//! Reloads, and the HTTP interface.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use catalog_server::Settings;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::Value;
use service::CancellationToken;
use service::server::Running;
use service::settings::{FromValues as _, Values};
use tempfile::TempDir;

use crate::content::{large, package, write};

/// Generous deadline for slow machines.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// A complete server by settings.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    running: Running,
    shutdown: CancellationToken,
    client: Client,
}

impl World {
    /// Serves `catalogs`, in which `FOLDER` is replaced by a temporary folder.
    pub(crate) async fn start(catalogs: &str) -> Self {
        Self::start_in(TempDir::new().unwrap(), catalogs).await
    }

    pub(crate) async fn start_in(folder: TempDir, catalogs: &str) -> Self {
        Self::start_with(folder, catalogs, &[]).await
    }

    /// With other settings, in which `FOLDER` is replaced, too.
    pub(crate) async fn start_with(
        folder: TempDir,
        catalogs: &str,
        others: &[(&str, &str)],
    ) -> Self {
        let path = folder.path().to_str().unwrap().to_owned();
        let within = |text: &str| text.replace("FOLDER", &path);
        let catalogs = within(catalogs);
        let cache = format!("{path}/cache");
        // Isolates the test from the user's settings.
        let logins = format!("{path}/auth.json");
        std::fs::write(&logins, "{}").unwrap();
        let mut values = Values::from_pairs([
            ("metrics_on_public_port", "true"),
            // Clients use names other than localhost, which have to be allowed.
            ("allowed_hosts", "*"),
            ("catalogs", catalogs.as_str()),
            ("catalog_cache_dir", &cache),
            ("listen_address", "127.0.0.1"),
            ("catalog_port", "0"),
            ("catalog_poll_interval", "50ms"),
            ("catalog_insecure", "true"),
            ("registry_auth_file", &logins),
        ]);
        for (name, text) in others {
            values.set(name, &within(text));
        }
        let settings = Settings::from_values(&values).unwrap();
        let shutdown = CancellationToken::new();
        let running = catalog_server::start(settings, shutdown.clone()).await;
        Self {
            folder,
            running: running.unwrap(),
            shutdown,
            client: service::http_client(None, true).unwrap(),
        }
    }

    /// Shuts down gracefully; keeps the folder.
    pub(crate) async fn stop(self) -> TempDir {
        drop(self.client);
        self.shutdown.cancel();
        self.running.wait().await.unwrap();
        self.folder
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        self.running.addresses()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.running.address())
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.ask(Method::GET, path, HeaderMap::new()).await
    }

    async fn ask(&self, method: Method, path: &str, headers: HeaderMap) -> Response {
        let request = self.client.request(method, self.url(path));
        request.headers(headers).send().await.unwrap()
    }

    pub(crate) async fn text(&self, path: &str) -> String {
        self.get(path).await.text().await.unwrap()
    }

    /// Status and text of `/readyz`.
    pub(crate) async fn readiness(&self) -> (StatusCode, String) {
        let response = self.get("/readyz").await;
        (response.status(), response.text().await.unwrap())
    }

    /// Waits until the text at `path` satisfies `wanted`.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let text = self.text(path).await;
            if wanted(&text) {
                return;
            }
            assert!(Instant::now() < deadline, "{path} still says {text}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until the head of the catalog's only channel is `bundle`.
    pub(crate) async fn until_head(&self, catalog: &str, bundle: &str) {
        let path = format!("/catalogs/{catalog}/api/v1/metas?schema=olm.channel");
        let wanted = format!("\"entries\":[{{\"name\":\"{bundle}\"}}]");
        self.until(&path, |text| text.contains(&wanted)).await;
    }
}

fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
    let pair = |(name, value): &(header::HeaderName, &str)| {
        (name.clone(), HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(pair).collect()
}

pub(crate) fn folder_with(text: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    write(&folder.path().join("configs"), text);
    folder
}

#[tokio::test]
async fn only_valid_revisions_are_served() {
    let world = World::start_in(folder_with(&package("a", "1.0.0")), "FOLDER/configs").await;
    world.until_head("catalog", "a.v1.0.0").await;
    let configs = world.path("configs");
    write(&configs, &package("a", "2.0.0"));
    world.until_head("catalog", "a.v2.0.0").await;
    assert!(!world.readiness().await.1.contains("ailing"));

    // The channel has an entry without a bundle.
    write(
        &configs,
        &package("a", "3.0.0").replace("a.v3.0.0\"}]", "a.v4.0.0\"}]"),
    );
    world.until("/readyz", |text| text.contains("ailing")).await;
    let (status, text) = world.readiness().await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        text.contains("a.v4.0.0") && text.contains("catalog.json"),
        "{text}"
    );
    world.until_head("catalog", "a.v2.0.0").await;
    let metrics = world.text("/metrics").await;
    assert!(
        metrics.contains("atoll_catalog_stale{catalog=\"catalog\"} 1"),
        "{metrics}"
    );

    write(&configs, &package("a", "5.0.0"));
    world.until_head("catalog", "a.v5.0.0").await;
    world
        .until("/readyz", |text| !text.contains("ailing"))
        .await;
}

#[tokio::test]
async fn packages_that_break_rules_are_left_out_and_reported() {
    // A name of its own: servers of one process share their measurements.
    const MIXED: &str = "mixed=FOLDER/configs";
    let broken = package("broken", "1.0.0").replace("broken.v1.0.0\"}]", "broken.v2.0.0\"}]");
    // opm refuses such a reference from 1.64 on only.
    let older = package("kuad", "1.0.0").replace(
        "\"image\":",
        "\"relatedImages\":[{\"name\":\"x\",\"image\":\"oci://r/x:1\"}],\"image\":",
    );
    assert!(older.contains("oci://") && broken.contains("v2.0.0"));
    let text = package("a", "1.0.0") + &broken + &older;
    let world = World::start_in(folder_with(&text), MIXED).await;
    world.until_head("mixed", "a.v1.0.0").await;
    let served = catalog_server::served_packages("mixed", world.addresses()[0]).await;
    assert_eq!(served, Ok(2));
    let (status, readiness) = world.readiness().await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        readiness.contains("packages that break rules are left out: broken")
            && readiness.contains("[entry-bundle]"),
        "{readiness}"
    );
    let list: Value = serde_json::from_str(&world.text("/catalogs").await).unwrap();
    assert_eq!(list[0]["left_out"], serde_json::json!(["broken"]));
    let metrics = world.text("/metrics").await;
    assert!(
        metrics.contains("atoll_catalog_packages_left_out{catalog=\"mixed\"} 1"),
        "{metrics}"
    );
    let page = world.text("/ui/mixed/").await;
    assert!(page.contains("kuad") && !page.contains("broken"), "{page}");
    let page = world.get("/ui/mixed/package/broken").await;
    assert_eq!(page.status(), StatusCode::NOT_FOUND);
    let page = world.get("/ui/mixed/package/kuad").await;
    assert_eq!(page.status(), StatusCode::OK);

    // A restart reads the report from the cache; a corrected catalog is complete.
    let world = World::start_in(world.stop().await, MIXED).await;
    world
        .until("/readyz", |text| text.contains("left out"))
        .await;
    write(&world.path("configs"), &package("a", "2.0.0"));
    world.until_head("mixed", "a.v2.0.0").await;
    world
        .until("/readyz", |text| !text.contains("ailing"))
        .await;
}

#[tokio::test]
async fn downloads_in_progress_keep_their_catalog() {
    const DOCUMENTS: usize = 20_000;
    let old = large("a", "1.0.0", DOCUMENTS);
    let world = World::start_in(folder_with(&old), "FOLDER/configs").await;
    world.until_head("catalog", "a.v1.0.0").await;
    let mut begun = world.get("/catalogs/catalog/api/v1/all").await;
    let mut text = begun.chunk().await.unwrap().unwrap().to_vec();
    write(&world.path("configs"), &package("a", "2.0.0"));
    world.until_head("catalog", "a.v2.0.0").await;
    while let Some(piece) = begun.chunk().await.unwrap() {
        text.extend_from_slice(&piece);
    }
    let lines: Vec<_> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(lines.len(), 3 + DOCUMENTS);
    let last: Value = serde_json::from_slice(lines.last().unwrap()).unwrap();
    assert_eq!(last["name"], (DOCUMENTS - 1).to_string());
}

#[tokio::test]
async fn readiness_waits_for_every_catalog() {
    let folder = folder_with(&package("a", "1.0.0"));
    let world = World::start_in(folder, "good=FOLDER/configs,bad=FOLDER/other").await;
    world.until_head("good", "a.v1.0.0").await;
    world
        .until("/readyz", |text| {
            text.contains("FOLDER") || text.contains("other")
        })
        .await;
    let (status, text) = world.readiness().await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(!text.contains("\"good\""), "{text}");
    assert_eq!(world.get("/livez").await.status(), StatusCode::OK);
    let early = world.get("/catalogs/bad/api/v1/all").await;
    assert_eq!(early.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(early.headers()[header::RETRY_AFTER], "2");
    write(&world.path("other"), &package("b", "1.0.0"));
    world
        .until("/readyz", |text| text.contains("\"ready\":true"))
        .await;
}

#[tokio::test]
async fn metas_filters_by_schema_package_and_name() {
    let text = package("a", "1.0.0") + &package("b", "1.0.0");
    let world = World::start_in(folder_with(&text), "FOLDER/configs").await;
    world.until_head("catalog", "a.v1.0.0").await;
    let names = async |query: &str| {
        let path = format!("/catalogs/catalog/api/v1/metas{query}");
        let text = world.text(&path).await;
        let names = text.lines().map(|line| {
            let document: Value = serde_json::from_str(line).unwrap();
            document["name"].as_str().unwrap().to_owned()
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("?schema=olm.package").await, ["a", "b"]);
    assert_eq!(names("?package=b").await, ["stable", "b.v1.0.0"]);
    assert_eq!(
        names("?schema=olm.bundle&name=a.v1.0.0").await,
        ["a.v1.0.0"]
    );
    assert_eq!(names("?schema=OLM.package").await, [""; 0]);
    assert_eq!(names("").await.len(), 6);
    let list: Value = serde_json::from_str(&world.text("/catalogs").await).unwrap();
    assert_eq!(list[0]["name"], "catalog");
    assert_eq!(list[0]["is_ready"], true);
    for (path, status) in [
        ("catalog/api/v1/metas?unknown=1", StatusCode::BAD_REQUEST),
        ("Catalog/api/v1/all", StatusCode::BAD_REQUEST),
        ("other/api/v1/all", StatusCode::NOT_FOUND),
        ("catalog/api/v1/none", StatusCode::NOT_FOUND),
    ] {
        let response = world.get(&format!("/catalogs/{path}")).await;
        assert_eq!(response.status(), status, "{path}");
    }
    let path = "/catalogs/catalog/api/v1/all";
    let refused = world.ask(Method::POST, path, HeaderMap::new()).await;
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn all_supports_ranges_and_conditional_requests() {
    let world = World::start_in(folder_with(&package("a", "1.0.0")), "FOLDER/configs").await;
    world.until_head("catalog", "a.v1.0.0").await;
    let path = "/catalogs/catalog/api/v1/all";
    let whole = world.get(path).await;
    assert_eq!(whole.headers()[header::CONTENT_TYPE], "application/jsonl");
    let (tag, modified) = (
        whole.headers()[header::ETAG].to_str().unwrap().to_owned(),
        whole.headers()[header::LAST_MODIFIED]
            .to_str()
            .unwrap()
            .to_owned(),
    );
    let text = whole.text().await.unwrap();
    assert_eq!(text.lines().count(), 3);

    let head = world.ask(Method::HEAD, path, HeaderMap::new()).await;
    assert_eq!(
        head.headers()[header::CONTENT_LENGTH],
        text.len().to_string()
    );
    assert_eq!(head.text().await.unwrap(), "");
    let head = world
        .ask(Method::HEAD, path, headers(&[(header::RANGE, "bytes=5-9")]))
        .await;
    assert_eq!(head.status(), StatusCode::OK);

    let ask = async |pairs: &[(header::HeaderName, &str)]| {
        world.ask(Method::GET, path, headers(pairs)).await
    };
    let part = ask(&[(header::RANGE, "bytes=5-9")]).await;
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    let range = format!("bytes 5-9/{}", text.len());
    assert_eq!(part.headers()[header::CONTENT_RANGE], range);
    assert_eq!(part.text().await.unwrap(), text[5..10]);
    let beyond = ask(&[(header::RANGE, "bytes=999999-")]).await;
    assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    let other = [
        (header::RANGE, "bytes=5-9"),
        (header::IF_RANGE, "\"other\""),
    ];
    assert_eq!(ask(&other).await.status(), StatusCode::OK);

    for condition in [
        (header::IF_NONE_MATCH, &*tag),
        (header::IF_MODIFIED_SINCE, &*modified),
    ] {
        assert_eq!(ask(&[condition]).await.status(), StatusCode::NOT_MODIFIED);
    }
    let before = "Thu, 01 Jan 1970 00:00:00 GMT";
    let refused = ask(&[(header::IF_UNMODIFIED_SINCE, before)]).await;
    assert_eq!(refused.status(), StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn compressed_responses_have_weak_entity_tags() {
    let world = World::start_in(folder_with(&package("a", "1.0.0")), "FOLDER/configs").await;
    world.until_head("catalog", "a.v1.0.0").await;
    for path in [
        "/catalogs/catalog/api/v1/all",
        "/catalogs/catalog/api/v1/metas",
    ] {
        let ask = async |method: Method, pairs: &[(header::HeaderName, &str)]| {
            world.ask(method, path, headers(pairs)).await
        };
        let gzip = [(header::ACCEPT_ENCODING, "gzip")];
        let plain = ask(Method::GET, &[]).await;
        let packed = ask(Method::GET, &gzip).await;
        assert_eq!(plain.headers().get(header::CONTENT_ENCODING), None);
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        assert_eq!(packed.headers().get(header::ACCEPT_RANGES), None);
        let tag = |of: &Response| of.headers()[header::ETAG].to_str().unwrap().to_owned();
        let (strong, weak) = (tag(&plain), tag(&packed));
        assert_eq!(weak, format!("W/{strong}"));
        // Both requests know both entity tags.
        for held in [&strong, &weak] {
            for (pairs, sent) in [(&[][..], &strong), (&gzip, &weak)] {
                let held = [pairs, &[(header::IF_NONE_MATCH, held)]].concat();
                let known = ask(Method::GET, &held).await;
                assert_eq!(known.status(), StatusCode::NOT_MODIFIED, "{held:?}");
                assert_eq!(tag(&known), *sent, "{held:?}");
                assert_eq!(known.headers()[header::VARY], "accept-encoding");
            }
        }
        let text = plain.text().await.unwrap();
        assert_eq!(unpacked(packed).await, text);
        let head = ask(Method::HEAD, &gzip).await;
        assert_eq!(head.headers()[header::CONTENT_ENCODING], "gzip");
        assert_eq!(tag(&head), weak);
        assert_eq!(head.headers().get(header::CONTENT_LENGTH), None);
    }
}

#[tokio::test]
async fn ranges_apply_to_uncompressed_content() {
    let world = World::start_in(folder_with(&package("a", "1.0.0")), "FOLDER/configs").await;
    world.until_head("catalog", "a.v1.0.0").await;
    let ask = async |pairs: &[(header::HeaderName, &str)]| {
        let path = "/catalogs/catalog/api/v1/all";
        let asked = [
            &[
                (header::ACCEPT_ENCODING, "gzip"),
                (header::RANGE, "bytes=5-9"),
            ],
            pairs,
        ];
        world.ask(Method::GET, path, headers(&asked.concat())).await
    };
    let part = ask(&[]).await;
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.headers().get(header::CONTENT_ENCODING), None);
    assert_eq!(part.headers()[header::VARY], "accept-encoding");
    let strong = part.headers()[header::ETAG].to_str().unwrap().to_owned();
    assert_eq!(part.bytes().await.unwrap().len(), 5);
    let same = ask(&[(header::IF_RANGE, &strong)]).await;
    assert_eq!(same.status(), StatusCode::PARTIAL_CONTENT);
    // A partial copy of the compressed form is replaced by the whole.
    let other = ask(&[(header::IF_RANGE, &format!("W/{strong}"))]).await;
    assert_eq!(other.status(), StatusCode::OK);
    assert_eq!(other.headers()[header::CONTENT_ENCODING], "gzip");
    assert_eq!(unpacked(other).await.lines().count(), 3);
}

async fn unpacked(response: Response) -> String {
    let packed = response.bytes().await.unwrap();
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(&*packed);
    std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
    text
}

#[tokio::test]
async fn pages_show_the_catalog_and_escape_its_strings() {
    let hostile = package("a", "1.0.0").replace("stable", "<script>alert(1)</script>/../x");
    let world = World::start_in(folder_with(&hostile), "FOLDER/configs").await;
    world
        .until("/readyz", |text| text.contains("\"ready\":true"))
        .await;
    let home = world.get("/").await;
    let policy = home.headers()[header::CONTENT_SECURITY_POLICY]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(home.text().await.unwrap().contains("/ui/catalog/"));
    assert!(
        world
            .text("/ui/catalog/")
            .await
            .contains("/ui/catalog/package/a")
    );
    assert!(
        world
            .text("/ui/catalog/?q=zzz")
            .await
            .contains("No package name matches")
    );
    let package = world.text("/ui/catalog/package/a").await;
    assert!(
        package.contains("&lt;script&gt;") && !package.contains("<script"),
        "{package}"
    );
    // Each page links to the next.
    for (page, marker, shown) in [
        (
            "/ui/catalog/package/a",
            "/ui/catalog/channel/",
            "Upgrade graph",
        ),
        (
            "/ui/catalog/package/a",
            "/ui/catalog/bundle/",
            "quay.io/x/needed:1",
        ),
    ] {
        let text = world.text(page).await;
        let from = text.find(marker).unwrap();
        let link = text[from..].split('"').next().unwrap();
        let next = world.text(link).await;
        assert!(next.contains(shown), "{link}: {next}");
    }
    for none in [
        "/ui/other/",
        "/ui/catalog/package/none",
        "/ui/catalog/bundle/a/none",
    ] {
        let response = world.get(none).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{none}");
    }
    assert_eq!(world.get("/ui/style.css").await.status(), StatusCode::OK);
}

/// Whether `folder` has only caches and lock files.
pub(crate) fn is_tidy(folder: &Path) -> bool {
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .all(|name| !name.starts_with(".staging"))
}
