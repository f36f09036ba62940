//! Hostile clients and dying backends, through HTTPS.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use http::StatusCode;
use service::forward::Upstream;
use service::server::HttpSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::raw;
use crate::site_world::{Made, SiteWorld, client_config, connect, parsed};
use crate::world::{eventually, soon};

/// A site whose API server is raw TCP.
struct RawSite {
    site: SiteWorld,
    api: TcpListener,
}

impl RawSite {
    async fn start() -> Self {
        let api = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", api.local_addr().unwrap());
        let origin = Upstream::parse(&origin).unwrap();
        let site = SiteWorld::start_with(|settings| settings.site.api_url = origin).await;
        Self { site, api }
    }

    /// The next connection with a request, and its head; those that end before are passed over.
    async fn accept(&self) -> (TcpStream, String) {
        loop {
            let (mut stream, _) = soon(self.api.accept()).await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match soon(stream.read_u8()).await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            if head.ends_with("\r\n\r\n") && !head.starts_with("GET /ready ") {
                return (stream, head);
            }
        }
    }

    /// The answer of the proxy to raw bytes, and all that the API server got for them.
    async fn sent(&self, request: &[u8]) -> (String, String) {
        let site = &self.site;
        let client = async {
            let mut stream = site.connect(&site.wildcard, "api.site.test").await.unwrap();
            stream.write_all(request).await.unwrap();
            let mut answer = Vec::new();
            soon(stream.read_to_end(&mut answer)).await.ok();
            String::from_utf8_lossy(&answer).into_owned()
        };
        let backend = async {
            let mut seen = Vec::new();
            loop {
                let (mut stream, head) = self.accept().await;
                seen.extend_from_slice(head.as_bytes());
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(answer).await.unwrap();
                soon(stream.read_to_end(&mut seen)).await.ok();
                if head.starts_with("GET /last ") {
                    return String::from_utf8_lossy(&seen).into_owned();
                }
            }
        };
        // All that came before it is seen, too.
        let requests = async {
            let answer = client.await;
            let (status, ..) = site.asked("api.site.test", "api.site.test", "").await;
            assert_eq!(status, 200);
            let mut last = site.connect(&site.wildcard, "api.site.test").await.unwrap();
            let request = b"GET /last HTTP/1.1\r\nHost: api.site.test\r\nConnection: close\r\n\r\n";
            last.write_all(request).await.unwrap();
            last.read_to_end(&mut Vec::new()).await.ok();
            answer
        };
        tokio::join!(requests, backend)
    }
}

/// `headers`, and a body with a request in it, which is one if they mean another length.
fn smuggling(headers: &str) -> String {
    let inner = "GET /smuggled HTTP/1.1\r\nHost: api.site.test\r\n\r\n";
    format!(
        "POST /x HTTP/1.1\r\nHost: api.site.test\r\nConnection: close\r\n{headers}\r\n0\r\n\r\n{inner}"
    )
}

#[tokio::test]
async fn requests_of_two_meanings_are_refused() {
    let world = RawSite::start().await;
    for headers in [
        "Content-Length: 5\r\nContent-Length: 55\r\n",
        "Content-Length: 5, 55\r\n",
        "Content-Length: 5\r\nContent-Length:\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length : 5\r\n",
        "Content-Length\t: 5\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "X: a\r\n Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "X: a\0b\r\n",
        "X: a\rTransfer-Encoding: chunked\r\n",
        "Host: web.site.test\r\n",
        "Host: api.site.test\r\n",
        ": x\r\n",
        "X\r\n",
    ] {
        let (answer, seen) = world.sent(smuggling(headers).as_bytes()).await;
        assert!(
            answer.starts_with("HTTP/1.1 400 "),
            "{headers:?}: {answer:?}"
        );
        assert!(
            !seen.contains("/x ") && !seen.contains("smuggled"),
            "{headers:?}: {seen}"
        );
    }
}

