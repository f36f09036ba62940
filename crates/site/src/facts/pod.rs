//! The site of a pod, by the files in its folder.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use api_server::database_probe;
use credentials::secrets::LOGINS;
use doctor::{
    CertificateFile, CheckStatus, DataFolder, FrontNames, PortUse, RegistryAccess, ServedName,
    ServicePort, SiteFacts, SiteProbe,
};
use net::certificate;
use oci_client::{Credentials, Mirrors};
use service::{Error, ResultExt as _};
use url::Url;

use super::catalogs::CatalogSite;
use super::settings_file::SettingsFile;
use crate::event::SiteObserver;
use crate::pod::proxy_settings::PROXY_SETTINGS;
use crate::pod::settings_files::DOMAIN_SETTING;
use crate::pod::{PROXY, REGISTRY, SETTINGS};
use crate::podman;

/// Units: bytes.
const REQUIRED_DISK: u64 = 1024 * 1024 * 1024;
/// Units: bytes. Of all services, without the installer of a preparation.
const REQUIRED_MEMORY: u64 = 2 * 1024 * 1024 * 1024;
/// Volumes of podman, unless it names another folder.
const VOLUMES: &str = "/var/lib/containers/storage/volumes";
/// Fixed names of the domain.
const FIXED: [&str; 2] = [REGISTRY, "mirror"];
/// Service of the names of the domain.
const PROXY_SERVICE: &str = "proxy";
/// The list of the proxy's certificates, and their folder in its container.
const LIST: &str = "crt-list.txt";
const CERTIFICATES: &str = "/certs/";
/// The folder of boot images in the containers.
const IMAGES: &str = "/images/";
/// Path of the database's authority in the API server's container, and in the folder. Source: compose.yaml.
const DATABASE_CA: [&str; 2] = ["/data/db-ca.crt", "secrets/db-ca.crt"];

/// Published ports of single services: service, setting, default, protocol. Source: compose.yaml.
static PORTS: &[(&str, &str, &str, ServicePort)] = &[
    ("db", "PUBLISH_DB", "127.0.0.1:5432", ServicePort::Postgres),
    (
        "registry",
        "PUBLISH_REGISTRY",
        "5000",
        ServicePort::Registry,
    ),
    ("api-server", "PUBLISH_API", "8090", ServicePort::Http),
    ("image-service", "PUBLISH_IMAGES", "8888", ServicePort::Http),
    ("webui", "PUBLISH_WEBUI", "8080", ServicePort::Http),
    ("webui", "PUBLISH_WEBUI_STATIC", "8989", ServicePort::Http),
];
/// A further port of the image service, when set.
const FURTHER_IMAGES: &str = "HTTP_LISTEN_PORT";
/// Ports of the names of the domain: setting and default.
const HTTP: (&str, &str) = ("PUBLISH_HTTP", "80");
const HTTPS: (&str, &str) = ("PUBLISH_HTTPS", "443");
const CATALOG: (&str, &str) = ("PUBLISH_CATALOG", "50051");

/// The settings and the folder.
struct PodFiles<'a> {
    dir: &'a Path,
    settings: SettingsFile,
    /// Of the proxy; those of earlier versions are in `.env`.
    proxy: Option<SettingsFile>,
}

/// The site of the pod in `dir`.
///
/// Errors: unreadable or malformed files; the text names the setting.
pub fn site(dir: &Path, observe: SiteObserver<'_>) -> Result<SiteFacts, Error> {
    let absolute = |e| Error::new(format!("reading {}", dir.display()), e);
    // Findings and remedies are read elsewhere, too.
    let dir = &std::path::absolute(dir).map_err(absolute)?;
    let settings = SettingsFile::read(dir.join(SETTINGS))?;
    let proxy = dir.join(PROXY_SETTINGS);
    let proxy = proxy.exists().then(|| SettingsFile::read(proxy));
    let files = PodFiles {
        dir,
        settings,
        proxy: proxy.transpose()?,
    };
    files.site(observe)
}

