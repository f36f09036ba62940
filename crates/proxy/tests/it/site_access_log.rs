//! The access log of a site.

use std::fs;

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::raw;
use crate::site_process::SiteProcess;
use crate::site_world::{Made, connect, json_of, made, parsed, registry, upstream};
use crate::world::{eventually, soon};

/// Lines of requests and of passed connections.
fn lines(site: &SiteProcess) -> Vec<Value> {
    let lines = site.process.output.with("");
    lines.iter().map(|line| json_of(line)).collect()
}

async fn until(site: &SiteProcess, count: usize) -> Vec<Value> {
    eventually(async || site.process.output.with("").len() >= count).await;
    lines(site)
}

/// The body of the answer to a GET by HTTPS.
async fn asked(
    site: &SiteProcess,
    trusted: &Made,
    version: &'static SupportedProtocolVersion,
    (host, target): (&str, &str),
) -> String {
    let versions = [version];
    let stream = connect(site.https, trusted, "api.site.test", &versions).await;
    let mut stream = stream.unwrap();
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer s3cret\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    parsed(&answer).2
}

#[tokio::test]
async fn each_request_has_one_line() {
    let trusted = made(&["*.site.test"]);
    let api = upstream("api").await;
    let settings =
        format!("ACCESS_LOG=true\nLOG_LEVEL=error\nAPI_URL={api}\nWEB_URL=http://127.0.0.1:1\n");
    let site = SiteProcess::start(&trusted, &settings).await;
    fs::write(site.path("files").join("a b"), "content").unwrap();
    let (new, old) = (&TLS13, &TLS12);
    let requests = [
        (new, "API.site.test:443", "/a//b?token=s3cret"),
        (old, "files.site.test", "/a%20b"),
        (
            new,
            "web.site.test",
            "/bytoken/s3cret.s3cret/4.18/x86_64/full.iso?api_key=s3cret",
        ),
        (new, "a b", "/refused"),
    ];
    let mut lengths = Vec::new();
    for (version, host, target) in requests {
        let body = asked(&site, &trusted, version, (host, target)).await;
        lengths.push(body.len());
        until(&site, lengths.len()).await;
    }
    let request = "POST /x?y HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n";
    raw::ask(site.http, request).await;
    let lines = until(&site, 5).await;
    let (client, replica) = (site.https.ip().to_string(), json!(api.authority()));
    let (new, old, none) = (json!("tls1.3"), json!("tls1.2"), Value::Null);
    for (line, (request, status, bytes, replica, tls)) in lines.iter().zip([
        (
            ["GET", "api.site.test", "/a//b"],
            200,
            lengths[0],
            &replica,
            &new,
        ),
        (["GET", "files.site.test", "/a%20b"], 200, 7, &none, &old),
        (
            [
                "GET",
                "web.site.test",
                "/bytoken/[hidden]/4.18/x86_64/full.iso",
            ],
            503,
            lengths[2],
            &none,
            &new,
        ),
        (["GET", "a b", "/refused"], 400, lengths[3], &none, &new),
        (["POST", "d", "/x"], 301, 0, &none, &none),
    ]) {
        assert_eq!(
            (&line["target"], &line["message"]),
            (&json!("access"), &json!("request"))
        );
        assert!(
            line["timestamp"].is_string() && line["duration_ms"].is_u64(),
            "{line}"
        );
        // The client of a connection to a loopback address has that address, or the first one.
        assert!(
            line["client"] == client || line["client"] == "127.0.0.1",
            "{line}"
        );
        let fields = ["method", "host", "path"].map(|field| &line[field]);
        assert_eq!(fields, request, "{line}");
        assert_eq!(
            (&line["status"], &line["bytes"]),
            (&json!(status), &json!(bytes)),
            "{line}"
        );
        assert_eq!((&line["replica"], &line["tls"]), (replica, tls), "{line}");
    }
    assert!(!site.process.output.with("").concat().contains("s3cret"));
    assert!(site.process.log.with("\"access\"").is_empty());
}

