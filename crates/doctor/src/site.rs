//! The description of a site: facts of its settings. Absent facts are not checked.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use model::release_payload::ComponentImages;
use oci_client::{Credentials, Mirrors};
use registry_content::RegistryContent;
use url::Url;

use crate::probe::SiteProbe;

/// A site, as its settings describe it.
#[derive(Debug, Clone, Default)]
pub struct SiteFacts {
    /// Rights of the users, as a sentence for people.
    pub access: Option<String>,
    /// Names that the proxy serves.
    pub front: Option<FrontNames>,
    /// Clusters whose names are checked.
    pub clusters: Vec<ClusterNames>,
    /// Time servers: host, or host and port.
    pub time_servers: Vec<String>,
    /// Folders of data.
    pub folders: Vec<DataFolder>,
    /// Memory that the services need. Units: bytes.
    pub memory_bytes: Option<u64>,
    /// Ports of the services on this machine.
    pub ports: Vec<PortUse>,
    /// Certificates of the services.
    pub certificates: Vec<CertificateFile>,
    /// Names whose certificates the services present.
    pub served_names: Vec<ServedName>,
    /// Authorities, as PEM, that are trusted besides the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// Mirrors of registries, for reads.
    pub mirrors: Mirrors,
    /// Whether registries may present any certificate.
    pub is_insecure: bool,
    /// The local registry; without it, images that need another login than those below are a warning.
    pub registry: Option<RegistryAccess>,
    /// Logins of a place that knows no local registry.
    pub logins: Credentials,
    /// The database.
    pub database: Option<SiteProbe>,
    /// The installer API, whose readiness includes the database's.
    pub api: Option<Url>,
    /// Boot images on offer; absent when another source has them.
    pub boot_images: Option<Vec<BootImage>>,
    /// Releases on offer.
    pub releases: Option<Vec<model::versions::ReleaseImage>>,
    /// Content of the registry; absent where it is not on offer.
    pub content: Option<ContentReport>,
    /// Images that hosts run in place of those of the releases; absent at a site that installs nothing.
    pub components: Option<ComponentImages>,
    /// Other images that settings name.
    pub images: Vec<NamedImage>,
    /// Operator catalogs.
    pub catalogs: Vec<SiteProbe>,
    /// Services that are reached by their names.
    pub remote: Vec<RemoteService>,
    /// `SERVICE_BASE_URL`.
    pub service_base_url: Option<String>,
    /// `IMAGE_SERVICE_BASE_URL`.
    pub image_service_base_url: Option<String>,
    /// Why a user of a token issuer could take the name of an administrator.
    pub username_warning: Option<String>,
}

/// The last reading of the registry.
#[derive(Debug, Clone, Default)]
pub struct ContentReport {
    /// `HOST[:PORT][/NAMESPACE]`.
    pub registry: String,
    /// Time of the last reading that succeeded; none before the first.
    pub read_at: Option<String>,
    /// Why the last reading failed, if it did.
    pub failure: Option<String>,
    /// The releases in it.
    pub content: RegistryContent,
}

/// Names that the proxy serves.
#[derive(Debug, Clone, Default)]
pub struct FrontNames {
    /// The names.
    pub names: Vec<String>,
    /// Name or address of the proxy's host.
    pub host: Option<String>,
    /// Whether settings use one of the names: without, a missing name is a warning.
    pub is_used: bool,
}

/// Names of a cluster and the addresses that they lead to.
#[derive(Debug, Clone, Default)]
pub struct ClusterNames {
    /// Name and base domain, with a dot between.
    pub domain: String,
    /// Addresses of the API; empty: any.
    pub api: Vec<IpAddr>,
    /// Addresses of the ingress; empty: any.
    pub ingress: Vec<IpAddr>,
}

/// A folder that data is written to.
#[derive(Debug, Clone)]
pub struct DataFolder {
    /// Path of it, or of its place when it does not exist yet.
    pub path: PathBuf,
    /// Units: bytes. Less free space is a failure.
    pub required_bytes: u64,
}

/// Protocol of a port, by which the service is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServicePort {
    /// `/health` by plain HTTP.
    Http,
    /// The distribution API, by TLS.
    Registry,
    /// Redirects from HTTP to HTTPS, of this host.
    Redirect(String),
    /// TLS with a certificate of the authority in a file.
    Tls {
        /// The server name.
        name: String,
        /// PEM of the authority.
        authority: PathBuf,
    },
    /// PostgreSQL.
    Postgres,
}

