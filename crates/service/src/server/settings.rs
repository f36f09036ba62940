//! Settings that every server reads: bounds of clients, trusted proxies, allowed hosts, and the place of the metrics.

use std::net::SocketAddr;
use std::time::Duration;

use http::HeaderValue;

use super::clients::{IpNetworks, TrustedProxies, proxy_secret};
use super::tls_acceptor::HANDSHAKE_TIMEOUT;
use crate::limits::{Bound, Limit, Share};
use crate::metrics::MAX_SERIES;
use crate::settings::{CommaList, Secret};
use crate::tls::hello::HELLO_BYTES;

/// Send buffer of a connection, and the longest request head. Units: bytes. hyper's default of 400 KiB would be most
/// of the memory of a server with many slow downloads.
pub(crate) const MAX_BUFFER: usize = 64 * 1024;
/// Units: header lines of a request. Source: hyper's default, which costs no memory of its own.
pub(crate) const MAX_HEADERS: usize = 100;

crate::settings! {
    /// Bounds of clients, trusted proxies, allowed hosts, and the place of the metrics.
    pub struct HttpSettings {
        /// Connections that are open at a time, of all clients. One more takes the place of the quietest connection of the client that has the most; a client that has no fewer than any other is closed at once. 0, or more than the limit of open files allows: as many as that allows.
        max_connections: usize = "1536",
        /// Connections that one client address (IPv6: /64) has open at a time; one more is closed at once. Trusted proxies are exempt. 0: no limit.
        max_connections_per_client: usize = "1024",
        /// Requests of one client address (IPv6: /64) in flight; one more gets 429. Behind a trusted proxy, the address that it reports counts. 0: no limit.
        max_requests_per_client: usize = "1024",
        /// Bytes of responses in memory that wait for all clients to read them; memory that responses share counts once, and the longest response does not count. One response more gets 503. 0: no limit.
        max_waiting_bytes: usize = "67108864",
        /// Bytes of responses in memory that wait for one client address (IPv6: /64) to read them; the longest response does not count. One response more gets 429. 0: no limit.
        max_waiting_bytes_per_client: usize = "16777216",
        /// How long a client may take to send the head of a request.
        header_timeout: Duration = "30s",
        /// How long a connection of HTTP/1 may be idle: longer than the interval at which agents poll, so that each keeps its connection.
        idle_timeout: Duration = "5m",
        /// How long a client may send nothing of a request body; beyond it: 408.
        body_idle_timeout: Duration = "30s",
        /// Bytes per second that a request body brings on average, after a first BODY_IDLE_TIMEOUT; slower ones get 408. Time in which the server does not read is not counted. 0: any rate.
        body_min_rate: u64 = "1024",
        /// How long the server waits for a client in the course of one request body; beyond it: 408. 0: no limit.
        body_timeout: Duration = "6h",
        /// How long a client may take none of the bytes of an answer; beyond it, the connection is closed.
        write_timeout: Duration = "2m",
        /// Networks, as in `10.0.0.0/8,fd00::/8`, of proxies whose X-Forwarded-For is believed.
        trusted_proxies: IpNetworks = "",
        /// Secret that the proxies of TRUSTED_PROXIES share with this server, so that no other program at their addresses is believed. The web UI and the proxy send it to the servers that they forward to. Empty: the address alone is believed.
        trusted_proxy_secret: Secret = "",
        /// Host names that requests may name, beside IP addresses, `localhost`, the name of this machine, and the names in this server's own URLs; `*.` at the start matches all names below one, `*` every name. Requests for other names get 421: a web page could have bound its name to this server's address. Listeners with TLS serve every name if this is empty.
        allowed_hosts: CommaList = "",
        /// Origins of other servers, as in `https://ui.example.org`, whose pages may send requests that change something. Those of other pages get 403.
        allowed_origins: CommaList = "",
        /// Address and port of a listener for the metrics, as in `127.0.0.1:9464`. Empty: none.
        metrics_address: Option<SocketAddr> = "",
        /// Serve `/metrics` on the public port as well.
        metrics_on_public_port: bool = "false",
    }
}

impl HttpSettings {
    /// The proxies that are believed.
    pub(super) fn proxies(&self) -> TrustedProxies {
        TrustedProxies::new(self.trusted_proxies.clone(), self.proxy_secret())
    }

    /// Secret by which this server proves itself, if it is a proxy.
    pub(crate) fn proxy_secret(&self) -> Option<HeaderValue> {
        proxy_secret(&self.trusted_proxy_secret)
    }

