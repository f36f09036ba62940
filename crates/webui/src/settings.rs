//! Settings of the web UI server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use service::forward::{ForwardSettings, Upstream};
use service::limits::Limit;
use service::program::ServerSettings;
use service::server::{HttpSettings, Listen};
use service::settings::{Problem, Secret, Setting, shown};
use service::tls::CertificateSetting;
use url::Url;

/// Least length of a key of cookies. Units: bytes.
const KEY_BYTES: usize = 32;

/// Authentication of the installer API's callers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuthType {
    /// None: every caller is the administrator.
    #[default]
    None,
    /// Tokens that people bring.
    Token,
    /// Tokens of an OpenID provider.
    Oidc,
}

impl Setting for AuthType {
    const EXPECTED: &'static str = "none, local, agent-installer-local, oidc or rhsso";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "local" | "agent-installer-local" => Ok(Self::Token),
            "oidc" | "rhsso" => Ok(Self::Oidc),
            other => Err(format!(
                "{other:?} is not supported, only {}",
                Self::EXPECTED
            )),
        }
    }
}

service::settings! {
    /// Settings of the web UI server.
    pub struct Settings {
        /// Address to listen on.
        listen_address: IpAddr = "0.0.0.0",
        /// Port of the UI as the installer's group publishes it.
        webui_port: u16 = "8080",
        /// Port of the UI for the reverse proxy.
        webui_static_port: u16 = "8989",
        /// Folder with the UI's files; when it has no index.html, the status page is all there is.
        static_root: PathBuf = "/app",
        /// Origin of the installer API. Default: ASSISTED_SERVICE_SCHEME and ASSISTED_SERVICE_HOST.
        api_url: Option<String> = "",
        /// Scheme of the installer API.
        assisted_service_scheme: String = "http",
        /// Host and port of the installer API.
        assisted_service_host: String = "127.0.0.1:8090",
        /// Origin of the catalog server, as in http://catalog:50051, for the UI's pages of operators; empty: there are none.
        catalog_server_url: Option<String> = "",
        /// Origin of the registry, as in https://registry:5000, for the UI's pages of repositories; empty: there are none.
        registry_url: Option<String> = "",
        /// URL of the registry's pages for browsers, as in https://registry.example.org/ui/, which the UI links to.
        registry_page_url: Option<String> = "",
        /// PEM file with the certificates that clients of the registry have to trust, which the UI offers for download, and
        /// by which the one of REGISTRY_URL is verified.
        registry_ca_file: Option<PathBuf> = "",
        /// URL of the downloads of the site for browsers, as in https://mirror.example.org/, which the UI links to.
        downloads_url: Option<String> = "",
        /// Content-Security-Policy of the UI's files.
        content_security_policy: String = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
        /// Authentication of the installer API's callers, as its own AUTH_TYPE: with oidc and rhsso people log in at the
        /// provider of OIDC_ISSUER if OIDC_CLIENT_ID is set; otherwise, except with none, they paste a token.
        auth_type: AuthType = "none",
        /// URL of this server for browsers, as in https://atoll.example.org; the OpenID provider needs the redirect URI
        /// WEBUI_BASE_URL/login/callback. With https, cookies are sent over TLS only.
        webui_base_url: Option<String> = "",
        /// OpenID provider that people log in at: the URL above /.well-known/openid-configuration.
        oidc_issuer: String = "",
        /// Id of this server at the OpenID provider.
        oidc_client_id: String = "",
        /// Secret of this server at the OpenID provider; public clients have none.
        oidc_client_secret: Secret = "",
        /// Scopes of log-ins; offline_access makes some providers issue refresh tokens.
        oidc_scopes: String = "openid profile email",
        /// PEM file of the certificate authority of OIDC_ISSUER, beside those of the system.
        oidc_ca_file: Option<PathBuf> = "",
        /// Key of the cookies of sessions, 32 random characters or more, equal in all replicas; empty: a random one,
        /// with which sessions end with the process.
        session_key: Secret = "",
        /// File with the token of the user that browsers on this machine are logged in as by themselves: those that call a loopback
        /// address through no proxy. Each account on this machine can act as that user. With tokens that people bring only.
        loopback_log_in_token_file: Option<PathBuf> = "",
        /// Longest session of a person.
        session_lifetime: Duration = "12h",
    } with {
        /// Limits of clients, trusted proxies, and the listener of the metrics.
        http: HttpSettings,
        /// Bounds of forwarded requests.
        forward: ForwardSettings,
    }
}

