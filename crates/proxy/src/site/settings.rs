//! Settings of the site's names and of the ports that serve them.

use std::path::PathBuf;

use http::HeaderValue;
use service::forward::Upstream;
use service::settings::{Problem, Setting};

/// Label of the registry below the domain. Source: the specification.
pub(super) const REGISTRY: &str = "registry";

service::settings! {
    /// Settings of the site's names.
    pub struct SiteSettings {
        /// Domain of the site, as in `site.example`: requests on the two ports below are routed by names in it. Empty: these ports are not opened.
        network_domain: String = "",
        /// Label of the API server below the domain.
        api_host: String = "api",
        /// Label of the web UI below the domain.
        web_host: String = "web",
        /// Label of the web UI for agents below the domain, as in SERVICE_FQDN.
        service_host: String = "service",
        /// Port for HTTP, which is redirected to HTTPS.
        proxy_http_port: u16 = "8081",
        /// Port for HTTPS.
        proxy_https_port: u16 = "8443",
        /// Port of HTTPS for clients, where redirects lead: the published one.
        redirect_https_port: u16 = "443",
        /// List of certificates, each a PEM bundle of certificate, chain and key, in HAProxy's format crt-list, or a folder of them; changes are followed.
        certificate_list: PathBuf = "/certs/crt-list.txt",
        /// Origin of the API servers.
        api_url: Upstream = "http://api-server:8090",
        /// Origin of the web UI.
        web_url: Upstream = "http://webui:8989",
        /// Host and port of the registry: TLS connections for `registry.DOMAIN` pass to it as they are.
        registry_address: HostPort = "registry:443",
        /// Origin that requests for `/.well-known/acme-challenge/` on port PROXY_HTTP_PORT go to. Empty: they are for files, as all below `/.well-known/`.
        acme_url: Option<Upstream> = "",
        /// Value of Strict-Transport-Security in responses of HTTPS. off: none, for sites whose certificates may still change: browsers remember it for 185 days, for all names below.
        hsts: Header = "max-age=16000000; includeSubDomains; preload;",
        /// Folder with error pages as `503.html`, for browsers. Empty or missing: those of this server.
        error_pages: Option<PathBuf> = "",
    }
}

/// A host and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// Name, or address without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Setting for HostPort {
    const EXPECTED: &'static str = "HOST:PORT";

    fn parse(text: &str) -> Result<Self, String> {
        let upstream = Upstream::parse(&format!("http://{}", text.trim()))
            .map_err(|_| "it is not HOST:PORT".to_owned())?;
        let (host, port) = upstream
            .authority()
            .rsplit_once(':')
            .ok_or("the port is missing")?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            host: host.to_owned(),
            port: port.parse().map_err(|_| "the port is missing".to_owned())?,
        })
    }
}

/// The value of a header; empty: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header(pub Option<HeaderValue>);

impl Setting for Header {
    const EXPECTED: &'static str = "value of a header, or off";

    fn parse(text: &str) -> Result<Self, String> {
        if matches!(text.trim(), "" | "off") {
            return Ok(Self(None));
        }
        let value = HeaderValue::from_str(text);
        value
            .map(|value| Self(Some(value)))
            .map_err(|_| "it has characters that no header may have".to_owned())
    }
}

impl SiteSettings {
    /// Whether the ports of HTTP and HTTPS are open.
    pub(crate) fn is_on(&self) -> bool {
        !self.network_domain.is_empty()
    }

    /// The name with `label` below the domain, in lower case.
    pub(crate) fn name(&self, label: &str) -> String {
        let domain = self.network_domain.trim_matches('.');
        format!("{}.{domain}", label.trim_matches('.')).to_ascii_lowercase()
    }

    /// The name whose connections pass to the registry.
    pub(crate) fn registry_name(&self) -> String {
        self.name(REGISTRY)
    }

    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !self.is_on() {
            return problems;
        }
        for (variable, label) in [
            ("API_HOST", &self.api_host),
            ("WEB_HOST", &self.web_host),
            ("SERVICE_HOST", &self.service_host),
        ] {
            if !is_name(label) {
                let reason = "it is no name below a domain, as in `api`";
                problems.push(Problem::new(variable, reason));
            }
            // The first entry of the table would have all requests.
            let is_api = variable != "API_HOST" && self.name(label) == self.name(&self.api_host);
            if is_api || self.name(label) == self.registry_name() {
                let reason = "it is the name of another service: API_HOST, or `registry`";
                problems.push(Problem::new(variable, reason));
            }
        }
        if !is_name(self.network_domain.trim_matches('.')) {
            let reason = "it is no domain, as in `site.example`";
            problems.push(Problem::new("NETWORK_DOMAIN", reason));
        }
        if !self.certificate_list.exists() {
            let list = self.certificate_list.display();
            let reason = format!(
                "there is no file {list}: `atoll certs --domain {}` makes certificates and their list",
                self.network_domain
            );
            problems.push(Problem::new("CERTIFICATE_LIST", reason));
        }
        problems
    }
}

/// Whether `text` consists of DNS labels.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let parse = |text: &str| HostPort::parse(text).map(|it| (it.host, it.port)).ok();
        assert_eq!(parse("registry:443"), Some(("registry".to_owned(), 443)));
        assert_eq!(parse("[fd00::1]:5000"), Some(("fd00::1".to_owned(), 5000)));
        for text in [
            "registry",
            "registry:",
            "registry:x",
            ":443",
            "https://registry:443",
            "",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_leads_to_one_service() {
        let settings = SiteSettings {
            network_domain: "site.example".to_owned(),
            certificate_list: concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into(),
            web_host: "API".to_owned(),
            service_host: "registry".to_owned(),
            ..SiteSettings::default()
        };
        let problems = settings.problems();
        let variables = problems.iter().map(|problem| problem.variable.as_str());
        assert_eq!(variables.collect::<Vec<_>>(), ["WEB_HOST", "SERVICE_HOST"]);
        // Both are the page.
        let settings = SiteSettings {
            web_host: "service".to_owned(),
            service_host: "service".to_owned(),
            ..settings
        };
        assert!(settings.problems().is_empty());
    }

    #[test]
    fn problems_name_their_variables() {
        assert!(SiteSettings::default().problems().is_empty());
        let settings = SiteSettings {
            network_domain: "a b".to_owned(),
            api_host: "a/b".to_owned(),
            web_host: String::new(),
            ..SiteSettings::default()
        };
        let problems = settings.problems();
        let variables: Vec<_> = problems
            .iter()
            .map(|problem| problem.variable.as_str())
            .collect();
        assert_eq!(
            variables,
            ["API_HOST", "WEB_HOST", "NETWORK_DOMAIN", "CERTIFICATE_LIST"]
        );
    }
}