impl PodFiles<'_> {
    fn site(&self, observe: SiteObserver<'_>) -> Result<SiteFacts, Error> {
        let host = self.host();
        let host = host.as_deref();
        let ports = self.ports()?;
        let at = |service: &str| ports.iter().find(|one| one.service == service);
        let registry_port = at("registry").map_or(5000, |one| one.address.port());
        let api =
            at("api-server").and_then(|one| Url::parse(&format!("http://{}", one.address)).ok());
        let database = self.database(at("db").map(|one| one.address))?;
        Ok(SiteFacts {
            access: Some(self.settings.access()?),
            front: self.front(host),
            time_servers: self.settings.list("NTP_DEFAULT_SERVER"),
            folders: self.folders(),
            memory_bytes: Some(REQUIRED_MEMORY),
            certificates: self.certificates(host),
            served_names: self.served_names(host, registry_port)?,
            ca_pem: self.authorities(),
            mirrors: self.mirrors(observe)?,
            registry: Some(self.registry(host, registry_port)?),
            database: Some(database),
            api,
            boot_images: self.settings.boot_images(|path| self.own_path(path))?,
            releases: self.settings.releases()?,
            components: Some(self.settings.components()),
            images: self.settings.images(),
            catalogs: self.catalogs()?,
            service_base_url: self.value("SERVICE_BASE_URL").map(str::to_owned),
            image_service_base_url: self.value("IMAGE_SERVICE_BASE_URL").map(str::to_owned),
            ports,
            ..SiteFacts::default()
        })
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.settings.value(name)
    }

    /// A setting of the proxy.
    fn of_proxy(&self, name: &str) -> Option<&str> {
        self.proxy.as_ref().unwrap_or(&self.settings).value(name)
    }

    fn host(&self) -> Option<String> {
        let url = Url::parse(self.value("SERVICE_BASE_URL")?).ok()?;
        url.host_str()
            .map(|host| host.trim_matches(['[', ']']).to_owned())
    }

    fn folders(&self) -> Vec<DataFolder> {
        let volumes = podman::run(&["info", "--format", "{{.Store.VolumePath}}"]);
        let volumes = volumes.map_or_else(|_| VOLUMES.into(), |path| PathBuf::from(path.trim()));
        let volumes = Some(volumes).filter(|path| path.exists());
        let folder = |path| DataFolder {
            path,
            required_bytes: REQUIRED_DISK,
        };
        std::iter::once(self.dir.to_owned())
            .chain(volumes)
            .map(folder)
            .collect()
    }

    /// The login of the API server, at the published address `own` if the database is the pod's.
    fn database(&self, own: Option<SocketAddr>) -> Result<SiteProbe, Error> {
        let password = self.dir.join("secrets/database-password");
        let db_pass = std::fs::read_to_string(&password)
            .doing(|| format!("reading {}", password.display()))?;
        let text = |name: &str, default: &str| self.value(name).unwrap_or(default).to_owned();
        let host = text("DB_HOST", "db");
        let (db_host, db_port) = match own.filter(|_| host == "db") {
            Some(own) => (own.ip().to_string(), own.port()),
            None => (host, self.settings.parsed("DB_PORT")?.unwrap_or(5432)),
        };
        let db_ca_file = self.value("DB_CA_FILE").map(|path| match path {
            path if path == DATABASE_CA[0] => self.dir.join(DATABASE_CA[1]),
            path => PathBuf::from(path),
        });
        let settings = api_server::Settings {
            db_host,
            db_port,
            db_user: text("DB_USER", "admin"),
            db_pass: db_pass.trim_end().to_owned().into(),
            db_name: text("DB_NAME", "installer"),
            db_sslmode: self.settings.parsed("DB_SSLMODE")?.unwrap_or_default(),
            db_ca_file,
            ..api_server::Settings::default()
        };
        Ok(database_probe(&settings, password.display().to_string()))
    }

    fn catalogs(&self) -> Result<Vec<SiteProbe>, Error> {
        let profiles = self.settings.list("COMPOSE_PROFILES");
        let site = CatalogSite {
            address: self.port(CATALOG.0, CATALOG.1)?,
            absent: if profiles.iter().any(|profile| profile == "catalog") {
                CheckStatus::Failed
            } else {
                // Not wanted.
                CheckStatus::Passed
            },
            start: "COMPOSE_PROFILES=catalog in .env, then `atoll pod up`, starts it",
            log: "`atoll pod logs catalog`".to_owned(),
        };
        let catalogs = self.value("CATALOGS").unwrap_or("/catalogs");
        let probes = site.probes(catalogs);
        probes.map_err(|reason| self.settings.invalid("CATALOGS", &reason))
    }

    /// Mirrors of the API server, if its file is on this machine, too.
    fn mirrors(&self, observe: SiteObserver<'_>) -> Result<Mirrors, Error> {
        let path = self.value("REGISTRIES_CONF_PATH");
        let path = path.map(|path| self.own_path(path));
        match path.filter(|path| path.exists()) {
            Some(path) => super::mirrors::read(&[path], observe),
            None => Ok(Mirrors::default()),
        }
    }

    /// Names of the domain.
    fn names(&self, domain: &str) -> Vec<String> {
        let labels = ["API_HOST", "WEB_HOST", "SERVICE_HOST"].map(|name| self.of_proxy(name));
        let labels = labels.into_iter().flatten().chain(FIXED);
        labels.map(|label| format!("{label}.{domain}")).collect()
    }

    fn front(&self, host: Option<&str>) -> Option<FrontNames> {
        let domain = self.of_proxy(DOMAIN_SETTING)?;
        let ends = format!(".{domain}");
        let uses = |name: &str| {
            self.value(name).is_some_and(|url| {
                Url::parse(url)
                    .is_ok_and(|url| url.host_str().is_some_and(|host| host.ends_with(&ends)))
            })
        };
        Some(FrontNames {
            names: self.names(domain),
            host: host.map(str::to_owned),
            is_used: uses("SERVICE_BASE_URL") || uses("IMAGE_SERVICE_BASE_URL"),
        })
    }

    /// Names of the domain at the port of HTTPS, and of the registry at its own port.
    fn served_names(&self, host: Option<&str>, port: u16) -> Result<Vec<ServedName>, Error> {
        let mut all = Vec::new();
        if let Some(domain) = self.of_proxy(DOMAIN_SETTING) {
            let of_registry = format!("{REGISTRY}.{domain}");
            let address = self.port(HTTPS.0, HTTPS.1)?;
            all.extend(self.names(domain).into_iter().map(|name| ServedName {
                // The proxy passes its connections unchanged.
                service: if name == of_registry {
                    REGISTRY
                } else {
                    PROXY_SERVICE
                },
                listener: PROXY_SERVICE,
                name,
                address,
            }));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let names = host.into_iter().chain([REGISTRY]);
        all.extend(names.map(|name| ServedName {
            service: REGISTRY,
            listener: REGISTRY,
            name: name.to_owned(),
            address,
        }));
        Ok(all)
    }

    fn ports(&self) -> Result<Vec<PortUse>, Error> {
        let published = |service, setting, default: &str, protocol| {
            Ok::<_, Error>(PortUse {
                service,
                setting,
                address: self.port(setting, default)?,
                protocol,
            })
        };
        let mut all = Vec::new();
        for (service, setting, default, protocol) in PORTS {
            all.push(published(*service, *setting, default, protocol.clone())?);
        }
        if self.value(FURTHER_IMAGES).is_some() {
            let http = ServicePort::Http;
            all.push(published("image-service", FURTHER_IMAGES, "", http)?);
        }
        // Without a domain the proxy serves none.
        if let Some(domain) = self.of_proxy(DOMAIN_SETTING) {
            let name = format!("mirror.{domain}");
            let redirect = ServicePort::Redirect(name.clone());
            all.push(published(PROXY_SERVICE, HTTP.0, HTTP.1, redirect)?);
            let authority = self.authority();
            let tls = ServicePort::Tls { name, authority };
            all.push(published(PROXY_SERVICE, HTTPS.0, HTTPS.1, tls)?);
        }
        Ok(all)
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
            _ => {
                let reason = format!("{text}: expected [ADDRESS:]PORT");
                Err(self.settings.invalid(setting, &reason))
            }
        }
    }

    /// The path here of one in the containers.
    fn own_path(&self, path: &str) -> PathBuf {
        match path.strip_prefix(IMAGES) {
            Some(name) => self.dir.join("images").join(name),
            None => PathBuf::from(path),
        }
    }

    fn registry(&self, host: Option<&str>, port: u16) -> Result<RegistryAccess, Error> {
        let path = self.dir.join("secrets").join(LOGINS);
        let doing = || format!("reading {}", path.display());
        let text = std::fs::read_to_string(&path).doing(doing)?;
        let credentials = Credentials::from_auth_file(&text).doing(doing)?;
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
        let of_registry = CertificateFile {
            service: REGISTRY.to_owned(),
            // Older pods have no authority.
            authority: Some(if is_self_signed {
                path.clone()
            } else {
                self.authority()
            }),
            path,
            key: self.dir.join("secrets/registry.key"),
            names,
            renewal:
                "remove secrets/registry.crt and secrets/registry.key, and run `atoll pod init`"
                    .to_owned(),
        };
        let domain = self.of_proxy(DOMAIN_SETTING);
        let of_domain = domain
            .into_iter()
            .flat_map(|domain| self.certificates_of_proxy(domain));
        std::iter::once(of_registry).chain(of_domain).collect()
    }

    /// The certificate of the domain, and further ones in the list of the proxy.
    fn certificates_of_proxy(&self, domain: &str) -> Vec<CertificateFile> {
        let folder = self.dir.join(PROXY);
        let name = format!("{domain}.pem");
        let own = CertificateFile {
            service: PROXY_SERVICE.to_owned(),
            path: folder.join(&name),
            key: folder.join(&name),
            names: vec![format!("api.{domain}"), domain.to_owned()],
            authority: Some(self.authority()),
            renewal: format!("atoll certs --domain {domain} --dir {}", folder.display()),
        };
        let list = std::fs::read_to_string(folder.join(LIST)).unwrap_or_default();
        // Options in brackets and a comment may follow the path, and several lines may have one file.
        let listed = list.lines().filter_map(|line| {
            let (line, _) = line.split_once(['#', '[']).unwrap_or((line, ""));
            line.split_whitespace().next()
        });
        let listed = listed.map(|path| path.strip_prefix(CERTIFICATES).unwrap_or(path));
        let listed: BTreeSet<&str> = listed.filter(|path| *path != name).collect();
        let further = listed.into_iter().map(|path| CertificateFile {
            service: format!("{PROXY_SERVICE} ({path})"),
            key: key_of(&folder.join(path)),
            path: folder.join(path),
            names: Vec::new(),
            authority: None,
            renewal: format!(
                "replace {}, or remove its line of {LIST}",
                folder.join(path).display()
            ),
        });
        std::iter::once(own).chain(further).collect()
    }
}

/// The file of a certificate's key: beside it as `x.crt.key` or `x.key`, else the same.
fn key_of(certificate: &Path) -> PathBuf {
    let mut longer = certificate.as_os_str().to_owned();
    longer.push(".key");
    let beside = [longer.into(), certificate.with_extension("key")];
    let found = beside.into_iter().find(|path: &PathBuf| path.exists());
    found.unwrap_or_else(|| certificate.to_owned())
}