/// A port of a service on this machine.
#[derive(Debug, Clone)]
pub struct PortUse {
    /// Name of the service.
    pub service: &'static str,
    /// Setting of the port.
    pub setting: &'static str,
    /// Address at which this machine reaches it.
    pub address: SocketAddr,
    /// Its protocol.
    pub protocol: ServicePort,
}

/// A certificate in a file.
#[derive(Debug, Clone)]
pub struct CertificateFile {
    /// Name of the service, and of the file if it has several.
    pub service: String,
    /// PEM, leaf first.
    pub path: PathBuf,
    /// PEM of its private key.
    pub key: PathBuf,
    /// Names that clients use.
    pub names: Vec<String>,
    /// PEM of the authorities that clients trust; none: others than those of the site.
    pub authority: Option<PathBuf>,
    /// The command that renews it.
    pub renewal: String,
}

/// A name whose certificate is asked for in a TLS handshake.
#[derive(Debug, Clone)]
pub struct ServedName {
    /// Name of the service whose certificate it is.
    pub service: &'static str,
    /// Name of the service that listens.
    pub listener: &'static str,
    /// The server name, or an address.
    pub name: String,
    /// Address at which this machine reaches it.
    pub address: SocketAddr,
}

/// A check of a service that is reached by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteCheck {
    /// It accepts connections.
    Connection,
    /// Its certificate is valid.
    Tls,
    /// It serves operator catalogs by gRPC.
    Catalogs,
}

/// A service that is reached by its name, as from within a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteService {
    /// The check.
    pub check: RemoteCheck,
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The setting that names it, for remedies.
    pub setting: &'static str,
}

impl RemoteService {
    /// Parses `tcp://HOST:PORT`, `tls://HOST:PORT` or `grpc://HOST:PORT`, of the setting `setting`.
    ///
    /// Errors: anything else.
    pub fn parse(text: &str, setting: &'static str) -> Result<Self, String> {
        let expected =
            || format!("{text:?}: expected tcp://HOST:PORT, tls://HOST:PORT or grpc://HOST:PORT");
        let (scheme, address) = text.split_once("://").ok_or_else(expected)?;
        let check = match scheme {
            "tcp" => RemoteCheck::Connection,
            "tls" => RemoteCheck::Tls,
            "grpc" => RemoteCheck::Catalogs,
            _ => return Err(expected()),
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(expected)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains(['/', '@', '?']) {
            return Err(expected());
        }
        Ok(Self {
            check,
            host: host.to_owned(),
            port: port.parse().map_err(|_| expected())?,
            setting,
        })
    }
}

impl fmt::Display for RemoteService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}

/// Access to the local registry.
#[derive(Debug, Clone)]
pub struct RegistryAccess {
    /// Host and port.
    pub address: String,
    /// Logins of it and of others.
    pub credentials: Credentials,
    /// The place of the credentials, for remedies.
    pub source: String,
}

/// A boot image on offer.
#[derive(Debug, Clone, Default)]
pub struct BootImage {
    /// Version of the platform.
    pub openshift_version: String,
    /// Architecture.
    pub cpu_architecture: String,
    /// Stream of its operating system; empty where its release names none.
    pub os_stream: String,
    /// Its URL.
    pub url: String,
    /// For `file://`, its path as seen from here.
    pub path: Option<PathBuf>,
}

/// An image that a setting names.
#[derive(Debug, Clone)]
pub struct NamedImage {
    /// The setting.
    pub setting: String,
    /// The reference.
    pub reference: String,
}

impl SiteFacts {
    /// `SERVICE_BASE_URL` or `IMAGE_SERVICE_BASE_URL`, and its name.
    pub(crate) fn base_urls(&self) -> Vec<(&'static str, &str)> {
        [
            ("SERVICE_BASE_URL", &self.service_base_url),
            ("IMAGE_SERVICE_BASE_URL", &self.image_service_base_url),
        ]
        .into_iter()
        .filter_map(|(name, url)| Some((name, url.as_deref()?)))
        .collect()
    }
}

/// A URL without user, password, query and fragment, for results.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail only for URLs that have neither.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.to_string()
}
