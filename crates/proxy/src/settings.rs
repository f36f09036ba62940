//! Settings of the proxy.

use std::net::{IpAddr, SocketAddr};

use net::resolve::Resolver;
use service::limits::Limit;
use service::program::ServerSettings;
use service::server::{HttpSettings, Listen};
use service::settings::Problem;
use service::tls::{Certificates, Passthrough};

use crate::forwards::Forwards;
use crate::site::{HostPort, SiteSettings};

service::settings! {
    /// Settings of the proxy.
    pub struct Settings {
        /// Address of the forwarded ports.
        listen_address: IpAddr = "0.0.0.0",
        /// Forwarded ports and their upstreams, each balanced over all replicas; append ` ready=/PATH` when health checks use another path than `/ready`.
        forwards: Forwards = "8080=http://webui:8080,8989=http://webui:8989,8090=http://api-server:8090,8888=http://image-service:8888",
        /// Concurrent requests and tunnels per upstream, over all clients; one more gets 503. 0: no limit.
        max_forwarded_requests: usize = "4000",
        /// Address of the proxy's own `/health`, `/ready` and `/metrics`.
        proxy_status_address: IpAddr = "127.0.0.1",
        /// Port of the proxy's own `/health`, `/ready` and `/metrics`.
        proxy_status_port: u16 = "8404",
    } with {
        /// Names of the site, and the ports that serve them.
        site: SiteSettings,
        /// Limits of clients, trusted proxies, and the listener of the metrics.
        http: HttpSettings,
    }
}

impl Settings {
    /// Listener of the proxy's own status.
    pub(crate) fn status(&self) -> Listen {
        let address = SocketAddr::new(self.proxy_status_address, self.proxy_status_port);
        // The forwarded ports start the listener of the metrics.
        let http = HttpSettings {
            metrics_address: None,
            ..self.http.clone()
        };
        Listen::new(address, None).with(&http)
    }

    /// Listener of a forwarded port.
    pub(crate) fn listen_on(&self, port: u16) -> Listen {
        Listen::new(SocketAddr::new(self.listen_address, port), None).with(&self.http)
    }

    /// Listener of the site's HTTP, and that of its HTTPS with the registry's connections.
    pub(crate) fn site_listens(&self, names: &Resolver) -> [Listen; 2] {
        let http = Listen {
            routes_by_host: true,
            ..self.listen_on(self.site.proxy_http_port)
        };
        let HostPort { host, port } = &self.site.registry_address;
        let registry = Passthrough::new(&self.site.registry_name(), (host, *port), names.clone());
        let list = Certificates::List(self.site.certificate_list.clone());
        let https = Listen {
            routes_by_host: true,
            tls: Some(list.into()),
            passthrough: Some(registry),
            ..self.listen_on(self.site.proxy_https_port)
        };
        [http, https]
    }
}

impl ServerSettings for Settings {
    /// The status port comes first: the `health` command uses it.
    fn listen(&self) -> Vec<Listen> {
        let forwarded = self.forwards.iter().map(|entry| self.listen_on(entry.port));
        let of_site = [self.site.proxy_http_port, self.site.proxy_https_port];
        let of_site = of_site.map(|port| self.listen_on(port)).into_iter();
        let of_site = of_site.filter(|_| self.site.is_on());
        let status = std::iter::once(self.status());
        status.chain(forwarded).chain(of_site).collect()
    }

    fn limits(&self) -> Vec<Limit> {
        let mut limits = service::forward::limits(self.max_forwarded_requests);
        limits.extend(Passthrough::limits());
        limits
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.site.problems();
        let of_site = [
            ("PROXY_HTTP_PORT", self.site.proxy_http_port),
            ("PROXY_HTTPS_PORT", self.site.proxy_https_port),
        ];
        let of_site = of_site.into_iter().filter(|_| self.site.is_on());
        let mut taken: Vec<u16> = self.forwards.iter().map(|entry| entry.port).collect();
        for (variable, port) in of_site.chain([("PROXY_STATUS_PORT", self.proxy_status_port)]) {
            if port > 0 && taken.contains(&port) {
                let reason = format!("port {port} is one of another setting, too");
                problems.push(Problem::new(variable, reason));
            }
            taken.push(port);
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_match_the_pod() {
        let settings = Settings::default();
        assert!(settings.problems().is_empty());
        let ports: Vec<u16> = settings.listen().iter().map(|l| l.address.port()).collect();
        assert_eq!(ports, [8404, 8080, 8989, 8090, 8888]);
        assert!(settings.status().address.ip().is_loopback());
    }

    #[test]
    fn the_status_port_is_not_forwarded() {
        let settings = Settings {
            proxy_status_port: 8090,
            ..Settings::default()
        };
        assert_eq!(settings.problems()[0].variable, "PROXY_STATUS_PORT");
    }
}
