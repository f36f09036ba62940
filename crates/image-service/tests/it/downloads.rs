//! Population of the data folder.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use image_service::{OsImage, Settings};
use service::CancellationToken;
use service::settings::JsonVar;
use testkit::iso::LiveImageOptions;
use testkit::small_disk::SmallDisk;

use crate::world::{ID, World, os_image, own_file};

async fn wait_for(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn source(options: &LiveImageOptions) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("source.iso");
    testkit::iso::write(&path, options).unwrap();
    (directory, path)
}

fn names(data: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn a_file_url_is_used_in_place() {
    let (_directory, path) = source(&LiveImageOptions::default());
    let url = format!("file://{}", path.display());
    let data = tempfile::tempdir().unwrap();
    let world = World::without_image(data, |settings| {
        settings.os_images = JsonVar(vec![os_image(&url)]);
    })
    .await;
    world.ready().await;
    assert_eq!(names(world.data.path()), Vec::<String>::new());
    let kernel = world.bytes("/boot-artifacts/kernel?version=4.18").await;
    assert!(kernel.starts_with(b"MZ"));
}

#[tokio::test]
async fn images_get_503_until_they_are_populated() {
    let data = tempfile::tempdir().unwrap();
    let world = World::without_image(data, |_| {}).await;
    for path in [
        World::full_iso(),
        format!("/images/{ID}/pxe-initrd?version=4.18"),
        "/boot-artifacts/rootfs?version=4.18".to_owned(),
        "/health".to_owned(),
    ] {
        let response = world.get(&path).send().await.unwrap();
        assert_eq!(response.status(), 503, "{path}");
    }
    let ready = world
        .get("/ready")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(ready.contains("418.94.202511191518-0 x86_64"), "{ready}");
    assert_eq!(world.get("/live").send().await.unwrap().status(), 200);

    testkit::iso::write(&own_file(world.data.path()), &LiveImageOptions::small()).unwrap();
    world.ready().await;
    world.bytes(&World::full_iso()).await;
}

#[tokio::test]
async fn a_mounted_live_image_is_used_in_place() {
    let data = tempfile::tempdir().unwrap();
    testkit::iso::write(
        &data.path().join("livecd.iso"),
        &LiveImageOptions::default(),
    )
    .unwrap();
    let world = World::without_image(data, |_| {}).await;
    world.ready().await;
    assert_eq!(names(world.data.path()), ["livecd.iso"]);
    let response = world
        .client
        .head(format!("{}{}", world.url, World::full_iso()))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
}

/// A server that aborts its first response in the middle.
#[derive(Clone)]
struct Flaky {
    bytes: Bytes,
    requests: Arc<AtomicUsize>,
    resumed: Arc<AtomicUsize>,
}

async fn flaky(State(flaky): State<Flaky>, headers: HeaderMap) -> Response {
    let length = flaky.bytes.len();
    let tag = [(header::ETAG, "\"v1\"")];
    if flaky.requests.fetch_add(1, Ordering::SeqCst) == 0 {
        let half = flaky.bytes.slice(..length / 2);
        let broken = Err(std::io::Error::other("broken off"));
        let chunks = futures_util::stream::iter([Ok(half), broken]);
        let length = [(header::CONTENT_LENGTH, length)];
        return (tag, length, Body::from_stream(chunks)).into_response();
    }
    let range = headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok());
    let start = range.and_then(|text| text.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    match start {
        Some(start)
            if headers
                .get(header::IF_RANGE)
                .is_some_and(|held| held == "\"v1\"") =>
        {
            flaky.resumed.store(start, Ordering::SeqCst);
            let range = [(
                header::CONTENT_RANGE,
                format!("bytes {start}-{}/{length}", length - 1),
            )];
            (
                StatusCode::PARTIAL_CONTENT,
                tag,
                range,
                flaky.bytes.slice(start..),
            )
                .into_response()
        }
        _ => (tag, flaky.bytes).into_response(),
    }
}

#[tokio::test]
async fn an_aborted_download_resumes() {
    let (_directory, path) = source(&LiveImageOptions::default());
    let bytes = Bytes::from(std::fs::read(&path).unwrap());
    let server = Flaky {
        bytes: bytes.clone(),
        requests: Arc::default(),
        resumed: Arc::default(),
    };
    let router = Router::new()
        .route("/live.iso", get(flaky))
        .with_state(server.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/live.iso", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });

    let data = tempfile::tempdir().unwrap();
    let world = World::without_image(data, |settings| {
        settings.os_images = JsonVar(vec![os_image(&url)]);
    })
    .await;
    world.ready().await;
    assert!(
        server.resumed.load(Ordering::SeqCst) > 0,
        "it asked for the rest only"
    );
    assert!(std::fs::read(own_file(world.data.path())).unwrap() == bytes);
}

/// Answers `whole` in two halves, the second when `go` allows it.
async fn slow(State((whole, requests, go)): State<Slow>) -> Body {
    requests.fetch_add(1, Ordering::SeqCst);
    let half = whole.len() / 2;
    let first = futures_util::stream::iter([Ok::<_, std::io::Error>(whole.slice(..half))]);
    let second = futures_util::stream::once(async move {
        go.cancelled().await;
        Ok(whole.slice(half..))
    });
    Body::from_stream(futures_util::StreamExt::chain(first, second))
}

type Slow = (Bytes, Arc<AtomicUsize>, CancellationToken);

#[tokio::test]
async fn replicas_that_share_a_folder_download_once() {
    let (_directory, path) = source(&LiveImageOptions::default());
    let whole = Bytes::from(std::fs::read(&path).unwrap());
    let (requests, go) = (Arc::<AtomicUsize>::default(), CancellationToken::new());
    let router = Router::new().route("/live.iso", get(slow)).with_state((
        whole.clone(),
        Arc::clone(&requests),
        go.clone(),
    ));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/live.iso", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });

    let data = Arc::new(tempfile::tempdir().unwrap());
    let mut worlds = Vec::new();
    for _ in 0..3 {
        let change = |settings: &mut Settings| {
            settings.os_images = JsonVar(vec![os_image(&url)]);
        };
        worlds.push(World::replica(Arc::clone(&data), change).await);
    }
    wait_for("the first half", async || {
        names(data.path()).len() == 1 && requests.load(Ordering::SeqCst) > 0
    })
    .await;
    wait_for("the progress", async || {
        // One of them downloads.
        for world in &worlds {
            let health = world.get("/health").send().await.unwrap();
            let text = health.text().await.unwrap();
            if text.starts_with("418.94.202511191518-0 x86_64: ") && text.ends_with(" MiB\n") {
                return true;
            }
        }
        false
    })
    .await;
    wait_for("the metric", async || {
        let metrics = worlds[0].bytes("/metrics").await;
        let name = "atoll_os_image_downloaded_bytes{";
        let text = String::from_utf8(metrics).unwrap();
        let line = text.lines().find(|line| line.starts_with(name));
        line.is_some_and(|line| !line.ends_with(" 0"))
    })
    .await;
    go.cancel();
    for world in &worlds {
        world.ready().await;
    }
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    assert_eq!(names(data.path()).len(), 1, "{:?}", names(data.path()));
    assert!(std::fs::read(own_file(data.path())).unwrap() == whole);
}

/// A server of the file at `path`.
async fn serve_file(path: std::path::PathBuf) -> String {
    let router = Router::new().route(
        "/live.iso",
        get(async move || std::fs::read(&path).unwrap()),
    );
    format!("{}/live.iso", serve(router).await)
}

#[tokio::test]
async fn other_files_than_live_images_are_deleted() {
    let (_directory, path) = source(&LiveImageOptions::small());
    let url = serve_file(path.clone()).await;
    let data = tempfile::tempdir().unwrap();
    let world = World::without_image(data, |settings| {
        settings.os_images = JsonVar(vec![os_image(&url)]);
    })
    .await;
    // A good one at the same place is taken at a later attempt.
    assert_eq!(world.get("/health").send().await.unwrap().status(), 503);
    let better = path.with_extension("new");
    testkit::iso::write(&better, &LiveImageOptions::default()).unwrap();
    std::fs::rename(better, path).unwrap();
    wait_for("the better image did not come", async || {
        own_file(world.data.path()).exists() && names(world.data.path()).len() == 1
    })
    .await;
    world.ready().await;
}

#[tokio::test]
async fn files_of_images_that_are_not_on_offer_are_removed() {
    let data = tempfile::tempdir().unwrap();
    let own = own_file(data.path());
    testkit::iso::write(&own, &LiveImageOptions::small()).unwrap();
    let own_name = own.file_name().unwrap().to_str().unwrap().to_owned();
    let kept = [
        own_name,
        "nmstatectl-418.94.202511191518-0-x86_64".to_owned(),
        "livecd.iso.md5".to_owned(),
        "notes-full-iso.txt".to_owned(),
    ];
    let stale = [
        "rhcos-full-iso-417.1-x86_64.iso",
        "rhcos-full-iso-417.1-x86_64.iso.part",
        "rhcos-minimal-iso-418.94.202511191518-0-x86_64.iso",
        "nmstatectl-417.1-x86_64",
    ];
    for name in kept[1..].iter().map(String::as_str).chain(stale) {
        std::fs::write(data.path().join(name), "x").unwrap();
    }
    let folder = data.path().join("rhcos-full-iso-folder.iso");
    std::fs::create_dir(&folder).unwrap();
    // Named by a URL, under a name of our own pattern.
    let named = "rhcos-full-iso-mine.iso";
    testkit::iso::write(&data.path().join(named), &LiveImageOptions::default()).unwrap();
    let url = format!("file://{}", data.path().join(named).display());
    let other = image_service::OsImage {
        openshift_version: "4.19".to_owned(),
        version: "419.1".to_owned(),
        ..os_image(&url)
    };
    let world = World::without_image(data, |settings| {
        settings.os_images = JsonVar(vec![os_image(""), other]);
    })
    .await;
    world.ready().await;
    let mut expected = kept.to_vec();
    expected.extend(["rhcos-full-iso-folder.iso".to_owned(), named.to_owned()]);
    expected.sort();
    wait_for("these files alone", async || {
        let mut found = names(world.data.path());
        found.sort();
        assert!(
            expected.iter().all(|name| found.contains(name)),
            "{found:?}"
        );
        found == expected
    })
    .await;
}

/// A server on a port of its own; its origin.
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    origin
}

#[tokio::test]
async fn downloads_carry_the_configured_headers_and_parameters() {
    let (_directory, path) = source(&LiveImageOptions::default());
    let bytes = Bytes::from(std::fs::read(&path).unwrap());
    let handler = async move |uri: axum::http::Uri, headers: HeaderMap| {
        let is_known = headers.get("x-token").is_some_and(|value| value == "t 1")
            && uri.query() == Some("a=1&key=k%26v");
        if is_known {
            Ok(bytes)
        } else {
            Err(StatusCode::FORBIDDEN)
        }
    };
    let origin = serve(Router::new().route("/live.iso", get(handler))).await;
    let url = format!("{origin}/live.iso?a=1");
    let pair = |name: &str, value: &str| JsonVar([(name.to_owned(), value.to_owned())].into());
    let world = World::without_image(tempfile::tempdir().unwrap(), |settings| {
        settings.os_images = JsonVar(vec![os_image(&url)]);
        settings.os_images_request_headers = pair("X-Token", "t 1");
        settings.os_images_request_query_params = pair("key", "k&v");
    });
    world.await.ready().await;
}

#[tokio::test]
async fn configured_headers_do_not_follow_a_redirect_to_another_host() {
    let (_directory, path) = source(&LiveImageOptions::default());
    let bytes = Bytes::from(std::fs::read(&path).unwrap());
    let store = async move |headers: HeaderMap| match headers.get("x-token") {
        None => Ok(bytes),
        Some(_) => Err(StatusCode::BAD_REQUEST),
    };
    let store = serve(Router::new().route("/live.iso", get(store))).await;
    let mirror = async move |headers: HeaderMap| match headers.get("x-token") {
        Some(_) => Ok(Redirect::temporary(&format!("{store}/live.iso"))),
        None => Err(StatusCode::FORBIDDEN),
    };
    let mirror = serve(Router::new().route("/live.iso", get(mirror))).await;
    let world = World::without_image(tempfile::tempdir().unwrap(), |settings| {
        settings.os_images = JsonVar(vec![os_image(&format!("{mirror}/live.iso"))]);
        settings.os_images_request_headers =
            JsonVar([("X-Token".to_owned(), "t 1".to_owned())].into());
    });
    world.await.ready().await;
}

#[tokio::test]
async fn an_image_that_fails_does_not_hold_back_the_others() {
    let (_directory, path) = source(&LiveImageOptions::default());
    let world = World::without_image(tempfile::tempdir().unwrap(), |settings| {
        let missing = OsImage {
            openshift_version: "4.19".to_owned(),
            version: "419.94.202511191518-0".to_owned(),
            ..os_image("file:///nowhere/live.iso")
        };
        let there = os_image(&format!("file://{}", path.display()));
        settings.os_images = JsonVar(vec![there, missing]);
    })
    .await;
    world.ready().await;
    world.bytes(&World::full_iso()).await;
    let missing = format!("/byid/{ID}/4.19/x86_64/full.iso");
    assert_eq!(world.get(&missing).send().await.unwrap().status(), 503);
    let ready = world.get("/ready").send().await.unwrap();
    let text = ready.text().await.unwrap();
    assert!(text.contains("419.94.202511191518-0 x86_64"), "{text}");
}

#[tokio::test]
async fn images_of_the_installer_api_are_on_offer() {
    let (_directory, path) = source(&LiveImageOptions::default());
    let entry = |platform: &str, file: &Path| {
        serde_json::json!({
            "openshift_version": platform, "cpu_architecture": "x86_64", "version": platform, "sha256": "",
            "url": format!("file://{}", file.display()),
        })
    };
    let world = World::new().await;
    let status = async |version: &str| {
        let request = world.get(&format!("/byid/{ID}/{version}/x86_64/full.iso"));
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((status("4.18").await, status("4.19").await), (200, 404));
    // The image of the settings stays, and a malformed entry harms no other one.
    let found = serde_json::json!([
        entry("4.18", Path::new("/nowhere")),
        entry("4 20", &path),
        entry("4.19", &path),
    ]);
    world.api.set(|answers| answers.os_images = Some(found));
    // Looked for at once, by the first request.
    assert_ne!(status("4.19").await, 404);
    wait_for("the image of the API", async || status("4.19").await == 200).await;
    assert_eq!(status("4.18").await, 200);
    // An API that fails ends no offer, nor does one that has lost the path.
    for response in [Some("no list".into()), None] {
        world.api.set(|answers| answers.os_images = response);
        let reads = world.api.os_image_reads();
        wait_for("another read", async || {
            world.api.os_image_reads() > reads + 1
        })
        .await;
        assert_eq!(status("4.19").await, 200);
    }
    world
        .api
        .set(|answers| answers.os_images = Some(serde_json::json!([])));
    wait_for("the end of the offer", async || status("4.19").await == 404).await;
}

#[tokio::test]
async fn files_stay_until_the_images_of_the_api_are_known() {
    let data = tempfile::tempdir().unwrap();
    let stored = data.path().join("rhcos-full-iso-419-x86_64.iso");
    testkit::iso::write(&own_file(data.path()), &LiveImageOptions::default()).unwrap();
    std::fs::write(&stored, "").unwrap();
    let world = World::without_image(data, |settings| {
        settings.assisted_service_host = "127.0.0.1:9".to_owned();
    })
    .await;
    world.ready().await;
    assert!(stored.exists());
}

/// A server of a body without end or length; it counts its bytes, and its requests that ended.
async fn serve_endless() -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    /// Counts the end of a body.
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (sent, ended) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (bytes, ends) = (Arc::clone(&sent), Arc::clone(&ended));
    let handler = async move || {
        let counted = Counted(Arc::clone(&ends));
        let bytes = Arc::clone(&bytes);
        let piece = Bytes::from(vec![7; 64 << 10]);
        Body::from_stream(futures_util::stream::repeat_with(move || {
            let _ = &counted;
            bytes.fetch_add(piece.len(), Ordering::SeqCst);
            Ok::<_, std::io::Error>(piece.clone())
        }))
    };
    let origin = serve(Router::new().route("/live.iso", get(handler))).await;
    (format!("{origin}/live.iso"), sent, ended)
}

/// A server of `body`; it counts its requests.
async fn serve_counted(
    body: impl Fn() -> Response + Clone + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>) {
    let requests = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&requests);
    let handler = async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        body()
    };
    let origin = serve(Router::new().route("/live.iso", get(handler))).await;
    (format!("{origin}/live.iso"), requests)
}

