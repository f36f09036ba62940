//! The access log: one line per request, and one per passed connection at its end.
//!
//! Lines are events of the target [`TARGET`], which [`crate::logs`] writes to standard output. No header but the host,
//! no query and no token in a path is written: all may carry secrets. Texts of clients are ASCII, cut, and without control characters.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::Request;
use axum::response::Response;
use http::header;
use net::masks::masked;

use crate::layers::method_label;
use crate::observed_body::{data_length, observed};
use crate::server::{ClientAddress, RequestCounter, TrustedProxies, requested_host};
use crate::tls::TlsVersion;

/// Target of the events.
pub(crate) const TARGET: &str = "access";
/// Longest path or host in a line. Units: bytes.
const MAX_TEXT: usize = 1024;

/// Switch of the access log of a server; shared by its clones.
#[derive(Debug, Clone, Default)]
pub struct AccessLog(Arc<AtomicBool>);

impl AccessLog {
    /// A log that is on or off.
    pub fn new(is_on: bool) -> Self {
        Self(Arc::new(AtomicBool::new(is_on)))
    }

    /// Switches it from the next request on.
    pub fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::Relaxed);
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Replica that answers a request; an extension of logged requests, which the forwarding sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnsweringReplica(Arc<OnceLock<SocketAddr>>);

impl AnsweringReplica {
    pub(crate) fn set(&self, address: SocketAddr) {
        self.0.set(address).ok();
    }
}

/// The line of a request, written when it is dropped.
pub(crate) struct LoggedRequest {
    started: Instant,
    client: IpAddr,
    method: &'static str,
    host: String,
    path: String,
    tls: Option<TlsVersion>,
    replica: AnsweringReplica,
    /// 0 until there is a response.
    status: u16,
    /// Of the response's body.
    bytes: u64,
}

impl LoggedRequest {
    /// Begins the line of a request of `peer`, if the log is on. Clients of `trusted` proxies are those that they report.
    pub(crate) fn begin(
        log: Option<&AccessLog>,
        peer: SocketAddr,
        trusted: &TrustedProxies,
        request: &mut Request,
    ) -> Option<Self> {
        log.filter(|log| log.is_on())?;
        let host = requested_host(request).unwrap_or_else(|| {
            let value = request.headers().get(header::HOST);
            String::from_utf8_lossy(value.map_or(b"", |value| value.as_bytes())).into_owned()
        });
        let connection = request.extensions().get::<RequestCounter>();
        let replica = AnsweringReplica::default();
        let entry = Self {
            started: Instant::now(),
            client: ClientAddress::of(peer.ip(), request.headers(), trusted).ip,
            method: method_label(request.method()),
            host: plain(&host),
            path: plain(&masked(request.uri().path())),
            tls: connection.and_then(RequestCounter::tls),
            replica: replica.clone(),
            status: 0,
            bytes: 0,
        };
        request.extensions_mut().insert(replica);
        Some(entry)
    }

    /// Ends the line with the body of `response`.
    pub(crate) fn end_with(mut self, response: Response) -> Response {
        self.status = response.status().as_u16();
        response.map(|body| {
            observed(body, self, |entry, frame| {
                entry.bytes += data_length(frame);
            })
        })
    }
}

impl Drop for LoggedRequest {
    fn drop(&mut self) {
        let replica = self.replica.0.get().map(tracing::field::display);
        tracing::info!(
            target: TARGET,
            client = %self.client,
            method = self.method,
            host = self.host,
            path = self.path,
            // Absent when the client left before the response.
            status = (self.status > 0).then_some(self.status),
            bytes = self.bytes,
            duration_ms = milliseconds(self.started),
            replica,
            tls = self.tls.map(TlsVersion::name),
            "request"
        );
    }
}

/// A passed connection.
pub(crate) struct PassedConnection<'a> {
    pub(crate) started: Instant,
    pub(crate) client: Option<SocketAddr>,
    pub(crate) server_name: &'a str,
    pub(crate) replica: Option<SocketAddr>,
    /// Of the client.
    pub(crate) received: u64,
    /// To the client.
    pub(crate) sent: u64,
}

impl PassedConnection<'_> {
    /// Writes its line.
    pub(crate) fn log(&self) {
        tracing::info!(
            target: TARGET,
            client = self.client.map(|client| tracing::field::display(client.ip().to_canonical())),
            host = plain(self.server_name),
            received_bytes = self.received,
            bytes = self.sent,
            duration_ms = milliseconds(self.started),
            replica = self.replica.map(tracing::field::display),
            "passed connection"
        );
    }
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// `text` in printable ASCII, cut; other bytes are percent-encoded.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len().min(MAX_TEXT));
    for byte in text.bytes() {
        if plain.len() >= MAX_TEXT {
            plain.push_str("...");
            break;
        }
        match byte {
            b' '..=b'~' => plain.push(char::from(byte)),
            _ => {
                write!(plain, "%{byte:02X}").ok();
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    // limit: text of a line of the access log
    #[test]
    fn texts_of_clients_are_printable_and_cut() {
        assert_eq!(plain("/a b\"\\"), "/a b\"\\");
        assert_eq!(
            plain("a\r\n\0\u{9b}é\u{202e}"),
            "a%0D%0A%00%C2%9B%C3%A9%E2%80%AE"
        );
        assert_eq!(plain(&"x".repeat(MAX_TEXT)).len(), MAX_TEXT);
        let cut = plain(&"x".repeat(MAX_TEXT + 1));
        assert!(cut.ends_with("x...") && cut.len() == MAX_TEXT + 3);
        assert!(plain(&"\n".repeat(MAX_TEXT)).len() <= MAX_TEXT + 5);
    }
}
