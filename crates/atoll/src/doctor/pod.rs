//! The site of a pod, by the files in its folder.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use doctor::{
    BootImage, CertificateFile, DataFolder, FrontNames, NamedImage, PortUse, RegistryAccess,
    ServicePort, SiteFacts,
};
use model::versions::{OsImage, ReleaseImage};
use net::certificate;
use oci_client::Credentials;
use serde::de::DeserializeOwned;
use service::Error;
use service::settings::{env_lines, not_a_line};
use url::Url;

use crate::pod::{LOGINS, PROXY, REGISTRY, SETTINGS};

/// Units: bytes.
const REQUIRED_DISK: u64 = 1024 * 1024 * 1024;
/// Units: bytes. Of all services, without the installer of a preparation.
const REQUIRED_MEMORY: u64 = 2 * 1024 * 1024 * 1024;
/// Volumes of podman, of root and of users.
const VOLUMES: [&str; 1] = ["/var/lib/containers/storage/volumes"];
/// Fixed names of the domain.
const FIXED: [&str; 2] = [REGISTRY, "mirror"];
/// The folder of boot images in the containers.
const IMAGES: &str = "/images/";

/// Published ports: service, setting, default, protocol. Source: compose.yaml.
static PORTS: &[(&str, &str, &str, ServicePort)] = &[
    ("db", "PUBLISH_DB", "127.0.0.1:5432", ServicePort::Other),
    (
        "registry",
        "PUBLISH_REGISTRY",
        "5000",
        ServicePort::Registry,
    ),
    ("api-server", "PUBLISH_API", "8090", ServicePort::Http),
    ("image-service", "PUBLISH_IMAGES", "8888", ServicePort::Http),
    ("webui", "PUBLISH_WEBUI", "8080", ServicePort::Http),
];
/// Settings that name single images.
const NAMED_IMAGES: [&str; 3] = ["AGENT_DOCKER_IMAGE", "INSTALLER_IMAGE", "CONTROLLER_IMAGE"];

/// The settings and the folder.
struct PodFiles<'a> {
    dir: &'a Path,
    settings: BTreeMap<String, String>,
}