#[tokio::test]
async fn a_passed_connection_has_a_line_at_its_end() {
    let (trusted, of_registry) = (made(&["*.site.test"]), made(&["registry.site.test"]));
    let port = registry(&of_registry).await.port;
    let settings = format!("ACCESS_LOG=true\nREGISTRY_ADDRESS=127.0.0.1:{port}\n");
    let site = SiteProcess::start(&trusted, &settings).await;
    let name = "registry.site.test";
    let passed = connect(site.https, &of_registry, name, rustls::ALL_VERSIONS).await;
    let mut passed = passed.unwrap();
    passed.write_all(b"hello").await.unwrap();
    raw::read_until(&mut passed, "hello").await;
    assert_eq!(site.process.output.with("").len(), 0);
    passed.shutdown().await.unwrap();
    soon(passed.read_to_end(&mut Vec::new())).await.ok();
    drop(passed);
    let lines = until(&site, 1).await;
    assert_eq!(lines[0]["message"], "passed connection");
    assert_eq!(lines[0]["host"], name);
    assert_eq!(lines[0]["replica"], format!("127.0.0.1:{port}"));
    // Two handshakes and more.
    for bytes in ["bytes", "received_bytes"] {
        assert!(lines[0][bytes].as_u64().unwrap() > 100, "{}", lines[0]);
    }
}

#[tokio::test]
async fn clients_inject_no_lines_and_no_control_characters() {
    let trusted = made(&["*.site.test"]);
    let api = upstream("api").await;
    let site = SiteProcess::start(&trusted, &format!("ACCESS_LOG=on\nAPI_URL={api}\n")).await;
    let hostile = [
        &b"GET /a%0a{\"level\":\"ERROR\"}\"}\\ HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n"[..],
        b"GET /\xc2\x9b31m\xe2\x80\xae HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: d\"\\\t\xc2\x9b\xff\r\nConnection: close\r\n\r\n",
        b"X\x60~ / HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n",
    ];
    for request in hostile {
        let mut stream = TcpStream::connect(site.http).await.unwrap();
        stream.write_all(request).await.unwrap();
        soon(stream.read_to_end(&mut Vec::new())).await.unwrap();
    }
    let long = format!(
        "GET /{} HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n",
        "x".repeat(60_000)
    );
    raw::ask(site.http, &long).await;
    // hyper itself answers some of them, without a line.
    let end = "GET /end HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n";
    raw::ask(site.http, end).await;
    let texts = site.process.output.until("/end", 1).await;
    assert_eq!(texts.len(), 1);
    let lines = site.process.output.with("");
    assert!((2..=6).contains(&lines.len()), "{lines:#?}");
    for line in &lines {
        assert!(
            line.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{line}"
        );
        assert!(line.len() < 4000, "{}", line.len());
        let parsed = json_of(line);
        assert_eq!(
            (&parsed["level"], &parsed["target"]),
            (&json!("INFO"), &json!("access"))
        );
    }
}

#[tokio::test]
async fn the_access_log_is_off_by_default_and_switched_by_a_reload() {
    let trusted = made(&["*.site.test"]);
    let api = upstream("api").await;
    let settings = format!("API_URL={api}\n");
    let site = SiteProcess::start(&trusted, &settings).await;
    let ask = async |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n");
        raw::ask(site.http, &request).await
    };
    ask("/before").await;
    site.set(&format!("{settings}ACCESS_LOG=true\n"));
    site.process.hang_up();
    site.process.log.until("settings reloaded", 1).await;
    ask("/on").await;
    site.process.output.until("/on", 1).await;
    site.set(&settings);
    site.process.hang_up();
    site.process.log.until("settings reloaded", 2).await;
    ask("/off").await;
    assert_eq!(lines(&site).len(), 1);
}
