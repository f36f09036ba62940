//! Settings of the web UI server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use service::forward::Upstream;
use service::limits::Limit;
use service::program::ServerSettings;
use service::server::{HttpSettings, Listen};
use service::settings::{Problem, shown};

service::settings! {
    /// Settings of the web UI server.
    pub struct Settings {
        /// Address to listen on.
        listen_address: IpAddr = "0.0.0.0",
        /// Port of the UI as the installer's group publishes it.
        webui_port: u16 = "8080",
        /// Port of the UI for the reverse proxy.
        webui_static_port: u16 = "8989",
        /// Folder with the UI's files; the built-in page is served when it has no index.html.
        static_root: PathBuf = "/app",
        /// Origin of the installer API. Default: ASSISTED_SERVICE_SCHEME and ASSISTED_SERVICE_HOST.
        api_url: Option<String> = "",
        /// Scheme of the installer API.
        assisted_service_scheme: String = "http",
        /// Host and port of the installer API.
        assisted_service_host: String = "127.0.0.1:8090",
        /// Concurrent requests to the installer API, over all clients; one more gets 503. 0: no limit.
        max_forwarded_requests: usize = "4000",
        /// Content-Security-Policy of the UI's files.
        content_security_policy: String = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    } with {
        /// Limits of clients, trusted proxies, and the listener of the metrics.
        http: HttpSettings,
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
}

impl ServerSettings for Settings {
    fn listen(&self) -> Vec<Listen> {
        [self.webui_port, self.webui_static_port]
            .map(|port| {
                let address = SocketAddr::new(self.listen_address, port);
                Listen::new(address, None).with(&self.http)
            })
            .into()
    }

    fn limits(&self) -> Vec<Limit> {
        service::forward::limits(self.max_forwarded_requests)
    }

    fn problems(&self) -> Vec<Problem> {
        self.upstream().err().into_iter().collect()
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
}
