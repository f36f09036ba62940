//! Settings of the proxy.

use std::net::{IpAddr, SocketAddr};

use service::limits::Limit;
use service::program::ServerSettings;
use service::server::{HttpSettings, Listen};
use service::settings::Problem;

use crate::forwards::Forwards;

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
}

impl ServerSettings for Settings {
    /// The status port comes first: the `health` command uses it.
    fn listen(&self) -> Vec<Listen> {
        let forwarded = self.forwards.iter().map(|entry| self.listen_on(entry.port));
        std::iter::once(self.status()).chain(forwarded).collect()
    }

    fn limits(&self) -> Vec<Limit> {
        service::forward::limits(self.max_forwarded_requests)
    }

    fn problems(&self) -> Vec<Problem> {
        let port = self.proxy_status_port;
        let is_forwarded = self.forwards.iter().any(|entry| entry.port == port);
        let problem = || Problem::new("PROXY_STATUS_PORT", format!("FORWARDS has port {port} too"));
        is_forwarded.then(problem).into_iter().collect()
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