/// The site of the pod in `dir`.
///
/// Errors: unreadable or malformed files; the text names the setting.
pub(super) fn site(dir: &Path) -> Result<SiteFacts, Error> {
    let path = dir.join(SETTINGS);
    let doing = || format!("reading {}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|e| Error::new(doing(), e))?;
    let lines = env_lines(&text).map_err(|line| Error::new(doing(), not_a_line(&path, line)))?;
    let settings = lines
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    PodFiles {
        dir,
        settings: settings.collect(),
    }
    .site()
}

impl PodFiles<'_> {
    fn site(&self) -> Result<SiteFacts, Error> {
        let host = self.host();
        let ports = self.ports()?;
        let at = |service: &str| ports.iter().find(|one| one.service == service);
        let registry_port = at("registry").map_or(5000, |one| one.address.port());
        let api =
            at("api-server").and_then(|one| Url::parse(&format!("http://{}", one.address)).ok());
        let database = match self.value("DB_HOST").unwrap_or("db") {
            "db" => at("db").map(|one| (one.address.ip().to_string(), one.address.port())),
            host => Some((
                host.to_owned(),
                self.value("DB_PORT")
                    .and_then(|port| port.parse().ok())
                    .unwrap_or(5432),
            )),
        };
        let mut folders = vec![self.dir.to_owned()];
        folders.extend(
            VOLUMES
                .iter()
                .map(PathBuf::from)
                .filter(|path| path.exists()),
        );
        let folder = |path| DataFolder {
            path,
            required_bytes: REQUIRED_DISK,
        };
        let list = |name: &str| -> Vec<String> {
            let parts = self.value(name).unwrap_or_default().split(',');
            parts
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        };
        Ok(SiteFacts {
            front: self.front(host.as_deref()),
            time_servers: list("NTP_DEFAULT_SERVER"),
            folders: folders.into_iter().map(folder).collect(),
            memory_bytes: Some(REQUIRED_MEMORY),
            certificates: self.certificates(host.as_deref()),
            ca_pem: self.authorities(),
            registry: Some(self.registry(host.as_deref(), registry_port)?),
            database,
            api,
            boot_images: Some(self.boot_images()?),
            releases: Some(self.json::<ReleaseImage>("RELEASE_IMAGES")?),
            images: self.images(&list("CATALOGS")),
            catalog: Some((
                "127.0.0.1".to_owned(),
                self.port("PUBLISH_CATALOG", "50051")?.port(),
            )),
            service_base_url: self.value("SERVICE_BASE_URL").map(str::to_owned),
            image_service_base_url: self.value("IMAGE_SERVICE_BASE_URL").map(str::to_owned),
            ports,
            ..SiteFacts::default()
        })
    }

    /// A setting that is not empty.
    fn value(&self, name: &str) -> Option<&str> {
        self.settings
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    fn host(&self) -> Option<String> {
        let url = Url::parse(self.value("SERVICE_BASE_URL")?).ok()?;
        url.host_str()
            .map(|host| host.trim_matches(['[', ']']).to_owned())
    }

    fn front(&self, host: Option<&str>) -> Option<FrontNames> {
        let domain = self.value("NETWORK_DOMAIN")?;
        let labels = ["API_HOST", "WEB_HOST", "SERVICE_HOST"].map(|name| self.value(name));
        let labels = labels.into_iter().flatten().chain(FIXED);
        let ends = format!(".{domain}");
        let uses = |name: &str| {
            self.value(name).is_some_and(|url| {
                Url::parse(url)
                    .is_ok_and(|url| url.host_str().is_some_and(|host| host.ends_with(&ends)))
            })
        };
        Some(FrontNames {
            names: labels.map(|label| format!("{label}.{domain}")).collect(),
            host: host.map(str::to_owned),
            is_used: uses("SERVICE_BASE_URL") || uses("IMAGE_SERVICE_BASE_URL"),
        })
    }

    fn ports(&self) -> Result<Vec<PortUse>, Error> {
        let port = |(service, setting, default, protocol): &(
            &'static str,
            &'static str,
            &str,
            ServicePort,
        )| {
            Ok(PortUse {
                service,
                setting,
                address: self.port(setting, default)?,
                protocol: *protocol,
            })
        };
        PORTS.iter().map(port).collect()
    }

    /// The address at which this machine reaches a published port.
    fn port(&self, setting: &str, default: &str) -> Result<SocketAddr, Error> {
        let text = self.value(setting).unwrap_or(default);
        let (address, port) = text.rsplit_once(':').unwrap_or(("", text));
        let address = match address.trim_matches(['[', ']']) {
            "" => Ok(IpAddr::from(Ipv4Addr::UNSPECIFIED)),
            address => address.parse(),
        };
        match (address, port.parse()) {
            (Ok(address), Ok(port)) if address.is_unspecified() => {
                Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
            }
            (Ok(address), Ok(port)) => Ok(SocketAddr::new(address, port)),
            _ => Err(Error::new(
                format!("reading {setting} in {}", self.dir.join(SETTINGS).display()),
                format!("{text}: expected [ADDRESS:]PORT"),
            )),
        }
    }

    /// The elements of a setting with a JSON array.
    fn json<T: DeserializeOwned>(&self, setting: &str) -> Result<Vec<T>, Error> {
        serde_json::from_str(self.value(setting).unwrap_or("[]")).map_err(|e| {
            let path = self.dir.join(SETTINGS);
            Error::new(format!("reading {setting} in {}", path.display()), e)
        })
    }

    fn boot_images(&self) -> Result<Vec<BootImage>, Error> {
        let listed: Vec<OsImage> = match self.value("OS_IMAGES_FILE") {
            None => self.json("OS_IMAGES")?,
            Some(path) => {
                let path = self.own_path(path);
                let doing = || format!("reading OS_IMAGES_FILE, {}", path.display());
                let text = std::fs::read(&path).map_err(|e| Error::new(doing(), e))?;
                serde_json::from_slice(&text).map_err(|e| Error::new(doing(), e))?
            }
        };
        let image = |image: OsImage| BootImage {
            path: image
                .url
                .strip_prefix("file://")
                .map(|path| self.own_path(path)),
            cpu_architecture: image.cpu_architecture.as_str().to_owned(),
            openshift_version: image.openshift_version,
            url: image.url,
        };
        Ok(listed.into_iter().map(image).collect())
    }

    /// The path here of one in the containers.
    fn own_path(&self, path: &str) -> PathBuf {
        match path.strip_prefix(IMAGES) {
            Some(name) => self.dir.join("images").join(name),
            None => PathBuf::from(path),
        }
    }

    fn images(&self, catalogs: &[String]) -> Vec<NamedImage> {
        let named = |setting: &str, reference: &str| NamedImage {
            setting: setting.to_owned(),
            reference: reference.to_owned(),
        };
        let single = NAMED_IMAGES
            .iter()
            .filter_map(|setting| Some(named(setting, self.value(setting)?)));
        // Others are folders.
        let catalogs = catalogs.iter().filter_map(|entry| {
            let (name, reference) = entry.split_once('=')?;
            (!reference.starts_with('/')).then(|| named(&format!("CATALOGS ({name})"), reference))
        });
        single.chain(catalogs).collect()
    }

    fn registry(&self, host: Option<&str>, port: u16) -> Result<RegistryAccess, Error> {
        let path = self.dir.join("secrets").join(LOGINS);
        let doing = || format!("reading {}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|e| Error::new(doing(), e))?;
        let credentials = Credentials::from_auth_file(&text).map_err(|e| Error::new(doing(), e))?;
        // The name of clusters, if the file has it: it is verified then, too.
        let own = host.map(|host| {
            if host.contains(':') {
                format!("[{host}]:{port}")
            } else {
                format!("{host}:{port}")
            }
        });
        let address = own
            .filter(|own| credentials.lookup(own, None).is_some())
            .unwrap_or_else(|| format!("127.0.0.1:{port}"));
        Ok(RegistryAccess {
            address,
            credentials,
            source: path.display().to_string(),
        })
    }

    fn authority(&self) -> PathBuf {
        self.dir.join(PROXY).join("ca.crt")
    }

    fn registry_certificate(&self) -> PathBuf {
        self.dir.join("secrets/registry.crt")
    }

    fn authorities(&self) -> Option<Vec<u8>> {
        let files = [self.registry_certificate(), self.authority()];
        let all: Vec<Vec<u8>> = files
            .iter()
            .filter_map(|path| std::fs::read(path).ok())
            .collect();
        (!all.is_empty()).then(|| all.concat())
    }

    fn certificates(&self, host: Option<&str>) -> Vec<CertificateFile> {
        let path = self.registry_certificate();
        let pem = std::fs::read(&path).unwrap_or_default();
        let leaf = certificate::of_pem(&pem).and_then(|chain| certificate::read(&chain[0]));
        let is_self_signed = leaf.is_ok_and(|leaf| leaf.is_self_issued);
        let mut names = vec![REGISTRY.to_owned()];
        names.extend(host.map(str::to_owned));
        let mut all = vec![CertificateFile {
            service: REGISTRY,
            // Older pods have no authority.
            authority: if is_self_signed {
                path.clone()
            } else {
                self.authority()
            },
            path,
            names,
            renewal:
                "remove secrets/registry.crt and secrets/registry.key, and run `atoll pod init`"
                    .to_owned(),
        }];
        if let Some(domain) = self.value("NETWORK_DOMAIN") {
            all.push(CertificateFile {
                service: "proxy",
                path: self.dir.join(PROXY).join(format!("{domain}.pem")),
                names: vec![format!("api.{domain}"), domain.to_owned()],
                authority: self.authority(),
                renewal: format!(
                    "atoll certs --domain {domain} --dir {}",
                    self.dir.join(PROXY).display()
                ),
            });
        }
        all
    }
}
