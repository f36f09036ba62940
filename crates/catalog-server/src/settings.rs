//! What the catalog server reads.

mod catalogs;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use service::program::ServerSettings;
use service::server::{Http2, HttpSettings, Listen};
use service::settings::Problem;
use service::tls;

pub use catalogs::{CatalogConfig, CatalogList};
pub(crate) use catalogs::{UNNAMED, check_name};

service::settings! {
    /// Settings of the catalog server.
    pub struct Settings {
        /// What is served: `NAME=SOURCE`, several separated by commas. A source is a folder, an image as in
        /// registry.example.org/catalogs/community:v4.20, or `oci:FOLDER` and `oci:FOLDER:TAG` for one in OCI's image layout. `NAME:PORT=SOURCE`
        /// gives a catalog a port of its own. A single one may stand without its name.
        catalogs: CatalogList = "",
        /// Address to listen on.
        listen_address: IpAddr = "0.0.0.0",
        /// Port of gRPC. Several catalogs share it: `NAME.HOST:PORT` is the catalog NAME, everything else the first.
        catalog_port: u16 = "50051",
        /// Port of the query API, the page and health; when empty, all of it is on CATALOG_PORT, too.
        catalog_http_port: Option<u16> = "",
        /// Folder for what is made of each catalog, so that the next start takes milliseconds; when empty, a folder below
        /// TMPDIR that goes with the process.
        catalog_cache_dir: Option<PathBuf> = "",
        /// Refuse a catalog whose cache is missing or stale, instead of making it.
        catalog_cache_enforced: bool = "false",
        /// Folder for what is temporary.
        tmpdir: PathBuf = "/tmp",
        /// How often folders, layouts and tags are looked at; 0 for never.
        catalog_poll_interval: Duration = "15s",
        /// Files that are read at the same time; 0 for as many as there are processors.
        catalog_workers: usize = "0",
        /// Certificate chain (PEM) of gRPC; without one it is plain, as OLM expects it.
        grpc_cert_file: Option<PathBuf> = "",
        /// Key (PEM) of gRPC.
        grpc_key_file: Option<PathBuf> = "",
        /// Certificate chain (PEM) of CATALOG_HTTP_PORT.
        https_cert_file: Option<PathBuf> = "",
        /// Key (PEM) of CATALOG_HTTP_PORT.
        https_key_file: Option<PathBuf> = "",
        /// Bytes of the largest request.
        grpc_max_message_size: usize = "4194304",
        /// Calls that one connection may have open.
        grpc_max_concurrent_streams: u32 = "1000",
        /// How often a silent connection is asked whether it is still there; 0 for never.
        grpc_keepalive_interval: Duration = "30s",
        /// How long the answer to that may take.
        grpc_keepalive_timeout: Duration = "20s",
        /// Certificates (PEM) that are trusted while images are pulled, besides the system's.
        catalog_ca_file: Option<PathBuf> = "",
        /// Accept any certificate while images are pulled, and registries without TLS.
        catalog_insecure: bool = "false",
        /// File of logins for registries, as a pull secret has them; else the usual files of podman and docker.
        registry_auth_file: Option<PathBuf> = "",
    } with {
        /// Bounds of clients, trusted proxies, and where the metrics are.
        http: HttpSettings,
    }
}

impl Settings {
    fn grpc_tls(&self) -> Option<tls::TlsConfig> {
        files(self.grpc_cert_file.as_ref(), self.grpc_key_file.as_ref())
    }

    fn https_tls(&self) -> Option<tls::TlsConfig> {
        files(self.https_cert_file.as_ref(), self.https_key_file.as_ref())
    }

    /// Where gRPC is spoken on `port`.
    pub(crate) fn grpc(&self, port: u16) -> Listen {
        let address = SocketAddr::new(self.listen_address, port);
        let mut listen = Listen::new(address, self.grpc_tls()).with(&self.http);
        listen.http2 = Http2 {
            max_streams: Some(self.grpc_max_concurrent_streams),
            keep_alive_interval: Some(self.grpc_keepalive_interval)
                .filter(|interval| !interval.is_zero()),
            keep_alive_timeout: self.grpc_keepalive_timeout,
        };
        listen
    }

    /// Where people and programs without gRPC ask, when that is not where gRPC is spoken.
    pub(crate) fn http(&self) -> Option<Listen> {
        let address = SocketAddr::new(self.listen_address, self.catalog_http_port?);
        Some(Listen::new(address, self.https_tls()).with(&self.http))
    }
}

fn files(cert: Option<&PathBuf>, key: Option<&PathBuf>) -> Option<tls::TlsConfig> {
    let (cert, key) = (cert?.clone(), key?.clone());
    Some(tls::CertificateFiles { cert, key }.into())
}

impl ServerSettings for Settings {
    /// First where health is told.
    fn listen(&self) -> Vec<Listen> {
        let grpc = self.grpc(self.catalog_port);
        self.http().into_iter().chain([grpc]).collect()
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.catalogs.0.is_empty() {
            let reason = "nothing is served: name a folder or an image, as in CATALOGS=/configs";
            problems.push(Problem::new("CATALOGS", reason));
        }
        let mut ports = vec![self.catalog_port];
        ports.extend(self.catalogs.0.iter().filter_map(|catalog| catalog.port));
        ports.extend(self.catalog_http_port);
        ports.retain(|port| *port != 0);
        ports.sort_unstable();
        if let Some([twice, _]) = ports.windows(2).find(|pair| pair[0] == pair[1]) {
            let reason = format!("port {twice} is used twice");
            problems.push(Problem::new("CATALOG_PORT", reason));
        }
        for (cert, key, names) in [
            (
                &self.grpc_cert_file,
                &self.grpc_key_file,
                ["GRPC_CERT_FILE", "GRPC_KEY_FILE"],
            ),
            (
                &self.https_cert_file,
                &self.https_key_file,
                ["HTTPS_CERT_FILE", "HTTPS_KEY_FILE"],
            ),
        ] {
            if cert.is_some() != key.is_some() {
                let missing = names[usize::from(cert.is_some())];
                problems.push(Problem::new(missing, "certificate and key go together"));
            }
        }
        if self.https_cert_file.is_some() && self.catalog_http_port.is_none() {
            let reason = "HTTPS needs a port of its own: gRPC's has GRPC_CERT_FILE";
            problems.push(Problem::new("CATALOG_HTTP_PORT", reason));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use service::settings::{FromValues as _, Values};

    use super::*;

    fn problems(pairs: &[(&str, &str)]) -> String {
        let settings =
            Settings::from_values(&Values::from_pairs(pairs.iter().copied())).expect("it parses");
        let told: Vec<_> = settings
            .problems()
            .iter()
            .map(ToString::to_string)
            .collect();
        told.join("\n")
    }

    #[test]
    fn what_does_not_fit_together_is_told() {
        assert_eq!(problems(&[("catalogs", "/configs")]), "");
        assert!(problems(&[]).starts_with("CATALOGS:"));
        let told = problems(&[("catalogs", "a:50051=/a,b=/b")]);
        assert!(told.contains("50051 is used twice"), "{told}");
        let told = problems(&[("catalogs", "/a"), ("grpc_cert_file", "/c")]);
        assert!(told.starts_with("GRPC_KEY_FILE:"), "{told}");
        let tls = [("https_cert_file", "/c"), ("https_key_file", "/k")];
        let told = problems(&[("catalogs", "/a"), tls[0], tls[1]]);
        assert!(told.starts_with("CATALOG_HTTP_PORT:"), "{told}");
    }
}