// limit: OS image
#[tokio::test]
async fn downloads_end_at_the_bound() {
    let (_directory, path) = source(&LiveImageOptions::default());
    let image = Bytes::from(std::fs::read(&path).unwrap());
    let length = image.len() as u64;
    let (url, requests) = serve_counted(move || image.clone().into_response()).await;
    let with_bound = |bound: u64, url: String| {
        World::without_image(tempfile::tempdir().unwrap(), move |settings| {
            settings.os_images = JsonVar(vec![os_image(&url)]);
            settings.max_os_image_bytes = bound;
        })
    };
    with_bound(length, url.clone()).await.ready().await;
    let refusing = with_bound(length - 1, url).await;
    wait_for("another attempt", async || {
        requests.load(Ordering::SeqCst) > 2
    })
    .await;
    assert_eq!(refusing.get("/ready").send().await.unwrap().status(), 503);
    assert!(!own_file(refusing.data.path()).exists());

    // Without a length, the received bytes are counted.
    let (url, sent, ended) = serve_endless().await;
    let bound: usize = 4 << 20;
    let world = with_bound(bound as u64, url).await;
    wait_for("the end of the download", async || {
        ended.load(Ordering::SeqCst) > 0 && names(world.data.path()).is_empty()
    })
    .await;
    // Buffers of the sockets have some bytes more.
    let sent = sent.load(Ordering::SeqCst);
    assert!((bound..bound + (64 << 20)).contains(&sent), "{sent}");
}

