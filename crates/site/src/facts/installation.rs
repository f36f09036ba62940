//! The site of `atoll up`, by its state file.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use api_server::database_probe;
use credentials::secrets::SecretFiles;
use doctor::{
    CertificateFile, CheckStatus, DataFolder, PortUse, RegistryAccess, ServedName, ServicePort,
    SiteFacts, SiteProbe,
};
use oci_client::{Credentials, Login};
use service::{Error, ResultExt as _, file};
use supervisor::{DB_NAME, DB_USER, DataDirectory, ServiceName, UpState};
use url::Url;

use super::catalogs::CatalogSite;
use super::is_local;
use super::settings_file::SettingsFile;
use crate::pod::REGISTRY;

/// Units: bytes.
const REQUIRED_DISK: u64 = 1024 * 1024 * 1024;
/// Units: bytes. Of the database and the API server with a preparation.
const REQUIRED_MEMORY: u64 = 2 * 1024 * 1024 * 1024;
/// The flag that chooses ports.
const PORTS: &str = "--ports-from";
/// The user's settings that offer something to install.
const OFFERS: [&str; 2] = ["RELEASE_IMAGES", "OS_IMAGES"];

/// A running `atoll up`.
struct RunningInstallation {
    directory: DataDirectory,
    state: UpState,
    secrets: SecretFiles,
    /// Those of the API server.
    settings: SettingsFile,
}

/// The site of the data directory `dir`.
///
/// Errors: nothing runs there.
pub fn site(dir: &Path) -> Result<SiteFacts, Error> {
    let directory = DataDirectory::new(Some(dir.to_owned()))?;
    let doing = || format!("reading the site in {}", dir.display());
    let Some(text) = file::read(&directory.state())? else {
        let reason = "no .env of a pod, and no running `atoll up`: name another folder with --dir";
        return Err(Error::new(doing(), reason));
    };
    let state: UpState = serde_json::from_slice(&text).doing(doing)?;
    let installation = RunningInstallation {
        secrets: SecretFiles::in_folder(&directory.secrets(), directory.registry_certificate()),
        settings: SettingsFile::read(directory.variables(ServiceName::ApiServer))?,
        directory,
        state,
    };
    installation.site()
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).doing(|| format!("reading {}", path.display()))
}

impl RunningInstallation {
    fn site(&self) -> Result<SiteFacts, Error> {
        let state = &self.state;
        let password = read(&state.registry_password_file)?;
        let login = Login {
            user: state.registry_user.clone(),
            password: password.trim_end().into(),
        };
        // Of a try-out, whose services only this machine reaches.
        let outside = |name: &str| {
            let url = self.settings.value(name).unwrap_or_default();
            (!is_local(url)).then(|| url.to_owned())
        };
        // A try-out need not offer anything.
        let offers = OFFERS
            .iter()
            .any(|name| self.settings.value(name).is_some());
        let boot_images = || self.settings.boot_images(|path| path.into());
        Ok(SiteFacts {
            access: Some(self.settings.access()?),
            folders: vec![DataFolder {
                path: self.directory.root().to_owned(),
                required_bytes: REQUIRED_DISK,
            }],
            memory_bytes: Some(REQUIRED_MEMORY),
            ports: self.ports(),
            certificates: vec![self.certificate()],
            served_names: self.served_names(),
            ca_pem: Some(read(&state.registry_ca)?.into_bytes()),
            registry: Some(RegistryAccess {
                credentials: Credentials::anonymous().with(state.registry.clone(), login),
                address: state.registry.clone(),
                source: state.registry_password_file.display().to_string(),
            }),
            database: Some(self.database()?),
            api: state.api_url.parse().ok(),
            boot_images: if offers { boot_images()? } else { None },
            releases: if offers {
                self.settings.releases()?
            } else {
                None
            },
            components: offers.then(|| self.settings.components()),
            images: if offers {
                self.settings.images()
            } else {
                Vec::new()
            },
            catalogs: self.catalogs()?,
            service_base_url: outside("SERVICE_BASE_URL"),
            image_service_base_url: outside("IMAGE_SERVICE_BASE_URL"),
            ..SiteFacts::default()
        })
    }

    fn ports(&self) -> Vec<PortUse> {
        let state = &self.state;
        let of_url = |url: &str| Url::parse(url).ok()?.socket_addrs(|| None).ok()?.pop();
        let database = SocketAddr::from((Ipv4Addr::LOCALHOST, state.postgres_port));
        let all = [
            ("db", Some(database), ServicePort::Postgres),
            (REGISTRY, state.registry.parse().ok(), ServicePort::Registry),
            ("api-server", of_url(&state.api_url), ServicePort::Http),
            (
                "image-service",
                of_url(&state.image_service_url),
                ServicePort::Http,
            ),
            ("webui", of_url(&state.ui_url), ServicePort::Http),
        ];
        let port = |(service, address, protocol): (_, Option<SocketAddr>, _)| {
            Some(PortUse {
                service,
                setting: PORTS,
                address: address?,
                protocol,
            })
        };
        all.into_iter().filter_map(port).collect()
    }

    fn registry_address(&self) -> Option<SocketAddr> {
        self.state.registry.parse().ok()
    }

    fn certificate(&self) -> CertificateFile {
        let path = self.state.registry_ca.clone();
        let address = self.registry_address();
        CertificateFile {
            service: REGISTRY.to_owned(),
            key: self.secrets.tls.key.clone(),
            names: address.iter().map(|one| one.ip().to_string()).collect(),
            // Its own.
            authority: Some(path.clone()),
            renewal: format!(
                "`atoll registry cert`, or remove {} and start `atoll up` again",
                path.display()
            ),
            path,
        }
    }

    fn served_names(&self) -> Vec<ServedName> {
        let served = |address: SocketAddr| ServedName {
            service: REGISTRY,
            listener: REGISTRY,
            name: address.ip().to_string(),
            address,
        };
        self.registry_address().into_iter().map(served).collect()
    }

    fn database(&self) -> Result<SiteProbe, Error> {
        let password = &self.secrets.database_password;
        let settings = api_server::Settings {
            db_host: Ipv4Addr::LOCALHOST.to_string(),
            db_port: self.state.postgres_port,
            db_user: DB_USER.to_owned(),
            db_pass: read(password)?.trim_end().to_owned().into(),
            db_name: DB_NAME.to_owned(),
            ..api_server::Settings::default()
        };
        Ok(database_probe(&settings, password.display().to_string()))
    }

    fn catalogs(&self) -> Result<Vec<SiteProbe>, Error> {
        let Ok(address) = self.state.catalog_server.parse() else {
            return Ok(Vec::new());
        };
        let log = self.directory.log(ServiceName::CatalogServer.as_str());
        let site = CatalogSite {
            address,
            absent: CheckStatus::Failed,
            start: "start `atoll up` again",
            log: log.display().to_string(),
        };
        let probes = site.probes(&self.state.catalogs);
        probes.doing("reading the catalogs of `atoll up`")
    }
}
