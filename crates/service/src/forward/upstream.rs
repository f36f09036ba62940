//! Origins of upstreams.

use std::fmt;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};

use crate::server::HttpSettings;
use crate::settings::Setting;

/// Readiness path of every server of the workspace.
const READY_PATH: &str = "/ready";
/// Default port of an origin.
const HTTP_PORT: u16 = 80;

/// Origin of a service, plain HTTP; its name may resolve to several replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    authority: Authority,
    name: String,
    ready_path: PathAndQuery,
    /// Shows the service that requests come from its proxy; never in a message.
    proof: Option<HeaderValue>,
}

/// Malformed origin.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// Another scheme than `http`, or no host.
    #[error("give it as http://HOST:PORT, it is reached without TLS")]
    NotHttp,
    /// Path or query after the port.
    #[error("a path is not possible here, requests keep the path that they came with")]
    HasPath,
    /// User name before the host.
    #[error("a user name is not possible here, requests keep the credentials that they came with")]
    HasUser,
}

impl Upstream {
    /// Parses `http://HOST:PORT`; its name in messages is `HOST:PORT`.
    ///
    /// Errors: another scheme, no host, a user, or a path.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        let uri: Uri = text.trim().parse().map_err(|_| OriginError::NotHttp)?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(OriginError::NotHttp);
        }
        if uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(OriginError::HasPath);
        }
        let authority = uri
            .authority()
            .filter(|authority| !authority.host().is_empty())
            .cloned()
            .ok_or(OriginError::NotHttp)?;
        if authority.as_str().contains('@') {
            return Err(OriginError::HasUser);
        }
        // After the host comes nothing, or a colon and a text that `Uri` has not parsed as a port.
        if authority.port_u16().is_none() && authority.as_str() != authority.host() {
            return Err(OriginError::NotHttp);
        }
        Ok(Self {
            name: authority.to_string(),
            authority,
            ready_path: PathAndQuery::from_static(READY_PATH),
            proof: None,
        })
    }

    /// Sets the name in messages.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the path of health checks; `/ready` by default.
    #[must_use]
    pub fn ready_at(mut self, path: PathAndQuery) -> Self {
        self.ready_path = path;
        self
    }

    /// Sends the secret that the proxies of the service share with it, if the settings have one.
    #[must_use]
    pub fn proven_by(mut self, http: &HttpSettings) -> Self {
        self.proof = http.proxy_secret();
        self
    }

    /// Name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Host and port as configured.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Host to resolve: a name, or an address without brackets.
    pub(super) fn host(&self) -> &str {
        let host = self.authority.host();
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    pub(super) fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(HTTP_PORT)
    }

    pub(super) fn proof(&self) -> Option<&HeaderValue> {
        self.proof.as_ref()
    }

    pub(super) fn ready_path(&self) -> &PathAndQuery {
        &self.ready_path
    }
}

impl Setting for Upstream {
    const EXPECTED: &'static str = "http://HOST:PORT";

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|error| error.to_string())
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_parsed() {
        for (text, host, port) in [
            ("http://api-server:8090", "api-server", 8090),
            (" http://api-server:8090/ ", "api-server", 8090),
            ("http://10.0.0.1", "10.0.0.1", 80),
            ("http://[::1]:8090", "::1", 8090),
        ] {
            let upstream = Upstream::parse(text).unwrap();
            assert_eq!((upstream.host(), upstream.port()), (host, port), "{text}");
        }
    }

    #[test]
    fn malformed_origins_are_refused() {
        for text in [
            "",
            "api",
            "api:8090",
            "https://api:8090",
            "http://",
            "http://:8090",
            "http://api:",
            "http://api:x",
            "http://api:99999",
            "http://api/base",
            "http://api?x",
            "http://user:secret@api",
        ] {
            assert!(Upstream::parse(text).is_err(), "{text}");
        }
    }
}
