//! Allowed hosts of a listener, against DNS rebinding.
//!
//! A web page may resolve its own name to the address of a server and then read that server through the browser. Such
//! requests carry the page's name. Addresses need no name, so none can be rebound: clients that call by address always pass.

use std::net::IpAddr;

use axum::extract::Request;
use http::uri::Authority;
use http::{HeaderValue, StatusCode, Version, header};

/// The rule of a listener.
#[derive(Debug, Clone)]
pub(super) struct HostRule {
    has_tls: bool,
    /// Lower-case names; `*.` matches all names below one, `*` every name.
    allowed: Vec<String>,
}

/// The host that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestedHost {
    /// In lower case, without brackets and a dot at its end.
    pub(super) name: String,
    pub(super) port: Option<u16>,
}

/// Refusal of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HostRefusal {
    /// The header is missing, there several times, or malformed; the text for the client.
    Malformed(&'static str),
    /// The name of another host.
    Foreign(String),
}

const MISSING: HostRefusal =
    HostRefusal::Malformed("the request names no host: HTTP/1.1 needs one Host header");
const TWICE: HostRefusal = HostRefusal::Malformed("the request has several Host headers");
const INVALID: HostRefusal =
    HostRefusal::Malformed("malformed Host header: give it as NAME or NAME:PORT");

impl HostRefusal {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Foreign(_) => StatusCode::MISDIRECTED_REQUEST,
        }
    }

    /// Cause and remedy.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Malformed(text) => (*text).to_owned(),
            Self::Foreign(name) => format!(
                "the request is for the host {name:?}, which is not served here: add the name to the setting \
                 ALLOWED_HOSTS of this server, or use its IP address"
            ),
        }
    }
}

impl HostRule {
    /// The rule of a listener, which serves loopback names, the name of this machine, and `allowed`. Browsers check the
    /// name in a certificate by themselves: a TLS listener without `allowed` names serves all.
    pub(super) fn new(has_tls: bool, allowed: &[String]) -> Self {
        let name = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
        let mut allowed: Vec<String> = allowed.iter().map(|it| name(it)).collect();
        if has_tls && allowed.is_empty() {
            allowed.push("*".to_owned());
        }
        let machine = rustix::system::uname();
        let machine = name(&machine.nodename().to_string_lossy());
        let own = ["localhost", "*.localhost", &machine];
        allowed.extend(
            own.into_iter()
                .filter(|it| !it.is_empty())
                .map(str::to_owned),
        );
        Self { has_tls, allowed }
    }

    /// The host of a request; absent in requests of HTTP/1.0 without one.
    ///
    /// Errors: no host where one is needed, several, an invalid one, or one that is not served here.
    pub(super) fn check(&self, request: &Request) -> Result<Option<RequestedHost>, HostRefusal> {
        let host = requested(request)?;
        // Browsers speak HTTP/2 over TLS alone: without it, the client is a program, as those of gRPC.
        let is_program = !self.has_tls && request.version() == Version::HTTP_2;
        match host {
            Some(host) if !is_program && !self.serves(&host.name) => {
                Err(HostRefusal::Foreign(host.name))
            }
            host => Ok(host),
        }
    }

    fn serves(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| covers(allowed, name)) || name.parse::<IpAddr>().is_ok()
    }
}

/// The host that a request names: in lower case, without port, brackets and a dot at its end. Absent for HTTP/1.0
/// without one, and for requests that [`HostRule`] refuses.
pub fn requested_host(request: &Request) -> Option<String> {
    requested(request).ok().flatten().map(|host| host.name)
}

fn requested(request: &Request) -> Result<Option<RequestedHost>, HostRefusal> {
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
        let text = text.rsplit_once('@').map_or(text, |(_user, rest)| rest);
        RequestedHost::of(target, text)
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

fn parse(value: &HeaderValue) -> Result<RequestedHost, HostRefusal> {
    let authority = Authority::try_from(value.as_bytes()).map_err(|_| INVALID)?;
    RequestedHost::of(&authority, authority.as_str())
}

impl RequestedHost {
    /// The host of `text`, which is `authority` without its user.
    ///
    /// Errors: Malformed – no host, or an invalid port.
    pub(super) fn of(authority: &Authority, text: &str) -> Result<Self, HostRefusal> {
        let host = authority.host();
        let rest = text.strip_prefix(host).ok_or(INVALID)?;
        let port = match rest.strip_prefix(':') {
            // An empty port is the scheme's. Source: RFC 3986, section 3.2.3.
            Some("") => None,
            Some(_) => Some(authority.port_u16().ok_or(INVALID)?),
            None if rest.is_empty() => None,
            None => return Err(INVALID),
        };
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if name.is_empty() {
            return Err(INVALID);
        }
        Ok(Self { name, port })
    }
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
        refused.map_or(200, |refused| refused.status().as_u16())
    }

    fn rule(has_tls: bool, allowed: &[&str]) -> HostRule {
        let allowed: Vec<_> = allowed.iter().map(|name| (*name).to_owned()).collect();
        HostRule::new(has_tls, &allowed)
    }

    #[test]
    fn a_request_names_one_valid_host() {
        let rule = rule(false, &["a", "a.example"]);
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
    fn listeners_serve_addresses_loopback_names_and_those_allowed() {
        let rule = rule(false, &["Atoll.example", "*.lab.example"]);
        for (host, code) in [
            ("localhost", 200),
            ("LOCALHOST:8080", 200),
            ("localhost.", 200),
            ("ui.localhost", 200),
            ("127.0.0.1:8080", 200),
            ("[::1]", 200),
            ("192.0.2.1", 200),
            ("[2001:db8::1]:8080", 200),
            ("atoll.example:1", 200),
            ("a.lab.example", 200),
            ("lab.example", 421),
            ("rebound.example", 421),
            ("notlocalhost", 421),
            ("127.0.0.1.rebound.example", 421),
            ("2130706433", 421),
        ] {
            let got = check(&rule, Version::HTTP_11, "/", &[host]);
            assert_eq!(got, code, "{host}");
            let target = format!("http://{host}/");
            assert_eq!(check(&rule, Version::HTTP_2, &target, &[]), 200, "{host}");
            // The target wins over a harmless header.
            let got = check(&rule, Version::HTTP_11, &target, &["localhost"]);
            assert_eq!(got, code, "{host}");
        }
        let all = super::HostRule::new(false, &["*".to_owned()]);
        assert_eq!(check(&all, Version::HTTP_11, "/", &["x.example"]), 200);
    }

    #[test]
    fn the_machine_is_served_by_its_own_name() {
        let name = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        assert_eq!(
            check(&rule(false, &[]), Version::HTTP_11, "/", &[&name]),
            200
        );
    }

    #[test]
    fn certificates_name_the_hosts_of_tls_listeners_unless_the_settings_do() {
        for (allowed, code) in [(&[][..], 200), (&["atoll.example"][..], 421)] {
            let rule = rule(true, allowed);
            assert_eq!(check(&rule, Version::HTTP_11, "/", &["x.example"]), code);
            assert_eq!(
                check(&rule, Version::HTTP_2, "https://x.example/", &[]),
                code
            );
        }
    }

    #[test]
    fn a_foreign_host_is_named_with_the_remedy() {
        let text = HostRefusal::Foreign("x.example".to_owned()).text();
        assert!(
            text.contains("x.example") && text.contains("ALLOWED_HOSTS"),
            "{text}"
        );
    }
}
