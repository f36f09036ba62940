//! Settings of the proxy.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use service::forward::ForwardSettings;
use service::limits::Limit;
use service::program::ServerSettings;
use service::server::{HttpSettings, Listen};
use service::settings::Problem;
use service::tls::{CertificateSetting, Certificates, Passthrough};

use crate::files::{self, FilesSettings};
use crate::forwards::Forwards;
use crate::site::SiteSettings;

/// `TCP_NOTSENT_LOWAT` of a client of static files. Units: bytes. The system's default is some megabytes for each slow one;
/// at 10 Gbit/s this lasts for a fifth of a millisecond, enough to be filled again.
const UNSENT_BYTES: u32 = 256 * 1024;

service::settings! {
    /// Settings of the proxy.
    pub struct Settings {
        /// Address of the forwarded ports.
        listen_address: IpAddr = "0.0.0.0",
        /// Forwarded ports and their upstreams, each balanced over all replicas; append ` ready=/PATH` when health checks use another path than `/ready`.
        forwards: Forwards = "8080=http://webui:8080,8989=http://webui:8989,8090=http://api-server:8090,8888=http://image-service:8888",
        /// Folder of the static files; mirrored downloads are in `pub/downloads` below it.
        files_root: PathBuf = "/files",
        /// Port of plain HTTP for the static files alone, for machines that boot and for scripts. Empty: none.
        files_port: Option<u16> = "",
        /// Time zone of the times in listings of static files, as in `Europe/Berlin`, where the system has its data, or `CET-1CEST,M3.5.0,M10.5.0/3`. Empty: the machine's.
        tz: String = "",
        /// Address of the proxy's own `/health`, `/ready` and `/metrics`.
        proxy_status_address: IpAddr = "127.0.0.1",
        /// Port of the proxy's own `/health`, `/ready` and `/metrics`.
        proxy_status_port: u16 = "8404",
        /// Write a line to standard output for each request, without its query, and for each passed connection at its end.
        access_log: bool = "false",
        /// Port on 127.0.0.1 of the status page: routes, replicas, certificates, connections and the last reload, as HTML for browsers and as JSON. Empty: none.
        status_page_port: Option<u16> = "",
    } with {
        /// Names of the site, and the ports that serve them.
        site: SiteSettings,
        /// Limits of clients, trusted proxies, and the listener of the metrics.
        http: HttpSettings,
        /// Bounds of forwarded requests.
        forward: ForwardSettings,
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

    /// Listener of the status page.
    pub(crate) fn listen_status_page(&self) -> Option<Listen> {
        self.status_page_port.map(|port| {
            // Another listener of the server has the metrics.
            let http = HttpSettings {
                metrics_address: None,
                ..self.http.clone()
            };
            Listen::new(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port), None).with(&http)
        })
    }

    /// The static files.
    pub(crate) fn files(&self) -> FilesSettings {
        FilesSettings {
            root: self.files_root.clone(),
            time_zone: self.tz.clone(),
        }
    }

    /// Listener of the static files alone.
    pub(crate) fn listen_files(&self) -> Option<Listen> {
        self.files_port.map(|port| Listen {
            unsent_bytes: Some(UNSENT_BYTES),
            ..self.listen_on(port).below(&self.site.network_domain)
        })
    }

    /// Listener of a forwarded port: the service behind it decides which hosts it serves.
    pub(crate) fn listen_forwarded(&self, port: u16) -> Listen {
        Listen {
            routes_by_host: true,
            ..self.listen_on(port)
        }
    }

    fn listen_on(&self, port: u16) -> Listen {
        Listen::new(SocketAddr::new(self.listen_address, port), None).with(&self.http)
    }

    /// Listener of the site's HTTP, and that of its HTTPS.
    pub(crate) fn site_listens(&self) -> [Listen; 2] {
        let http = Listen {
            routes_by_host: true,
            ..self.listen_on(self.site.proxy_http_port)
        };
        let list = Certificates::List(self.site.certificate_list.clone());
        let https = Listen {
            routes_by_host: true,
            unsent_bytes: Some(UNSENT_BYTES),
            tls: Some(list.into()),
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
        status
            .chain(forwarded)
            .chain(self.listen_files())
            .chain(of_site)
            .chain(self.listen_status_page())
            .collect()
    }

    fn certificates(&self) -> Vec<CertificateSetting> {
        let [_, https] = self.site_listens();
        let served = https.tls.filter(|_| self.site.is_on());
        let list = "CERTIFICATE_LIST";
        let served = served.map(|tls| CertificateSetting::pair(tls, list, list));
        served.into_iter().collect()
    }

    fn limits(&self) -> Vec<Limit> {
        let mut limits = service::forward::limits(&self.forward);
        limits.extend(Passthrough::limits());
        limits.extend(files::limits());
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
        let files = self.files_port.map(|port| ("FILES_PORT", port));
        let page = self.status_page_port.map(|port| ("STATUS_PAGE_PORT", port));
        let status = ("PROXY_STATUS_PORT", self.proxy_status_port);
        for (variable, port) in of_site.chain(files).chain([status]).chain(page) {
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
