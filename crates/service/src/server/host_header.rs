//! Allowed hosts of a listener, against DNS rebinding.
//!
//! A web page may resolve its own name to a loopback address and then send requests through the browser. Such requests
//! carry the page's name.

use std::net::IpAddr;

use axum::extract::Request;
use http::uri::Authority;
use http::{HeaderValue, StatusCode, Version, header};

/// The rule of a listener.
#[derive(Debug, Clone)]
pub(super) struct HostRule {
    is_loopback: bool,
    /// Lower-case names; `*.` matches all names below one, `*` every name.
    allowed: Vec<String>,
}

/// Refusal of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HostRefusal {
    pub(super) status: StatusCode,
    pub(super) text: &'static str,
}

const MISSING: HostRefusal = HostRefusal {
    status: StatusCode::BAD_REQUEST,
    text: "the request names no host: HTTP/1.1 needs one Host header",
};
const TWICE: HostRefusal = HostRefusal {
    status: StatusCode::BAD_REQUEST,
    text: "the request has several Host headers",
};
const INVALID: HostRefusal = HostRefusal {
    status: StatusCode::BAD_REQUEST,
    text: "malformed Host header: give it as NAME or NAME:PORT",
};
const FOREIGN: HostRefusal = HostRefusal {
    status: StatusCode::MISDIRECTED_REQUEST,
    text: "the request is for another host: the setting ALLOWED_HOSTS names those that are served here, beside \
           loopback names on a loopback address and IP addresses on others",
};

impl HostRule {
    /// The rule of a plain or TLS listener on `address`. Browsers check the name in a certificate by themselves, so
    /// TLS listeners have no rule of their own.
    pub(super) fn new(address: IpAddr, has_tls: bool, allowed: &[String]) -> Self {
        let name = |name: &String| name.trim_end_matches('.').to_ascii_lowercase();
        Self {
            is_loopback: address.to_canonical().is_loopback() && !has_tls,
            allowed: allowed.iter().map(name).collect(),
        }
    }

    /// Errors: no host where one is needed, several, an invalid one, or one that is not served here.
    pub(super) fn check(&self, request: &Request) -> Result<(), HostRefusal> {
        match requested(request)? {
            Some(host) if !self.serves(&host) => Err(FOREIGN),
            _ => Ok(()),
        }
    }
    fn serves(&self, host: &str) -> bool {
        if self.allowed.iter().any(|allowed| covers(allowed, host)) {
            return true;
        }
        let address: Option<IpAddr> = host.parse().ok();
        if self.is_loopback {
            host == "localhost"
                || host.ends_with(".localhost")
                || address.is_some_and(|address| address.to_canonical().is_loopback())
        } else {
            self.allowed.is_empty() || address.is_some()
        }
    }
}

/// The host that a request names: in lower case, without port, brackets and a dot at its end. Absent for HTTP/1.0
/// without one, and for requests that [`HostRule`] refuses.
pub fn requested_host(request: &Request) -> Option<String> {
    requested(request).ok().flatten()
}

fn requested(request: &Request) -> Result<Option<String>, HostRefusal> {
    let mut values = request.headers().get_all(header::HOST).iter();
    let (value, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(TWICE);
    }
    if value.is_none() && request.version() == Version::HTTP_11 {
        return Err(MISSING);
    }
    let named = value.map(parse).transpose()?;
    // The target wins over the header. Source: RFC 9112, section 3.2.2.
    let target = request.uri().authority().map(|target| {
        let text = target.as_str();
        host(
            target,
            text.rsplit_once('@').map_or(text, |(_user, rest)| rest),
        )
    });
    Ok(target.transpose()?.or(named))
}

fn covers(allowed: &str, host: &str) -> bool {
    match allowed.strip_prefix('*') {
        Some("") => true,
        Some(suffix) => suffix.starts_with('.') && host.ends_with(suffix),
        None => allowed == host,
    }
}

fn parse(value: &HeaderValue) -> Result<String, HostRefusal> {
    let authority = Authority::try_from(value.as_bytes()).map_err(|_| INVALID)?;
    host(&authority, authority.as_str())
}