    /// Limits of every server.
    pub(crate) fn limits(&self) -> Vec<Limit> {
        let closed = "connection closed";
        let mut limits = vec![
            Limit::fixed(
                "connections",
                count(self.max_connections, "connections"),
                "server",
                "an idle one is closed, else the quietest of the client with the most, else the new one",
            )
            .set_by("MAX_CONNECTIONS")
            .shared(
                Share::of(
                    "client address",
                    count(self.max_connections_per_client, "connections"),
                    closed,
                )
                .set_by("MAX_CONNECTIONS_PER_CLIENT"),
            ),
            Limit::fixed(
                "connections of a client",
                count(self.max_connections_per_client, "connections"),
                "client address",
                closed,
            )
            .set_by("MAX_CONNECTIONS_PER_CLIENT"),
            Limit::fixed(
                "requests of a client in flight",
                count(self.max_requests_per_client, "requests"),
                "client address",
                "429 with Retry-After",
            )
            .set_by("MAX_REQUESTS_PER_CLIENT"),
        ];
        limits.extend(self.waiting_limits());
        limits.extend(self.request_limits());
        limits.push(
            Limit::fixed(
                "metric series",
                Bound::Count(MAX_SERIES as u64, "series"),
                "server",
                "not recorded, until others are idle for over 1 h",
            )
            .unshared("labels are of closed sets, clients name none"),
        );
        limits
    }

    fn waiting_limits(&self) -> [Limit; 2] {
        [
            Limit::fixed(
                "bytes that wait for clients",
                bytes(self.max_waiting_bytes),
                "server",
                "503 with Retry-After; the longest response is exempt",
            )
            .set_by("MAX_WAITING_BYTES")
            .shared(
                Share::of(
                    "client address",
                    bytes(self.max_waiting_bytes_per_client),
                    "429 with Retry-After",
                )
                .set_by("MAX_WAITING_BYTES_PER_CLIENT"),
            ),
            Limit::fixed(
                "bytes that wait for a client",
                bytes(self.max_waiting_bytes_per_client),
                "client address",
                "429 with Retry-After; the longest response is exempt",
            )
            .set_by("MAX_WAITING_BYTES_PER_CLIENT"),
        ]
    }

    fn request_limits(&self) -> [Limit; 10] {
        let closed = "connection closed";
        let timeout = "408, connection closed";
        let rate = match self.body_min_rate {
            0 => Bound::Unlimited,
            rate => Bound::MinimumRate(rate),
        };
        [
            Limit::fixed(
                "first message of TLS",
                Bound::Bytes(HELLO_BYTES as u64),
                "connection",
                closed,
            ),
            Limit::fixed(
                "time for a TLS handshake",
                Bound::Time(HANDSHAKE_TIMEOUT),
                "connection",
                closed,
            ),
            Limit::fixed(
                "request head",
                Bound::Bytes(MAX_BUFFER as u64),
                "request",
                "431, or connection closed",
            ),
            Limit::fixed(
                "header lines",
                Bound::Count(MAX_HEADERS as u64, "lines"),
                "request of HTTP/1",
                "431",
            ),
            Limit::fixed(
                "time for a request head",
                Bound::Time(self.header_timeout),
                "request",
                closed,
            )
            .set_by("HEADER_TIMEOUT"),
            Limit::fixed(
                "idle connection",
                Bound::Time(self.idle_timeout.max(self.header_timeout)),
                "connection",
                closed,
            )
            .set_by("IDLE_TIMEOUT"),
            Limit::fixed(
                "silence within a request body",
                Bound::Time(self.body_idle_timeout),
                "request",
                timeout,
            )
            .set_by("BODY_IDLE_TIMEOUT"),
            Limit::fixed("rate of a request body", rate, "request", timeout)
                .set_by("BODY_MIN_RATE"),
            Limit::fixed(
                "time for a request body",
                time(self.body_timeout),
                "request",
                timeout,
            )
            .set_by("BODY_TIMEOUT"),
            Limit::fixed(
                "stalled reading of an answer",
                Bound::Time(self.write_timeout),
                "connection",
                closed,
            )
            .set_by("WRITE_TIMEOUT"),
        ]
    }
}

fn count(count: usize, unit: &'static str) -> Bound {
    match count {
        0 => Bound::Unlimited,
        count => Bound::Count(count as u64, unit),
    }
}

fn bytes(bytes: usize) -> Bound {
    match bytes {
        0 => Bound::Unlimited,
        bytes => Bound::Bytes(bytes as u64),
    }
}

fn time(time: Duration) -> Bound {
    if time.is_zero() {
        Bound::Unlimited
    } else {
        Bound::Time(time)
    }
}
