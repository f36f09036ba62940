//! A minimal client for plain HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Posts `body` to `url` and reads the JSON response.
pub(crate) fn post(url: &str, body: &Value) -> Result<Value> {
    send("POST", url, &body.to_string())
}

/// Reads the JSON response of `url`.
pub(crate) fn get(url: &str) -> Result<Value> {
    send("GET", url, "")
}

fn send(method: &str, url: &str, body: &str) -> Result<Value> {
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .with_context(|| format!("{url} is not http://HOST/PATH"))?;
    let length = body.len();
    let mut stream = TcpStream::connect(host).with_context(|| format!("connecting to {host}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    // HTTP/1.0: the response ends with the connection and is not chunked.
    let request = format!(
        "{method} /{path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .with_context(|| format!("reading the answer of {url}"))?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer has no end of its head")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    ensure!(
        status.starts_with('2'),
        "{url} answers {status} {}",
        body.trim()
    );
    serde_json::from_str(body).with_context(|| format!("{url} does not answer JSON"))
}
