//! The static files over HTTP: real files, links, FIFOs, and clients of each kind.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use http::{Method, StatusCode, header};
use proxy::{ForwardEntry, Forwards, Settings};
use reqwest::Response;
use rustix::fs::{CWD, Mode, mkfifoat};
use service::CancellationToken;
use service::forward::Upstream;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{eventually, soon};

/// 21 November 2026 06:14 UTC.
const MODIFIED: Duration = Duration::from_mins(29_920_694);

/// A proxy with static files.
pub(crate) struct FilesWorld {
    folder: TempDir,
    pub(crate) address: SocketAddr,
    status: SocketAddr,
    shutdown: CancellationToken,
}

impl Drop for FilesWorld {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl FilesWorld {
    pub(crate) async fn start() -> Self {
        // For the clients, which decode nothing and follow nothing.
        service::tls::install_provider();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        let settings = Settings {
            listen_address: Ipv4Addr::LOCALHOST.into(),
            forwards: Forwards(vec![ForwardEntry {
                port: 0,
                upstream: Upstream::parse("http://127.0.0.1:9").unwrap(),
            }]),
            proxy_status_port: 0,
            files_root: folder.path().join("root"),
            files_port: Some(0),
            tz: "UTC".to_owned(),
            ..Settings::default()
        };
        let shutdown = CancellationToken::new();
        let started = proxy::start(settings, shutdown.clone()).await.unwrap();
        let (address, status) = (started.files().unwrap(), started.status());
        tokio::spawn(started.wait());
        Self {
            folder,
            address,
            status,
            shutdown,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }

    /// Makes a file with its folders.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = File::create(&path).unwrap();
        file.write_all(content.as_ref()).unwrap();
        set_modified(&file, MODIFIED);
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        let mut request = client.request(method, format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        soon(request.send()).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.ask(Method::GET, path, &[]).await
    }

    /// Status of a request whose path is sent as it is.
    async fn raw_status(&self, path: &str) -> u16 {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains("secret"), "{path}: {answer}");
        let status = answer.split(' ').nth(1).unwrap();
        status.parse().unwrap()
    }
}

fn set_modified(file: &File, since_1970: Duration) {
    file.set_modified(SystemTime::UNIX_EPOCH + since_1970)
        .unwrap();
}

fn text(response: &Response, name: header::HeaderName) -> &str {
    let value = response.headers().get(name);
    value.map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_listing_is_sorted_escaped_and_complete() {
    let world = FilesWorld::start().await;
    for (name, size) in [
        ("pub/downloads/b.iso", 1_000_000),
        ("pub/downloads/a&b<i>.txt", 9999),
        ("pub/downloads/Zoë \"x\".tar", 10_485_759),
        ("pub/downloads/javascript:alert(1)", 0),
        ("pub/downloads/.hidden", 1),
        ("pub/downloads/b.iso.sha256", 64),
    ] {
        world.write(name, "");
        let file = File::options().write(true).open(world.path(name)).unwrap();
        file.set_len(size).unwrap();
        set_modified(&file, MODIFIED);
    }
    let long = format!("pub/downloads/{}.tar", "long".repeat(30));
    world.write(&long, "x");
    for folder in ["out", "Beta", "alpha"] {
        fs::create_dir(world.path(&format!("pub/downloads/{folder}"))).unwrap();
        let folder = File::open(world.path(&format!("pub/downloads/{folder}"))).unwrap();
        set_modified(&folder, MODIFIED);
    }
    for (target, link) in [
        ("b.iso", "pub/downloads/inside"),
        ("../../../secret", "pub/downloads/outside"),
        ("missing", "pub/downloads/dangling"),
    ] {
        symlink(target, world.path(link)).unwrap();
    }
    fs::write(world.path("../secret"), "a secret").unwrap();
    mkfifoat(CWD, world.path("pub/downloads/fifo"), Mode::RUSR).unwrap();
    let listing = world.get("/pub/downloads/").await;
    assert_eq!(listing.status(), StatusCode::OK);
    assert_eq!(
        text(&listing, header::CONTENT_TYPE),
        "text/html; charset=utf-8"
    );
    assert!(
        text(&listing, header::CONTENT_SECURITY_POLICY)
            .starts_with("default-src 'none'; style-src 'sha256-")
    );
    let page = listing.text().await.unwrap();
    // The style is not the subject.
    let (start, end) = page.split_once("<style>").unwrap();
    let (_, end) = end.split_once("</style>").unwrap();
    insta::assert_snapshot!("listing", format!("{start}{end}"));

    let order = async |query: &str| -> Vec<String> {
        let page = world
            .get(&format!("/pub/downloads/{query}"))
            .await
            .text()
            .await
            .unwrap();
        let rows = page
            .lines()
            .filter_map(|line| line.strip_prefix("<tr><td><a href=\""));
        rows.map(|row| row.split('"').next().unwrap().to_owned())
            .collect()
    };
    let by_size = order("?sort=size&order=desc").await;
    assert_eq!(by_size[..3], ["../", "out/", "alpha/"]);
    assert_eq!(by_size[4], "Zo%C3%AB%20%22x%22.tar");
    assert_eq!(order("?order=desc").await[1], "out/");
    assert_eq!(order("?sort=time").await.len(), order("").await.len());
    let head = world.ask(Method::HEAD, "/pub/downloads/", &[]).await;
    assert_eq!(head.status(), StatusCode::OK);
    let root = world.get("/").await.text().await.unwrap();
    assert!(!root.contains("href=\"../"), "{root}");
}

#[tokio::test]
async fn a_listing_of_archives_has_their_commands() {
    let world = FilesWorld::start().await;
    world.write("pub/archives/mirror_seq1_000000.tar", "x");
    world.write("pub/archives/mirror_seq1_000001.tar", "x");
    world.write("pub/$(a);'b'/mirror_seq2_000000.tar", "x");
    world.write("pub/other/a.tar", "x");
    fs::create_dir_all(world.path("pub/dangling")).unwrap();
    symlink("x", world.path("pub/dangling/mirror_seq1_000000.tar")).unwrap();
    let page = async |path: &str, host: &str| {
        let page = world.ask(Method::GET, path, &[("host", host)]).await;
        page.text().await.unwrap()
    };
    let all = page("/pub/archives/", "localhost:8443").await;
    let (_, end) = all.split_once("</tbody>").unwrap();
    insta::assert_snapshot!(end, @r"
    </table>
    <p>Archives of an image set are verified and published from here:</p>
    <pre>atoll mirror verify http://localhost:8443/pub/archives/
    atoll mirror --from http://localhost:8443/pub/archives/ docker://REGISTRY:PORT/NAMESPACE</pre>
    <p>0 folders, 2 files. Times are in UTC.</p>
    </body></html>
    ");
    // A second host has a page of its own, also from memory.
    let other = page("/pub/archives/", "127.0.0.1").await;
    assert!(
        other.contains("verify http://127.0.0.1/pub/archives/\n"),
        "{other}"
    );
    let quoted = page("/pub/%24%28a%29%3B%27b%27/", "localhost").await;
    let url = "http://localhost/pub/%24%28a%29%3B%27b%27/";
    assert!(quoted.contains(&format!("verify {url}\n")), "{quoted}");
    for (path, host) in [
        ("/pub/archives/", "localhost;reboot"),
        ("/pub/archives/", "<b>"),
        ("/pub/other/", "localhost"),
        ("/pub/dangling/", "localhost"),
    ] {
        let page = page(path, host).await;
        assert!(
            !page.contains("<pre>") && !page.contains("<b>"),
            "{path} {host}: {page}"
        );
    }
    world.write("pub/archives/mirror_seq2_000000.tar", "x");
    let several = page("/pub/archives/", "localhost").await;
    let url = "http://localhost/pub/archives/mirror_seq2_000000.tar";
    assert!(
        several.contains(&format!("--from {url} docker://")),
        "{several}"
    );
}

#[tokio::test]
async fn an_index_replaces_the_listing() {
    let world = FilesWorld::start().await;
    world.write("pub/downloads/mirror-index.html", "<p>ours");
    world.write("pub/downloads/index.html", "not this one");
    let page = world.get("/pub/downloads/").await;
    assert_eq!(
        text(&page, header::CONTENT_TYPE),
        "text/html; charset=utf-8"
    );
    assert!(page.headers().contains_key(header::ETAG));
    assert_eq!(page.text().await.unwrap(), "<p>ours");
}

#[tokio::test]
async fn missing_downloads_are_explained() {
    let world = FilesWorld::start().await;
    for path in ["/pub/downloads", "/pub/downloads/"] {
        let page = world.get(path).await;
        assert_eq!(page.status(), StatusCode::NOT_FOUND);
        let page = page.text().await.unwrap();
        assert!(
            page.contains("FILES_ROOT") && page.contains("pub/downloads"),
            "{page}"
        );
    }
    // The root may be mounted or replaced at any time.
    fs::remove_dir(world.path("")).unwrap();
    let text = async || world.get("/").await.text().await.unwrap();
    eventually(async || text().await.contains("does not exist")).await;
    fs::create_dir(world.path("")).unwrap();
    eventually(async || text().await.contains("Index of")).await;
}

#[tokio::test]
async fn folders_get_their_slash_on_the_same_host() {
    let world = FilesWorld::start().await;
    world.write("pub/downloads/evil.test/file", "x");
    world.write("evil.test/file", "x");
    for (path, location) in [
        ("/pub/downloads", "/pub/downloads/"),
        (
            "/pub/downloads?sort=size&x=%2F",
            "/pub/downloads/?sort=size&x=%2F",
        ),
        ("//evil.test", "/evil.test/"),
        ("/pub//downloads//evil.test", "/pub/downloads/evil.test/"),
        ("/pub/../evil.test", "/evil.test/"),
    ] {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 301 "), "{answer}");
        assert!(
            answer.contains(&format!("\r\nlocation: {location}\r\n")),
            "{path}: {answer}"
        );
    }
}

#[tokio::test]
async fn ranges_and_preconditions_follow_the_rfc() {
    let world = FilesWorld::start().await;
    world.write("file.yaml", "0123456789");
    let whole = world.get("/file.yaml").await;
    let tag = text(&whole, header::ETAG).to_owned();
    assert_eq!(tag, "\"6b0136a8.0-a\"");
    assert_eq!(
        text(&whole, header::LAST_MODIFIED),
        "Sat, 21 Nov 2026 06:14:00 GMT"
    );
    assert_eq!(text(&whole, header::CONTENT_TYPE), "application/yaml");
    assert_eq!(text(&whole, header::ACCEPT_RANGES), "bytes");
    assert_eq!(text(&whole, header::X_CONTENT_TYPE_OPTIONS), "nosniff");
    let date = text(&whole, header::LAST_MODIFIED).to_owned();
    let later = "Sat, 21 Nov 2026 06:14:01 GMT";
    for (headers, status, body) in [
        (&[("range", "bytes=2-3")][..], 206, "23"),
        (&[("range", "bytes=-2")], 206, "89"),
        (&[("range", "bytes=8-99")], 206, "89"),
        (&[("range", "lines=1-2")], 200, "0123456789"),
        (&[("range", "bytes=0-0"), ("if-range", &tag)], 206, "0"),
        (&[("range", "bytes=0-0"), ("if-range", &date)], 206, "0"),
        (
            &[("range", "bytes=0-0"), ("if-range", "\"x\"")],
            200,
            "0123456789",
        ),
        (&[("if-none-match", &tag)], 304, ""),
        (&[("if-none-match", "\"x\"")], 200, "0123456789"),
        (&[("if-match", "\"x\"")], 412, ""),
        (&[("if-match", &tag)], 200, "0123456789"),
        (&[("if-modified-since", &date)], 304, ""),
        (&[("if-modified-since", later)], 304, ""),
    ] {
        let response = world.ask(Method::GET, "/file.yaml", headers).await;
        assert_eq!(response.status().as_u16(), status, "{headers:?}");
        assert_eq!(response.text().await.unwrap(), body, "{headers:?}");
    }
    for range in ["bytes=10-", "bytes=x"] {
        let refused = world
            .ask(Method::GET, "/file.yaml", &[("range", range)])
            .await;
        assert_eq!(refused.status(), StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(text(&refused, header::CONTENT_RANGE), "bytes */10");
    }
    let parts = world
        .ask(Method::GET, "/file.yaml", &[("range", "bytes=0-1,5-5")])
        .await;
    assert_eq!(parts.status(), StatusCode::PARTIAL_CONTENT);
    assert!(text(&parts, header::CONTENT_TYPE).starts_with("multipart/byteranges; boundary="));
    let parts = parts.text().await.unwrap();
    assert!(
        parts
            .contains("Content-Range: bytes 5-5/10\r\nContent-Type: application/yaml\r\n\r\n5\r\n"),
        "{parts}"
    );
    let head = world.ask(Method::HEAD, "/file.yaml", &[]).await;
    assert_eq!(text(&head, header::CONTENT_LENGTH), "10");
    world.write("empty", "");
    let empty = world.get("/empty").await;
    assert_eq!(
        (empty.status(), text(&empty, header::CONTENT_LENGTH)),
        (StatusCode::OK, "0")
    );
}

#[tokio::test]
async fn long_files_are_whole_on_each_way() {
    let world = FilesWorld::start().await;
    // Not a multiple of any chunk; beyond the bound of sendfile.
    let content: Vec<u8> = (0..3_000_001_u32)
        .flat_map(u32::to_le_bytes)
        .take(3_000_001)
        .collect();
    world.write("disk.img", &content);
    let body = world.get("/disk.img").await.bytes().await.unwrap();
    assert!(body == content);
    let range = [("range", "bytes=70000-2999999")];
    let body = world
        .ask(Method::GET, "/disk.img", &range)
        .await
        .bytes()
        .await
        .unwrap();
    assert!(body == content[70_000..3_000_000]);
    // HTTP/2 encodes the bytes.
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .build()
        .unwrap();
    let url = format!("http://{}/disk.img", world.address);
    let body = soon(client.get(url).send())
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert!(body == content);
}

#[tokio::test]
async fn precompressed_files_are_sent_to_clients_that_accept_them() {
    let world = FilesWorld::start().await;
    world.write("a.json", "plain");
    world.write("a.json.gz", "gzipped");
    world.write("a.json.br", "brotli");
    world.write("b.json", "plain");
    world.write("b.json.gz", "stale");
    let stale = File::options()
        .write(true)
        .open(world.path("b.json.gz"))
        .unwrap();
    set_modified(&stale, MODIFIED.saturating_sub(Duration::from_secs(1)));
    for (path, accepted, coding, body) in [
        ("/a.json", "gzip, br", "br", "brotli"),
        ("/a.json", "gzip", "gzip", "gzipped"),
        ("/a.json", "zstd", "", "plain"),
        ("/a.json", "identity", "", "plain"),
        ("/b.json", "gzip", "", "plain"),
        ("/a.json.gz", "gzip", "", "gzipped"),
    ] {
        let response = world
            .ask(Method::GET, path, &[("accept-encoding", accepted)])
            .await;
        assert_eq!(
            text(&response, header::CONTENT_ENCODING),
            coding,
            "{path} {accepted}"
        );
        let varies = text(&response, header::VARY) == "accept-encoding";
        assert_eq!(varies, path != "/a.json.gz");
        assert_eq!(response.text().await.unwrap(), body, "{path} {accepted}");
    }
    let tags = [
        world
            .ask(Method::HEAD, "/a.json", &[("accept-encoding", "gzip")])
            .await,
        world.get("/a.json").await,
    ];
    let tags = tags.each_ref().map(|response| text(response, header::ETAG));
    assert_ne!(tags[0], tags[1]);
}

#[tokio::test]
async fn nothing_outside_is_served_and_nothing_blocks() {
    let world = FilesWorld::start().await;
    fs::write(world.path("../secret"), "a secret").unwrap();
    fs::create_dir(world.path("../root-beside")).unwrap();
    fs::write(world.path("../root-beside/secret"), "a secret").unwrap();
    world.write("a/file", "x");
    world.write("unreadable", "secret");
    fs::set_permissions(world.path("unreadable"), fs::Permissions::from_mode(0o000)).unwrap();
    for (target, link) in [
        ("../secret", "out"),
        ("/etc/hostname", "absolute"),
        ("..", "above"),
        ("/proc/self/root", "magic"),
        ("a/file", "inside"),
        ("missing", "dangling"),
    ] {
        symlink(target, world.path(link)).unwrap();
    }
    mkfifoat(CWD, world.path("fifo"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(world.path("socket")).unwrap();
    for (path, status) in [
        ("/inside", 200),
        ("/a/%2e%2e/a/file", 200),
        ("/out", 403),
        ("/absolute", 403),
        ("/above/secret", 403),
        ("/magic/etc/passwd", 403),
        ("/dangling", 404),
        ("/fifo", 403),
        ("/socket", 403),
        ("/fifo.sha256", 403),
        ("/out.sha256", 403),
        ("/a/file/", 404),
        ("/a/file/x", 404),
        ("/../secret", 400),
        ("/%2e%2e/secret", 400),
        ("/a/..%2f..%2fsecret", 400),
        ("/a%00b", 400),
        ("/%zz", 400),
        ("/../root-beside/secret", 400),
    ] {
        assert_eq!(world.raw_status(path).await, status, "{path}");
    }
    // Root reads every file.
    if !rustix::process::geteuid().is_root() {
        assert_eq!(world.raw_status("/unreadable").await, 403);
    }
}

#[tokio::test]
async fn files_are_only_read() {
    let world = FilesWorld::start().await;
    world.write("file", "x");
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        let response = world.ask(method, "/file", &[]).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(text(&response, header::ALLOW), "GET, HEAD, OPTIONS");
    }
    let options = world.ask(Method::OPTIONS, "/file", &[]).await;
    assert_eq!(options.status(), StatusCode::NO_CONTENT);
    assert_eq!(text(&options, header::ALLOW), "GET, HEAD, OPTIONS");
}

#[tokio::test]
async fn checksums_are_those_of_sha256sum() {
    let world = FilesWorld::start().await;
    world.write("a b.iso", "abc");
    world.write("own.iso", "abc");
    world.write("own.iso.sha256", "kept");
    let line = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a b.iso\n";
    let head = world.ask(Method::HEAD, "/a%20b.iso.sha256", &[]).await;
    assert_eq!(text(&head, header::CONTENT_LENGTH), line.len().to_string());
    let sum = world.get("/a%20b.iso.sha256").await;
    assert_eq!(
        text(&sum, header::CONTENT_TYPE),
        "text/plain; charset=utf-8"
    );
    let tag = text(&sum, header::ETAG).to_owned();
    assert_eq!(sum.text().await.unwrap(), line);
    let known = world
        .ask(Method::GET, "/a%20b.iso.sha256", &[("if-none-match", &tag)])
        .await;
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(
        world.get("/own.iso.sha256").await.text().await.unwrap(),
        "kept"
    );
    for path in [
        "/missing.sha256",
        "/.sha256",
        "/a%20b.iso.sha256/",
        "/a%20b.iso.sha256.sha256",
    ] {
        assert_eq!(
            world.get(path).await.status(),
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}

#[tokio::test]
async fn requests_are_counted() {
    let world = FilesWorld::start().await;
    assert_eq!(world.get("/missing").await.status(), StatusCode::NOT_FOUND);
    let url = format!("http://{}/metrics", world.status);
    let metrics = soon(reqwest::get(url)).await.unwrap().text().await.unwrap();
    let mut lines = metrics.lines();
    let series = "atoll_http_request_duration_seconds_count{";
    let is_counted = |line: &str| {
        line.starts_with(series)
            && line.contains("server=\"files\"")
            && line.contains("code=\"404\"")
    };
    assert!(lines.any(is_counted), "{metrics}");
}