impl Settings {
    /// Origin of the installer API.
    ///
    /// Errors: when its variables make no plain HTTP origin.
    pub fn upstream(&self) -> Result<Upstream, Problem> {
        let (variable, url) = match &self.api_url {
            Some(url) => ("API_URL", url.clone()),
            None => (
                "ASSISTED_SERVICE_HOST",
                format!(
                    "{}://{}",
                    self.assisted_service_scheme, self.assisted_service_host
                ),
            ),
        };
        Upstream::parse(&url)
            .map(|upstream| upstream.called("the installer API"))
            .map_err(|error| Problem::new(variable, format!("{}{error}", shown(&url))))
    }

    /// Origin of the catalog server, if there is one.
    ///
    /// Errors: CATALOG_SERVER_URL is no plain HTTP origin.
    pub(crate) fn catalog_server(&self) -> Result<Option<Upstream>, Problem> {
        let Some(url) = self.catalog_server_url.as_deref() else {
            return Ok(None);
        };
        Upstream::parse(url)
            .map(|upstream| Some(upstream.called("the catalog server")))
            .map_err(|error| Problem::new("CATALOG_SERVER_URL", format!("{}{error}", shown(url))))
    }

    /// Origin of the registry, if there is one.
    ///
    /// Errors: REGISTRY_URL is no origin of http or https.
    pub(crate) fn registry(&self) -> Result<Option<Url>, Problem> {
        let Some(url) = self.registry_url.as_deref() else {
            return Ok(None);
        };
        let wrong = |reason| Problem::new("REGISTRY_URL", reason);
        origin(url, true).map_err(wrong)?;
        let parsed = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        Ok(Some(parsed))
    }

    /// Origin of this server for browsers, without a slash at its end.
    pub(crate) fn base_url(&self) -> Option<String> {
        let url = Url::parse(self.webui_base_url.as_deref()?).ok()?;
        Some(url.origin().ascii_serialization())
    }

    /// Whether people log in at an OpenID provider.
    pub(crate) fn has_provider(&self) -> bool {
        self.auth_type == AuthType::Oidc && !self.oidc_client_id.is_empty()
    }

    fn problems_of_links(&self) -> Vec<Problem> {
        let links = [
            ("REGISTRY_PAGE_URL", &self.registry_page_url),
            ("DOWNLOADS_URL", &self.downloads_url),
        ];
        let wrong = links.into_iter().filter_map(|(name, link)| {
            let reason = origin(link.as_deref()?, false).err()?;
            Some(Problem::new(name, reason))
        });
        wrong.collect()
    }

    fn problems_of_log_in(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let key = self.session_key.expose_secret();
        if !key.is_empty() && key.len() < KEY_BYTES {
            let text = "is too short: `openssl rand -base64 32` prints a key";
            problems.push(Problem::new("SESSION_KEY", text.to_owned()));
        }
        let base = self.webui_base_url.as_deref();
        if let Some(Err(reason)) = base.map(|url| origin(url, true)) {
            problems.push(Problem::new("WEBUI_BASE_URL", reason));
        }
        if self.has_provider() {
            if let Err(reason) = origin(&self.oidc_issuer, false) {
                problems.push(Problem::new("OIDC_ISSUER", reason));
            }
            if base.is_none() {
                let text = "is required while OIDC_CLIENT_ID is set";
                problems.push(Problem::new("WEBUI_BASE_URL", text.to_owned()));
            }
            let mut scopes = self.oidc_scopes.split_ascii_whitespace();
            if !scopes.any(|scope| scope == "openid") {
                let text = "requires the scope openid";
                problems.push(Problem::new("OIDC_SCOPES", text.to_owned()));
            }
        }
        problems
    }
}

/// Errors: no URL of http or https with a host, or more than that.
fn origin(text: &str, is_bare: bool) -> Result<(), String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("expects a URL of http or https".to_owned());
    }
    let has_more =
        url.query().is_some() || url.fragment().is_some() || (is_bare && url.path() != "/");
    if has_more || !url.username().is_empty() || url.password().is_some() {
        return Err(
            "expects no user, query or fragment; WEBUI_BASE_URL and REGISTRY_URL have no path, either".to_owned(),
        );
    }
    Ok(())
}

