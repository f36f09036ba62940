//! Headers of forwarded requests: hop-by-hop headers are removed, `X-Forwarded-*` added.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Version, header};

use crate::server::{ClientAddress, MAX_HEADERS, PROXY_SECRET, X_FORWARDED_FOR};

/// Hop-by-hop headers. Source: RFC 9110 §7.6.1, and two that old clients send.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const ADDED_LINES: usize = 6;
/// Lines of a request to a replica that may be missing in that of the client; requests of HTTP/2 have no `Host`.
static ADDED: [HeaderName; ADDED_LINES] = [
    X_FORWARDED_FOR,
    X_FORWARDED_HOST,
    X_FORWARDED_PROTO,
    PROXY_SECRET,
    header::TRANSFER_ENCODING,
    header::HOST,
];
/// Most header lines of a forwarded request, `Host` included: with the added ones, a replica still reads it.
pub(super) const MAX_LINES: usize = MAX_HEADERS + 1 - ADDED_LINES;

/// Whether a replica may refuse a request with these lines and those that are added.
pub(super) fn has_too_many_lines(headers: &HeaderMap) -> bool {
    if headers.len() <= MAX_HEADERS - ADDED_LINES {
        return false;
    }
    let missing = ADDED.iter().filter(|name| !headers.contains_key(*name));
    headers.len() + missing.count() > MAX_HEADERS
}

/// The protocol of an `Upgrade` request. HTTP/2 has none.
pub(super) fn upgrade_of(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let is_upgrade = version == Version::HTTP_11
        && connection_tokens(headers).any(|token| token.eq_ignore_ascii_case("upgrade"));
    is_upgrade
        .then(|| headers.get(header::UPGRADE).cloned())
        .flatten()
}

/// Removes the hop-by-hop headers, those named by `Connection` included.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = connection_tokens(headers)
        .filter_map(|token| token.parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Origin of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ForwardedFor {
    /// The other end of the connection.
    pub(super) peer: IpAddr,
    pub(super) client: ClientAddress,
}

/// Adds the peer to the `X-Forwarded-For` chain of a trusted proxy; the chain of other peers is dropped.
/// `X-Forwarded-Proto` and `X-Forwarded-Host` of a proxy in front stay. `proof` shows the server that this is its proxy.
pub(super) fn add(headers: &mut HeaderMap, from: ForwardedFor, proof: Option<&HeaderValue>) {
    match proof {
        Some(proof) => drop(headers.insert(PROXY_SECRET, proof.clone())),
        None => drop(headers.remove(PROXY_SECRET)),
    }
    let reported = headers.get_all(X_FORWARDED_FOR);
    let reported = reported.iter().filter(|_| from.client.is_forwarded);
    let mut chain: Vec<&str> = reported.filter_map(|value| value.to_str().ok()).collect();
    let peer = from.peer.to_canonical().to_string();
    chain.push(&peer);
    if let Ok(value) = HeaderValue::from_str(&chain.join(", ")) {
        headers.insert(X_FORWARDED_FOR, value);
    }
    if let Some(host) = headers.get(header::HOST).cloned() {
        headers.entry(X_FORWARDED_HOST).or_insert(host);
    }
    headers
        .entry(X_FORWARDED_PROTO)
        .or_insert(HeaderValue::from_static("http"));
}

fn connection_tokens(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn hop_by_hop_headers_are_removed() {
        let mut map = headers(&[
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("accept", "*/*"),
        ]);
        strip_hop_by_hop(&mut map);
        assert_eq!(map, headers(&[("accept", "*/*")]));
    }

    #[test]
    fn an_upgrade_needs_both_headers_and_http_1_1() {
        let both = headers(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
        ]);
        assert!(upgrade_of(Version::HTTP_11, &both).is_some());
        assert!(upgrade_of(Version::HTTP_2, &both).is_none());
        let one = headers(&[("upgrade", "websocket")]);
        assert!(upgrade_of(Version::HTTP_11, &one).is_none());
    }

    #[test]
    fn the_peer_joins_the_chain_of_a_trusted_proxy_and_the_scheme_of_the_front_stays() {
        let peer = "::ffff:10.0.0.1".parse().unwrap();
        for (is_forwarded, chain) in [(true, "10.0.0.9, 10.0.0.1"), (false, "10.0.0.1")] {
            let mut map = headers(&[
                ("host", "ui:8080"),
                ("x-forwarded-for", "10.0.0.9"),
                ("x-forwarded-proto", "https"),
            ]);
            let client = ClientAddress {
                ip: peer,
                is_forwarded,
            };
            add(&mut map, ForwardedFor { peer, client }, None);
            assert_eq!(map["x-forwarded-for"], chain);
            assert_eq!(map["x-forwarded-proto"], "https");
            assert_eq!(map["x-forwarded-host"], "ui:8080");
        }
    }

    #[test]
    fn a_server_gets_the_proof_of_its_own_proxy_alone() {
        let peer = "10.0.0.1".parse().unwrap();
        let from = ForwardedFor {
            peer,
            client: ClientAddress {
                ip: peer,
                is_forwarded: false,
            },
        };
        let own = HeaderValue::from_static("own");
        for (proof, expected) in [(Some(&own), Some(&own)), (None, None)] {
            let mut map = headers(&[("x-atoll-proxy-secret", "forged")]);
            add(&mut map, from, proof);
            assert_eq!(map.get("x-atoll-proxy-secret"), expected);
        }
    }
}