// limit: free space besides OS images
#[tokio::test]
async fn downloads_leave_free_space() {
    let (disk_size, reserve): (usize, u64) = (32 << 20, 2 << 20);
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path(), disk_size).await;
    let free = || {
        let found = rustix::fs::statvfs(disk.path()).unwrap();
        found.f_bavail * found.f_frsize
    };
    let with_image = async |url: &str| {
        World::without_image(tempfile::tempdir().unwrap(), |settings| {
            settings.os_images = JsonVar(vec![os_image(url)]);
            settings.data_dir = disk.path().to_owned();
            // A sixteenth of the disk.
            settings.os_image_reserve_bytes = u64::MAX;
        })
        .await
    };
    let large = move || {
        let piece = || Ok::<_, std::io::Error>(Bytes::from_static(&[7; 4096]));
        let pieces = futures_util::stream::repeat_with(piece);
        let length = [(header::CONTENT_LENGTH, disk_size)];
        (length, Body::from_stream(pieces)).into_response()
    };
    let (url, requests) = serve_counted(large).await;
    let world = with_image(&url).await;
    let mut least = free();
    wait_for("another attempt", async || {
        least = least.min(free());
        requests.load(Ordering::SeqCst) > 1
    })
    .await;
    drop(world);
    assert!(least > 30 << 20, "nothing of it is written: {least}");

    let (url, _, ended) = serve_endless().await;
    let _world = with_image(&url).await;
    wait_for("the end of the download", async || {
        least = least.min(free());
        ended.load(Ordering::SeqCst) > 0 && names(disk.path()).is_empty()
    })
    .await;
    assert!((reserve..16 << 20).contains(&least), "{least}");
}

#[tokio::test]
async fn a_failed_checksum_is_not_retried_at_once() {
    let (_directory, path) = source(&LiveImageOptions::default());
    let image = Bytes::from(std::fs::read(&path).unwrap());
    let (url, requests) = serve_counted(move || image.clone().into_response()).await;
    let started = Instant::now();
    let world = World::without_image(tempfile::tempdir().unwrap(), |settings| {
        let sha256 = "0".repeat(64);
        settings.os_images = JsonVar(vec![OsImage {
            sha256,
            ..os_image(&url)
        }]);
    })
    .await;
    wait_for("another attempt", async || {
        requests.load(Ordering::SeqCst) > 1
    })
    .await;
    assert!(started.elapsed() >= Duration::from_secs(5));
    assert_eq!(world.get("/ready").send().await.unwrap().status(), 503);
}