impl ServerSettings for Settings {
    fn listen(&self) -> Vec<Listen> {
        [self.webui_port, self.webui_static_port]
            .map(|port| {
                let address = SocketAddr::new(self.listen_address, port);
                let base_url = self.webui_base_url.as_deref().unwrap_or_default();
                Listen::new(address, None).with(&self.http).at(base_url)
            })
            .into()
    }

    fn certificates(&self) -> Vec<CertificateSetting> {
        let of_provider = self.oidc_ca_file.as_ref().filter(|_| self.has_provider());
        let all = [
            CertificateSetting::trusted("REGISTRY_CA_FILE", self.registry_ca_file.as_ref()),
            CertificateSetting::trusted("OIDC_CA_FILE", of_provider),
        ];
        all.into_iter().flatten().collect()
    }

    fn limits(&self) -> Vec<Limit> {
        let mut limits = service::forward::limits(&self.forward);
        limits.extend(crate::login::limits());
        limits.extend(crate::registry::limits());
        limits
    }

    fn problems(&self) -> Vec<Problem> {
        let upstreams = [
            self.upstream().err(),
            self.catalog_server().err(),
            self.registry().err(),
        ];
        upstreams
            .into_iter()
            .flatten()
            .chain(self.problems_of_links())
            .chain(self.problems_of_log_in())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_found_by_either_spelling() {
        let by_host = Settings {
            assisted_service_host: "api.example:8090".to_owned(),
            ..Settings::default()
        };
        assert_eq!(
            by_host.upstream().unwrap().to_string(),
            "http://api.example:8090"
        );
        let by_url = Settings {
            api_url: Some("http://api:1/".to_owned()),
            ..by_host
        };
        assert_eq!(by_url.upstream().unwrap().to_string(), "http://api:1");
    }

    #[test]
    fn the_variable_with_a_wrong_url_is_named() {
        for (wrong, because) in [
            ("https://api:8090", "http://"),
            ("api", "http://"),
            ("http://api/base", "path"),
            ("http://", "http://"),
            ("http://user:secret@api", "user"),
        ] {
            let settings = Settings {
                api_url: Some(wrong.to_owned()),
                ..Settings::default()
            };
            let problem = settings.upstream().unwrap_err();
            assert_eq!(problem.variable, "API_URL");
            assert!(problem.reason.contains(because), "{}", problem.reason);
            assert!(!problem.reason.contains("secret"), "{}", problem.reason);
        }
    }

    #[test]
    fn settings_of_the_log_in_are_checked() {
        let good = Settings {
            auth_type: AuthType::Oidc,
            webui_base_url: Some("https://ui.example/".to_owned()),
            oidc_issuer: "https://issuer.example/realms/lab".to_owned(),
            oidc_client_id: "atoll".to_owned(),
            session_key: "x".repeat(KEY_BYTES).into(),
            ..Settings::default()
        };
        assert!(good.problems().is_empty());
        assert_eq!(good.base_url().unwrap(), "https://ui.example");
        let found = |change: fn(&mut Settings)| {
            let mut settings = good.clone();
            change(&mut settings);
            let problems = settings.problems();
            assert_eq!(problems.len(), 1, "{problems:?}");
            problems[0].variable.clone()
        };
        assert_eq!(found(|s| s.session_key = "secret".into()), "SESSION_KEY");
        assert_eq!(found(|s| s.webui_base_url = None), "WEBUI_BASE_URL");
        assert_eq!(
            found(|s| s.webui_base_url = Some("https://a/b".to_owned())),
            "WEBUI_BASE_URL"
        );
        assert_eq!(
            found(|s| s.downloads_url = Some("javascript:alert(1)".to_owned())),
            "DOWNLOADS_URL"
        );
        assert_eq!(found(|s| s.oidc_issuer = String::new()), "OIDC_ISSUER");
        assert_eq!(
            found(|s| s.oidc_scopes = "profile".to_owned()),
            "OIDC_SCOPES"
        );
    }
}