#[tokio::test]
async fn a_request_with_both_lengths_has_one_meaning() {
    let world = RawSite::start().await;
    for headers in [
        // By its length the inner request is a part of the body, by its chunks the next request; and the reverse.
        "Content-Length: 55\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 55\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "TRANSFER-ENCODING: CHUNKED\r\nContent-Length: 5\r\n",
    ] {
        let (answer, seen) = world.sent(smuggling(headers).as_bytes()).await;
        // The connection ends with the answer, so that nothing behind the body is a request.
        assert_eq!(
            answer.matches("HTTP/1.1 ").count(),
            1,
            "{headers:?}: {answer}"
        );
        let seen = seen.to_lowercase();
        assert!(!seen.contains("smuggled"), "{headers:?}: {seen}");
        if seen.contains("post /x ") {
            let head = seen.split("post /x ").nth(1).unwrap();
            let head = head.split("\r\n\r\n").next().unwrap();
            assert!(!head.contains("content-length"), "{headers:?}: {seen}");
        }
    }
}

#[tokio::test]
async fn broken_chunks_end_the_request() {
    let world = RawSite::start().await;
    for body in [
        "5;a=b\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "-1\r\nhello\r\n0\r\n\r\n",
        "5\r\nhelloGET /smuggled HTTP/1.1\r\nHost: api.site.test\r\n\r\n",
    ] {
        let request = format!(
            "POST /chunks HTTP/1.1\r\nHost: api.site.test\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        );
        let (answer, seen) = world.sent(request.as_bytes()).await;
        assert!(!answer.starts_with("HTTP/1.1 200"), "{body:?}: {answer:?}");
        assert!(!seen.contains("GET /smuggled"), "{body:?}: {seen}");
    }
}

// limit: header lines
// limit: header lines of a forwarded request
// limit: request head
#[tokio::test]
async fn heads_are_bounded_in_lines_and_bytes() {
    let site = SiteWorld::start().await;
    let status = async |lines: usize, bytes: usize| {
        let lines = (0..lines).map(|line| format!("X-{line}: {}\r\n", "x".repeat(bytes)));
        let rest: String = lines.collect();
        let mut stream = site.connect(&site.wildcard, "api.site.test").await.unwrap();
        let request =
            format!("GET /a HTTP/1.1\r\nHost: api.site.test\r\nConnection: close\r\n{rest}\r\n");
        // The server may close while this is on its way.
        stream.write_all(request.as_bytes()).await.ok();
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await.ok();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        match answer.as_str() {
            "" => None,
            answer => Some(parsed(answer).0.as_u16()),
        }
    };
    // With Host and Connection. The upstream reads one hundred lines, with those that are added.
    assert_eq!(status(93, 1).await, Some(200));
    assert_eq!(status(94, 1).await, Some(431));
    assert_eq!(status(99, 1).await, Some(431));
    assert_eq!(status(5000, 1).await, Some(431));
    assert_eq!(status(1, 60 * 1024).await, Some(200));
    let above = status(1, 66 * 1024).await;
    assert!(matches!(above, None | Some(431)), "{above:?}");
    let above = status(1, 10 << 20).await;
    assert!(matches!(above, None | Some(431)), "{above:?}");
}

#[tokio::test]
async fn heads_of_http_2_are_bounded() {
    let site = SiteWorld::start().await;
    let client = http_client(&site, true);
    let status = async |bytes: usize| {
        let url = format!("https://api.site.test:{}/a", site.at.https.port());
        let request = client.get(url).header("x-long", "x".repeat(bytes));
        request.send().await.ok().map(|it| it.status().as_u16())
    };
    assert_eq!(status(15_000).await, Some(200));
    assert!(matches!(status(17_000).await, None | Some(431)));
    assert_eq!(status(1).await, Some(200));
}

/// The upstream refuses more than one hundred lines, and would get further ones with a request of HTTP/2.
#[tokio::test]
async fn lines_of_http_2_are_bounded_as_those_of_http_1() {
    let site = SiteWorld::start().await;
    let client = http_client(&site, true);
    let status = async |lines: usize| {
        let url = format!("https://api.site.test:{}/a", site.at.https.port());
        let chunks = futures_util::stream::iter([Ok::<_, std::io::Error>("of unknown length")]);
        let mut request = client.post(url).body(reqwest::Body::wrap_stream(chunks));
        for line in 0..lines {
            request = request.header(format!("x-{line}"), "y");
        }
        request.send().await.ok().map(|it| it.status().as_u16())
    };
    // The client adds one: `Accept`.
    assert_eq!(status(93).await, Some(200));
    assert_eq!(status(94).await, Some(431));
    assert_eq!(status(300).await, Some(431));
}

/// A client of the site's API that trusts its certificate.
fn http_client(site: &SiteWorld, is_http2: bool) -> reqwest::Client {
    let pem = site
        .wildcard
        .bundle
        .split_inclusive("-----END CERTIFICATE-----");
    let pem = pem.into_iter().next().unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(pem.as_bytes()).unwrap()])
        .resolve("api.site.test", site.at.https);
    let client = if is_http2 {
        client
    } else {
        client.http1_only()
    };
    client.build().unwrap()
}

