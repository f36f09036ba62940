//! Settings of the catalog server.

mod catalogs;

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use oci_client::{Client, ClientOptions};
use service::Error;
use service::program::ServerSettings;
use service::server::{Http2, HttpSettings, Listen};
use service::settings::Problem;
use service::tls::{self, CertificateSetting};

pub use catalogs::{CatalogConfig, CatalogList};
pub(crate) use catalogs::{UNNAMED, check_name};

service::settings! {
    /// Settings of the catalog server.
    pub struct Settings {
        /// Catalogs to serve: `NAME=SOURCE`, separated by commas. A source is a folder, an image such as
        /// registry.example.org/catalogs/community:v4.20, or `oci:FOLDER[:TAG]` for an OCI image layout.
        /// `NAME:PORT=SOURCE` gives a catalog a port of its own. A single catalog needs no name.
        catalogs: CatalogList = "",
        /// Address to listen on.
        listen_address: IpAddr = "0.0.0.0",
        /// Port of gRPC. Several catalogs share it: `NAME.HOST:PORT` is the catalog NAME, everything else the first.
        catalog_port: u16 = "50051",
        /// Port of the query API, the pages and health. Default: CATALOG_PORT.
        catalog_http_port: Option<u16> = "",
        /// Folder of the caches, with which the next start takes milliseconds. Default: a temporary folder below
        /// TMPDIR, removed at exit.
        catalog_cache_dir: Option<PathBuf> = "",
        /// Refuse missing and stale caches instead of rebuilding them.
        catalog_cache_enforced: bool = "false",
        /// Folder of temporary files.
        tmpdir: PathBuf = "/tmp",
        /// Poll interval of folders, layouts and tags; 0 disables polling.
        catalog_poll_interval: Duration = "15s",
        /// Concurrently read files; 0 for one per processor.
        catalog_workers: usize = "0",
        /// Certificate chain (PEM) of gRPC. Default: plaintext, as OLM expects.
        grpc_cert_file: Option<PathBuf> = "",
        /// Key (PEM) of gRPC.
        grpc_key_file: Option<PathBuf> = "",
        /// Certificate chain (PEM) of CATALOG_HTTP_PORT.
        https_cert_file: Option<PathBuf> = "",
        /// Key (PEM) of CATALOG_HTTP_PORT.
        https_key_file: Option<PathBuf> = "",
        /// Largest request, in bytes.
        grpc_max_message_size: usize = "4194304",
        /// Concurrent calls per connection.
        grpc_max_concurrent_streams: u32 = "1000",
        /// Interval of keep-alive pings on idle connections; 0 disables them.
        grpc_keepalive_interval: Duration = "30s",
        /// Timeout of keep-alive pings.
        grpc_keepalive_timeout: Duration = "20s",
        /// Additional CA certificates (PEM) for image pulls.
        catalog_ca_file: Option<PathBuf> = "",
        /// Skip TLS verification and allow plain HTTP for image pulls.
        catalog_insecure: bool = "false",
        /// Credentials for registries, in the format of a pull secret. Default: the auth files of podman and docker.
        registry_auth_file: Option<PathBuf> = "",
    } with {
        /// Client limits, trusted proxies and the metrics address.
        http: HttpSettings,
    }
}

impl Settings {
    fn grpc_tls(&self) -> Option<tls::TlsConfig> {
        tls_files(self.grpc_cert_file.as_ref(), self.grpc_key_file.as_ref())
    }

    fn https_tls(&self) -> Option<tls::TlsConfig> {
        tls_files(self.https_cert_file.as_ref(), self.https_key_file.as_ref())
    }

    /// The gRPC listener on `port`.
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

    /// The HTTP listener, unless it shares the port of gRPC.
    pub(crate) fn http(&self) -> Option<Listen> {
        let address = SocketAddr::new(self.listen_address, self.catalog_http_port?);
        Some(Listen::new(address, self.https_tls()).with(&self.http))
    }

    /// A registry client with the current credentials and CA files.
    ///
    /// Errors: an unusable file.
    pub(crate) fn registry_client(&self) -> Result<Client, Error> {
        let reading = |e| Error::new("reading CATALOG_CA_FILE", e);
        let ca_file = self.catalog_ca_file.as_ref();
        let options = ClientOptions {
            credentials: oci_client::registry_logins(self.registry_auth_file.as_deref())
                .map_err(|e| Error::new("reading REGISTRY_AUTH_FILE", e))?,
            ca_pem: ca_file.map(fs::read).transpose().map_err(reading)?,
            insecure: self.catalog_insecure,
            plain_http_remedy: Some("CATALOG_INSECURE=true"),
            ..ClientOptions::default()
        };
        let made = Client::new(options);
        made.map_err(|e| Error::new("preparing the client for registries", e))
    }
}

fn tls_files(cert: Option<&PathBuf>, key: Option<&PathBuf>) -> Option<tls::TlsConfig> {
    let (cert, key) = (cert?.clone(), key?.clone());
    Some(tls::CertificateFiles { cert, key }.into())
}

impl ServerSettings for Settings {
    /// Listeners; the first serves health.
    fn listen(&self) -> Vec<Listen> {
        let grpc = self.grpc(self.catalog_port);
        self.http().into_iter().chain([grpc]).collect()
    }

    fn certificates(&self) -> Vec<CertificateSetting> {
        let pair =
            |tls: Option<_>, cert, key| tls.map(|it| CertificateSetting::pair(it, cert, key));
        let ca = self.catalog_ca_file.as_ref();
        let all = [
            pair(self.grpc_tls(), "GRPC_CERT_FILE", "GRPC_KEY_FILE"),
            pair(self.https_tls(), "HTTPS_CERT_FILE", "HTTPS_KEY_FILE"),
            CertificateSetting::trusted("CATALOG_CA_FILE", ca),
        ];
        all.into_iter().flatten().collect()
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.catalogs.0.is_empty() {
            let reason = "no catalog: set a folder or an image, such as CATALOGS=/configs";
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
        let found: Vec<_> = settings
            .problems()
            .iter()
            .map(ToString::to_string)
            .collect();
        found.join("\n")
    }

    #[test]
    fn conflicting_settings_are_refused() {
        assert_eq!(problems(&[("catalogs", "/configs")]), "");
        assert!(problems(&[]).starts_with("CATALOGS:"));
        let found = problems(&[("catalogs", "a:50051=/a,b=/b")]);
        assert!(found.contains("50051 is used twice"), "{found}");
        let found = problems(&[("catalogs", "/a"), ("grpc_cert_file", "/c")]);
        assert!(found.starts_with("GRPC_KEY_FILE:"), "{found}");
        let tls = [("https_cert_file", "/c"), ("https_key_file", "/k")];
        let found = problems(&[("catalogs", "/a"), tls[0], tls[1]]);
        assert!(found.starts_with("CATALOG_HTTP_PORT:"), "{found}");
    }
}
