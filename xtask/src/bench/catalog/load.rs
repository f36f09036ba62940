//! Calls, and the cost of each.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::content::CatalogSample;
use super::server::CatalogServer;
use crate::command::output;
use crate::scratch::ScratchFolder;

/// The load generator, and its Debian package.
pub(super) const TOOL: &str = "h2load";
pub(super) const PACKAGE: &str = "nghttp2-client";
/// Connections of a load, and concurrent calls of each.
const CLIENTS: u64 = 4;
const OPEN: u64 = 4;
/// Maximum number of calls of a load, and the growth factor when a load is too short.
const MOST: u64 = 200_000;
const GROWTH: u64 = 4;

/// A measured call.
#[derive(Debug)]
pub(super) struct GrpcCall {
    method: &'static str,
    /// The texts of the request, in the order of its fields.
    request: fn(&CatalogSample) -> Vec<&str>,
}

pub(super) const CALLS: &[GrpcCall] = &[
    GrpcCall {
        method: "ListBundles",
        request: |_| Vec::new(),
    },
    GrpcCall {
        method: "ListPackages",
        request: |_| Vec::new(),
    },
    GrpcCall {
        method: "GetPackage",
        request: |sample| vec![&sample.package],
    },
    GrpcCall {
        method: "GetBundle",
        request: |sample| vec![&sample.package, &sample.channel, &sample.bundle],
    },
    GrpcCall {
        method: "GetBundleForChannel",
        request: |sample| vec![&sample.package, &sample.channel],
    },
    GrpcCall {
        method: "GetChannelEntriesThatProvide",
        request: CatalogSample::api,
    },
    GrpcCall {
        method: "GetLatestChannelEntriesThatProvide",
        request: CatalogSample::api,
    },
    GrpcCall {
        method: "GetDefaultBundleThatProvides",
        request: CatalogSample::api,
    },
];

impl GrpcCall {
    pub(super) fn label(&self) -> String {
        format!("{}: CPU ms / calls per s / kB", self.method)
    }

    /// Calls for about `duration`.
    pub(super) fn measure(
        &self,
        server: &CatalogServer,
        sample: &CatalogSample,
        duration: Duration,
    ) -> Result<String> {
        let scratch = ScratchFolder::new()?;
        let body = scratch.path().join("body");
        fs::write(&body, message(&(self.request)(sample)))?;
        let load = |calls: u64| {
            let mut command = Command::new(TOOL);
            command.args(["-n", &calls.to_string(), "-c", &CLIENTS.to_string()]);
            command.args(["-m", &OPEN.to_string(), "-d"]).arg(&body);
            command.args(["-H", "content-type: application/grpc", "-H", "te: trailers"]);
            let address = format!("http://127.0.0.1:{}", server.port);
            command.arg(format!("{address}/api.Registry/{}", self.method));
            let report = String::from_utf8(output(&mut command)?)?;
            LoadReport::parse(&report).context("the report of h2load is malformed")
        };
        let mut calls = CLIENTS;
        loop {
            let (before, began) = (server.cpu()?, Instant::now());
            let report = load(calls)?;
            let cpu = server.cpu()? - before;
            ensure!(
                report.failed < 1.0,
                "{} of {} calls failed",
                report.failed,
                report.total
            );
            let bytes = report.data / report.total;
            ensure!(bytes > 5.0, "{} is answered with nothing", self.method);
            if calls == MOST || began.elapsed() * 2 >= duration {
                let cpu = cpu * 1000.0 / report.total;
                return Ok(format!(
                    "{cpu:.3} / {:.0} / {:.1}",
                    report.rate,
                    bytes / 1000.0
                ));
            }
            calls = (calls * GROWTH).min(MOST);
        }
    }
}

/// The tool's report.
#[derive(Debug, PartialEq)]
struct LoadReport {
    rate: f64,
    total: f64,
    failed: f64,
    /// Units: bytes. Of all responses.
    data: f64,
}

impl LoadReport {
    fn parse(text: &str) -> Option<Self> {
        let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
        let before = |line: &str, word: &str| -> Option<f64> {
            let words: Vec<_> = line
                .split([' ', ','])
                .filter(|word| !word.is_empty())
                .collect();
            let place = words.iter().position(|found| *found == word)?;
            words
                .get(place.checked_sub(1)?)?
                .trim_matches(['(', ')'])
                .parse()
                .ok()
        };
        Some(Self {
            rate: before(line("finished in")?, "req/s")?,
            total: before(line("requests:")?, "total")?,
            failed: before(line("requests:")?, "failed")?,
            data: before(line("traffic:")?, "data")?,
        })
    }
}

/// A gRPC message with these texts as its first fields.
fn message(texts: &[&str]) -> Vec<u8> {
    let mut message = Vec::new();
    for (number, text) in (1_u8..).zip(texts) {
        message.push(number << 3 | 2);
        prost::encoding::encode_varint(text.len() as u64, &mut message);
        message.extend_from_slice(text.as_bytes());
    }
    let length = u32::try_from(message.len())
        .unwrap_or(u32::MAX)
        .to_be_bytes();
    [&[0][..], &length, &message].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_report_is_parsed() {
        let text = "finished in 1.50s, 66.67 req/s, 5.34MB/s\n\
                    requests: 100 total, 100 started, 100 done, 99 succeeded, 1 failed, 0 errored, 0 timeout\n\
                    status codes: 100 2xx, 0 3xx, 0 4xx, 0 5xx\n\
                    traffic: 8.01MB (8397436) total, 2.15KB (2202) headers (space savings 93.15%), 7.99MB (8379000) data\n";
        let expected = LoadReport {
            rate: 66.67,
            total: 100.0,
            failed: 1.0,
            data: 8_379_000.0,
        };
        assert_eq!(LoadReport::parse(text), Some(expected));
        assert_eq!(LoadReport::parse("h2load: unknown option"), None);
    }

    #[test]
    fn a_request_is_framed() {
        assert_eq!(message(&["ab"]), [0, 0, 0, 0, 4, 10, 2, b'a', b'b']);
        assert_eq!(message(&[]), [0; 5]);
    }
}