/// Sends `bytes` one by one, until the server closes.
async fn drip(mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin, bytes: &[u8]) {
    let (mut reader, mut writer) = tokio::io::split(&mut stream);
    let drip = async {
        for byte in bytes {
            if writer.write_all(&[*byte]).await.is_err() {
                break;
            }
            writer.flush().await.ok();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = Vec::new();
    tokio::select! {
        _ = reader.read_to_end(&mut answer) => {}
        () = drip => {}
    }
}

// limit: time for a request head
#[tokio::test]
async fn slow_clients_of_tls_are_cut_off_and_others_are_served() {
    let site = SiteWorld::start_with(|settings| {
        settings.http.header_timeout = Duration::from_secs(1);
    })
    .await;
    let mut slow = JoinSet::new();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: api.site.test\r\nX: {}",
        "x".repeat(10_000)
    );
    let config = client_config(&site.wildcard, rustls::ALL_VERSIONS);
    let mut client =
        rustls::ClientConnection::new(config, "api.site.test".try_into().unwrap()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    for _ in 0..20 {
        // Before a byte, within the handshake, after it, within the head.
        let silent = TcpStream::connect(site.at.https).await.unwrap();
        slow.spawn(async { drip(silent, b"").await });
        let stream = TcpStream::connect(site.at.https).await.unwrap();
        let hello = hello.clone();
        slow.spawn(async move { drip(stream, &hello).await });
        let opened = site.connect(&site.wildcard, "api.site.test").await.unwrap();
        slow.spawn(async { drip(opened, b"").await });
        let begun = site.connect(&site.wildcard, "api.site.test").await.unwrap();
        let head = head.clone();
        slow.spawn(async move { drip(begun, head.as_bytes()).await });
    }
    while !slow.is_empty() {
        let (status, ..) = site.asked("api.site.test", "api.site.test", "").await;
        assert_eq!(status, 200);
        tokio::time::sleep(Duration::from_millis(50)).await;
        while slow.try_join_next().is_some() {}
    }
}

/// A client with a first message of about `bytes`: names of unknown protocols fill it.
fn verbose_client(trusted: &Made, bytes: usize) -> Arc<rustls::ClientConfig> {
    let mut config = Arc::unwrap_or_clone(client_config(trusted, rustls::ALL_VERSIONS));
    config.alpn_protocols = vec![vec![b'x'; 127]; bytes / 128];
    config.alpn_protocols.push(b"http/1.1".to_vec());
    Arc::new(config)
}

// limit: first message of TLS
#[tokio::test]
async fn longer_first_messages_of_tls_are_refused_by_an_alert() {
    let site = SiteWorld::start().await;
    // The bytes of the second one would pass.
    for (sni, trusted) in [
        ("api.site.test", &site.wildcard),
        ("registry.site.test", &site.registry),
    ] {
        for (bytes, is_taken) in [(15 << 10, true), (20 << 10, false)] {
            let connector = TlsConnector::from(verbose_client(trusted, bytes));
            let stream = TcpStream::connect(site.at.https).await.unwrap();
            let connected = soon(connector.connect(sni.try_into().unwrap(), stream)).await;
            let error = connected.err().map(|error| error.to_string());
            let is_alert = error.as_ref().is_some_and(|it| it.contains("DecodeError"));
            assert!(
                error.is_none() == is_taken && is_alert != is_taken,
                "{sni} {bytes}: {error:?}"
            );
        }
    }
}

// limit: time for a TLS handshake
/// Each sends all of its first message but the last byte, and is silent from then on.
#[tokio::test]
async fn half_open_handshakes_end_and_others_are_served() {
    let site = SiteWorld::start().await;
    let config = verbose_client(&site.wildcard, 15 << 10);
    let mut client =
        rustls::ClientConnection::new(config, "api.site.test".try_into().unwrap()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let mut half_open = JoinSet::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(site.at.https).await.unwrap();
        stream.write_all(&hello[..hello.len() - 1]).await.unwrap();
        half_open.spawn(async move {
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.ok();
            answer
        });
    }
    let (status, ..) = site.asked("api.site.test", "api.site.test", "").await;
    assert_eq!((status.as_u16(), half_open.len()), (200, 300));
    while let Some(answer) = half_open.join_next().await {
        assert!(answer.unwrap().is_empty());
    }
    // The clocks of the handshake and of the test are the same.
    let (status, ..) = site.asked("api.site.test", "api.site.test", "").await;
    assert_eq!(status, 200);
}

/// New keys are asked for without end, and nothing else: rustls ends that after 32, and each costs an answer.
#[tokio::test]
async fn floods_of_new_keys_end_the_connection() {
    let site = SiteWorld::start().await;
    let versions = &[&rustls::version::TLS13];
    let connected = connect(site.at.https, &site.wildcard, "api.site.test", versions);
    let mut stream = connected.await.unwrap();
    let mut asked = 0;
    while asked < 100_000 {
        let (tcp, tls) = stream.get_mut();
        tls.refresh_traffic_keys().unwrap();
        let mut record = Vec::new();
        tls.write_tls(&mut record).unwrap();
        if tcp.write_all(&record).await.is_err() {
            break;
        }
        asked += 1;
    }
    assert!(asked < 100_000, "{asked} were taken");
    let (status, ..) = site.asked("api.site.test", "api.site.test", "").await;
    assert_eq!(status, 200);
}

/// TLS 1.2 has renegotiation, which is refused: the handshakes of one connection cost one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renegotiation_is_refused() {
    // The answer goes out with the next bytes; a client that only waits for it is cut off.
    let site = SiteWorld::start_with(|settings| {
        settings.http.header_timeout = Duration::from_secs(2);
    })
    .await;
    let address = site.at.https.to_string();
    let output = tokio::task::spawn_blocking(move || {
        let mut client = std::process::Command::new("openssl")
            .args([
                "s_client",
                "-tls1_2",
                "-legacy_renegotiation",
                "-connect",
                &address,
            ])
            .args(["-servername", "api.site.test"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut commands = client.stdin.take().unwrap();
        // `R` on a line of its own asks for a renegotiation.
        for _ in 0..20 {
            if std::io::Write::write_all(&mut commands, b"R\n").is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(commands);
        client.wait_with_output().unwrap()
    });
    let output = output.await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // The client gets an alert, or its connection is closed.
    let after = text.split_once("RENEGOTIATING").map(|(_, after)| after);
    assert!(
        after.is_some_and(|after| after.contains("error:")),
        "{text}"
    );
    let (status, ..) = site.asked("api.site.test", "api.site.test", "").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn endless_first_messages_of_tls_are_cut_off() {
    let site = SiteWorld::start().await;
    // A ClientHello that says it has 16 MiB, in records of 16 KiB.
    let mut record = b"\x16\x03\x01\x40\x00".to_vec();
    record.extend(b"\x01\xff\xff\xff\x03\x03");
    record.resize(5 + 0x4000, 0);
    let mut stream = TcpStream::connect(site.at.https).await.unwrap();
    let mut sent = 0;
    while sent < 64 << 20 && stream.write_all(&record).await.is_ok() {
        sent += record.len();
        record[5..].fill(0);
    }
    // Bytes in the buffers of the kernel count as sent.
    assert!(sent < 32 << 20, "{sent} bytes were taken");
    let old = b"\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x01";
    let mut stream = TcpStream::connect(site.at.https).await.unwrap();
    let mut hello = old.to_vec();
    hello.extend([7; 32]);
    hello.extend(b"\x00\x00\x02\x00\x2f\x01\x00");
    stream.write_all(&hello).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.ok();
    assert_eq!(
        answer.first(),
        Some(&21),
        "TLS 1.0 gets an alert: {answer:?}"
    );
    let (status, ..) = site.asked("api.site.test", "api.site.test", "").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_response_that_breaks_off_is_no_whole_one() {
    for (head, is_reset) in [
        ("Content-Length: 100\r\n", false),
        ("Content-Length: 100\r\n", true),
        ("Transfer-Encoding: chunked\r\n", false),
        ("Transfer-Encoding: chunked\r\n", true),
        // Without a length, only a reset differs from the end.
        ("Connection: close\r\n", true),
    ] {
        let world = RawSite::start().await;
        let RawSite { site, api } = world;
        let backend = tokio::spawn(async move {
            loop {
                let (mut stream, _) = raw::accept(&api).await;
                let begin = format!("HTTP/1.1 200 OK\r\n{head}\r\n5\r\nbegin\r\n");
                stream.write_all(begin.as_bytes()).await.unwrap();
                // Its bytes are at the proxy before the reset drops those that are not.
                tokio::time::sleep(Duration::from_millis(100)).await;
                if is_reset {
                    stream.set_zero_linger().unwrap();
                }
            }
        });
        for is_http2 in [true, false] {
            let client = http_client(&site, is_http2);
            let url = format!("https://api.site.test:{}/iso", site.at.https.port());
            let response = client.get(url).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            let body = soon(response.bytes()).await;
            assert!(body.is_err(), "{head} {is_http2}: {body:?}");
        }
        let mut stream = site.connect(&site.wildcard, "api.site.test").await.unwrap();
        stream
            .write_all(b"GET /iso HTTP/1.1\r\nHost: api.site.test\r\n\r\n")
            .await
            .unwrap();
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await.ok();
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.contains("begin") && !answer.ends_with("0\r\n\r\n"),
            "{answer}"
        );
        backend.abort();
    }
}

#[tokio::test]
async fn a_backend_that_dies_before_its_response_is_named() {
    let world = RawSite::start().await;
    let RawSite { site, api } = world;
    let name = api.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            drop(raw::accept(&api).await);
        }
    });
    let (status, _, body) = site
        .asked("api.site.test", "api.site.test", "Accept: text/html\r\n")
        .await;
    assert_eq!(status, 502);
    let reason = format!("{name} closed the connection before its response");
    assert!(body.contains(&reason), "{body}");
}

/// Serves `GET /hold` until `release`.
fn holding(held: &Arc<AtomicUsize>, release: &service::CancellationToken) -> Router {
    let (held, release) = (held.clone(), release.clone());
    Router::new().fallback(async move |request: Request| {
        if request.uri().path() == "/hold" {
            held.fetch_add(1, Ordering::SeqCst);
            release.cancelled().await;
        }
        "here"
    })
}

// limit: connections of a client
// limit: connections
#[tokio::test]
async fn connections_of_tls_beyond_the_limits_harm_no_busy_ones() {
    for (total, of_client) in [(0, 10), (10, 0)] {
        let (held, release) = (
            Arc::new(AtomicUsize::new(0)),
            service::CancellationToken::new(),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let router = holding(&held, &release);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let origin = Upstream::parse(&origin).unwrap();
        let site = SiteWorld::start_with(|settings| {
            settings.site.api_url = origin;
            settings.http = HttpSettings {
                max_connections: total,
                max_connections_per_client: of_client,
                ..HttpSettings::default()
            };
        })
        .await;
        let mut busy = Vec::new();
        for _ in 0..10 {
            let mut stream = site.connect(&site.wildcard, "api.site.test").await.unwrap();
            let request = b"GET /hold HTTP/1.1\r\nHost: api.site.test\r\n\r\n";
            stream.write_all(request).await.unwrap();
            busy.push(stream);
        }
        eventually(async || held.load(Ordering::SeqCst) == 10).await;
        for _ in 0..20 {
            assert!(
                site.connect(&site.wildcard, "api.site.test").await.is_err(),
                "one above the bound"
            );
        }
        release.cancel();
        for stream in &mut busy {
            let answer = raw::read_until(stream, "here").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        drop(busy);
        eventually(async || site.connect(&site.wildcard, "api.site.test").await.is_ok()).await;
    }
}
