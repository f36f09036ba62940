//! Observability: metrics and the access log.

use std::io::Read as _;
use std::process::{Command, Stdio};

use reqwest::{Method, StatusCode};
use testkit::ports::free_port;

use crate::server::{PASSWORD, Server, USER, eventually};

/// The value of a number with these labels, in any order.
fn number(text: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let is_it = |line: &&str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    };
    let line = text.lines().find(is_it)?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn metrics_name_operations_without_their_content() {
    let server = Server::plain().await;
    let body = server.push_image("secret/name", "t", "some layer").await;
    let get = server.get("/v2/secret/name/manifests/t").await;
    assert_eq!(get.text().await.unwrap(), body);
    server.delete("/v2/_catalog").await;
    server
        .request(Method::from_bytes(b"BREW").unwrap(), "/tea")
        .send()
        .await
        .unwrap();
    let numbers = async || server.get("/metrics").await.text().await.unwrap();
    let is_counted = |text: &str| {
        let requests = |labels| number(text, "registry_http_requests_total", labels);
        let done = [
            requests(&["handler=\"manifest\"", "method=\"get\"", "code=\"200\""]),
            requests(&["handler=\"manifest\"", "method=\"put\"", "code=\"201\""]),
            requests(&["handler=\"catalog\"", "method=\"delete\"", "code=\"405\""]),
            requests(&["handler=\"other\"", "method=\"other\"", "code=\"404\""]),
            number(
                text,
                "registry_http_request_duration_seconds_count",
                &["handler=\"blob_upload\""],
            ),
            number(
                text,
                "registry_http_response_size_bytes_sum",
                &["handler=\"manifest\""],
            ),
            number(
                text,
                "registry_http_request_size_bytes_sum",
                &["handler=\"blob_upload_chunk\""],
            ),
            number(text, "registry_storage_uploads_total", &["finished"]),
            number(
                text,
                "registry_http_in_flight_requests",
                &["handler=\"operations\""],
            ),
        ];
        done.iter()
            .all(|number| number.is_some_and(|number| number >= 1.0))
    };
    eventually(async || is_counted(&numbers().await)).await;
    let text = numbers().await;
    assert!(!text.contains("secret") && !text.contains("BREW"), "{text}");
}

#[tokio::test]
async fn each_request_leaves_a_line_without_secrets() {
    let talker = Server::plain().await;
    let root = tempfile::tempdir().unwrap();
    let users = root.path().join("users");
    std::fs::write(&users, registry::htpasswd::line(USER, PASSWORD).unwrap()).unwrap();
    let port = free_port().unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_registry"))
        .env("REGISTRY_HTTP_ADDR", format!("127.0.0.1:{port}"))
        .env("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", root.path())
        .env("REGISTRY_AUTH_HTPASSWD_PATH", &users)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let base = format!("http://127.0.0.1:{port}");
    let ask = async |path: &str, password: &str| {
        let request = talker.request(Method::GET, &format!("{base}{path}"));
        let request = request.header("user-agent", "test \"agent\"");
        request.basic_auth(USER, Some(password)).send().await
    };
    eventually(async || ask("/health", "").await.is_ok()).await;
    let status = |answer: Result<reqwest::Response, _>| answer.unwrap().status();
    assert_eq!(status(ask("/v2/?first", PASSWORD).await), StatusCode::OK);
    let wrong = ask("/v2/?second", "wrong-password").await;
    assert_eq!(status(wrong), StatusCode::UNAUTHORIZED);
    let pid = process.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert!(process.wait().unwrap().success());
    let mut log = String::new();
    process
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    let line = |part: &str| log.lines().find(|line| line.contains(part)).unwrap();
    let right = line("GET /v2/?first HTTP/1.1\" 200 2 ");
    assert!(
        right.starts_with(&format!("127.0.0.1 - {USER} [")),
        "{right}"
    );
    assert!(right.ends_with("\"-\" \"test \\x22agent\\x22\""), "{right}");
    assert!(line("GET /v2/?second HTTP/1.1\" 401 ").starts_with("127.0.0.1 - - ["));
    assert!(
        !log.contains(PASSWORD) && !log.contains("wrong-password"),
        "{log}"
    );
}