/// The host of `text`, which is `authority` without its user: in lower case, without brackets and port.
fn host(authority: &Authority, text: &str) -> Result<String, HostRefusal> {
    let host = authority.host();
    let rest = text.strip_prefix(host).ok_or(INVALID)?;
    let has_valid_port = match rest.strip_prefix(':') {
        // An empty port is the scheme's. Source: RFC 3986, section 3.2.3.
        Some(port) => port.is_empty() || authority.port_u16().is_some(),
        None => rest.is_empty(),
    };
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    if name.is_empty() || !has_valid_port {
        return Err(INVALID);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn check(rule: &HostRule, version: Version, target: &str, hosts: &[&str]) -> u16 {
        let mut request = Request::new(Body::empty());
        *request.version_mut() = version;
        *request.uri_mut() = target.parse().unwrap();
        for host in hosts {
            let value = HeaderValue::from_str(host).unwrap();
            request.headers_mut().append(header::HOST, value);
        }
        let refused = rule.check(&request).err();
        refused.map_or(200, |refused| refused.status.as_u16())
    }

    fn rule(address: &str, allowed: &[&str]) -> HostRule {
        let allowed: Vec<_> = allowed.iter().map(|name| (*name).to_owned()).collect();
        HostRule::new(address.parse().unwrap(), false, &allowed)
    }

    #[test]
    fn a_request_names_one_valid_host() {
        let rule = rule("0.0.0.0", &[]);
        for (hosts, code) in [
            (&[][..], 400),
            (&["a", "a"], 400),
            (&[""], 400),
            (&["a/b"], 400),
            (&["a b"], 400),
            (&["user@a"], 400),
            (&["a:x"], 400),
            (&["a:99999"], 400),
            (&[":80"], 400),
            (&["[::1"], 400),
            (&["a:"], 200),
            (&["a.example:8080"], 200),
            (&["[::1]:8080"], 200),
        ] {
            let got = check(&rule, Version::HTTP_11, "/", hosts);
            assert_eq!(got, code, "{hosts:?}");
        }
        assert_eq!(check(&rule, Version::HTTP_10, "/", &[]), 200);
        assert_eq!(check(&rule, Version::HTTP_2, "http://a/", &[]), 200);
        assert_eq!(check(&rule, Version::HTTP_11, "http://a/", &[]), 400);
    }

    #[test]
    fn a_loopback_listener_answers_for_loopback_names_and_those_allowed() {
        for address in ["127.0.0.1", "::1", "127.8.0.1"] {
            let rule = rule(address, &["Atoll.example", "*.lab.example"]);
            for (host, code) in [
                ("localhost", 200),
                ("LOCALHOST:8080", 200),
                ("localhost.", 200),
                ("ui.localhost", 200),
                ("127.0.0.1:8080", 200),
                ("[::1]", 200),
                ("atoll.example:1", 200),
                ("a.lab.example", 200),
                ("lab.example", 421),
                ("rebound.example", 421),
                ("notlocalhost", 421),
                ("192.0.2.1", 421),
            ] {
                let got = check(&rule, Version::HTTP_11, "/", &[host]);
                assert_eq!(got, code, "{host}");
                let target = format!("http://{host}/");
                let got = check(&rule, Version::HTTP_2, &target, &[]);
                assert_eq!(got, code, "{host}");
                // The target wins over a harmless header.
                let got = check(&rule, Version::HTTP_11, &target, &["localhost"]);
                assert_eq!(got, code, "{host}");
            }
        }
    }

    #[test]
    fn other_listeners_answer_for_all_or_those_allowed() {
        let any = rule("0.0.0.0", &[]);
        assert_eq!(check(&any, Version::HTTP_11, "/", &["x.example"]), 200);
        let some = rule("::", &["atoll.example"]);
        for (host, code) in [
            ("atoll.example", 200),
            ("x.example", 421),
            ("192.0.2.1", 200),
        ] {
            assert_eq!(check(&some, Version::HTTP_11, "/", &[host]), code, "{host}");
        }
        let all = rule("127.0.0.1", &["*"]);
        assert_eq!(check(&all, Version::HTTP_11, "/", &["x.example"]), 200);
    }
}
