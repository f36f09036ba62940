//! Environment variables of each service: fixed by the supervisor, from `--env-file`, and defaults below both.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use api_server::Settings;
use credentials::log_in::{ADMINISTRATOR, AUTH_TYPE, LINK_HOURS, SESSION_KEY};
use credentials::secrets::SecretFiles;
use service::file::{read, write_atomic};
use service::settings::{FromValues as _, Values, env_lines, not_a_line};
use service::{Error, ResultExt as _};
use url::Url;

use crate::data_directory::DataDirectory;
use crate::ports::ServicePorts;
use crate::service_name::ServiceName;
use crate::service_users::ServiceUsers;

/// Owner of the database.
pub const DB_USER: &str = "atoll";
/// Name of the database, as in the documented pod.
pub const DB_NAME: &str = "installer";

/// Settings with URLs of this installation for users and hosts.
const URLS: [&str; 3] = [
    "SERVICE_BASE_URL",
    "IMAGE_SERVICE_BASE_URL",
    "WEBUI_BASE_URL",
];

/// Validity of the token of browsers on this machine, which each start makes anew. Units: days.
const TOKEN_DAYS: u32 = 365;

/// Inputs of the variables.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// The data directory.
    pub(crate) directory: DataDirectory,
    /// Ports of all services.
    pub(crate) ports: ServicePorts,
    /// Listen address of the services.
    pub(crate) listen: IpAddr,
    /// Files with secrets.
    pub(crate) secrets: SecretFiles,
    /// File with the user's variables.
    pub(crate) env_file: Option<PathBuf>,
    /// Catalogs to serve; the catalog server does not run without any.
    pub(crate) catalogs: String,
    /// System user of each service.
    pub(crate) users: ServiceUsers,
    /// Authentication of callers that `--login` has set up; the user's file overrides it.
    pub(crate) log_in: Option<LogIn>,
    /// Shows the API server that a request comes from the web UI: the web UI forwards the addresses of its clients.
    pub(crate) proxy_secret: String,
}

/// Authentication of callers by tokens.
#[derive(Clone)]
pub(crate) struct LogIn {
    settings: Vec<(String, String)>,
    /// File with a token of the administrator, for browsers on this machine.
    token: PathBuf,
}

impl fmt::Debug for LogIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogIn").finish_non_exhaustive()
    }
}

impl LogIn {
    /// The authentication of an earlier start; with `login`, a new one if there is none.
    ///
    /// Errors: a file that cannot be read or written.
    pub(crate) fn of(
        directory: &DataDirectory,
        users: &ServiceUsers,
        login: bool,
    ) -> Result<Option<Self>, Error> {
        let path = directory.secrets().join("log-in.env");
        if login && !path.exists() {
            let lines = credentials::log_in::new_settings()?;
            let lines = lines
                .iter()
                .map(|(name, value)| format!("{name}={value}\n"));
            write_atomic(&path, lines.collect::<String>().as_bytes(), 0o600)?;
        }
        let Some(text) = read(&path)? else {
            return Ok(None);
        };
        let doing = || format!("reading {}", path.display());
        let text = String::from_utf8(text).doing(doing)?;
        let lines =
            env_lines(&text).map_err(|number| Error::new(doing(), not_a_line(&path, number)))?;
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let settings: Vec<_> = lines.into_iter().map(owned).collect();
        let text = api_server::user_token(&keys(&settings), ADMINISTRATOR, TOKEN_DAYS)?;
        let token = directory.secrets().join("loopback-log-in-token");
        write_atomic(&token, text.as_bytes(), 0o600)?;
        users.share(ServiceName::Webui, &token)?;
        Ok(Some(Self { settings, token }))
    }

    /// A link that logs a browser into the web UI at `base`, once.
    ///
    /// Errors: unusable keys.
    pub(crate) fn link(&self, base: &str) -> Result<String, Error> {
        credentials::log_in::link(&keys(&self.settings), ADMINISTRATOR, LINK_HOURS, base)
    }
}

/// Whether a service reads a setting of the authentication: the keys are for the API server alone.
fn reads(service: ServiceName, name: &str) -> bool {
    match service {
        ServiceName::ApiServer => name != SESSION_KEY,
        ServiceName::Webui => matches!(name, AUTH_TYPE | SESSION_KEY),
        _ => false,
    }
}

/// Settings of the installer API with these keys.
fn keys(settings: &[(String, String)]) -> Settings {
    let pairs: Vec<_> = settings
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
        .collect();
    let pairs = pairs.iter().map(|(name, value)| (name.as_str(), *value));
    Settings::from_values(&Values::from_pairs(pairs)).unwrap_or_default()
}

impl Environment {
    /// URL of the installer API.
    pub(crate) fn api_url(&self) -> String {
        format!("http://{}", self.socket(self.ports.api))
    }

    /// URL of the image service.
    pub(crate) fn image_service_url(&self) -> String {
        format!("http://{}", self.socket(self.ports.image))
    }

    /// URL of the web UI.
    pub(crate) fn ui_url(&self) -> String {
        format!("http://{}", self.socket(self.ports.webui))
    }

    /// Host and port of the registry.
    pub(crate) fn registry(&self) -> String {
        self.socket(self.ports.registry).to_string()
    }

    /// Host and port of the catalog server.
    pub(crate) fn catalog_server(&self) -> String {
        self.socket(self.ports.catalog).to_string()
    }

    /// URL of the catalog server for the web UI; empty when there is none.
    fn catalog_server_url(&self) -> String {
        if self.catalogs.is_empty() {
            return String::new();
        }
        let address = SocketAddr::new(loopback(self.listen), self.ports.catalog);
        format!("http://{address}")
    }

    /// URL of the installer API for the other services.
    fn own_api_url(&self) -> String {
        let address = SocketAddr::new(loopback(self.listen), self.ports.api);
        format!("http://{address}")
    }

    /// Services of this installation, in start order.
    pub(crate) fn services(&self) -> impl Iterator<Item = ServiceName> + use<> {
        let has_catalogs = !self.catalogs.is_empty();
        let runs = move |name: &ServiceName| has_catalogs || *name != ServiceName::CatalogServer;
        ServiceName::ALL.into_iter().filter(runs)
    }

    /// Readiness URL of a service.
    pub(crate) fn ready_url(&self, service: ServiceName) -> String {
        let local = |port| SocketAddr::new(loopback(self.listen), port);
        match service {
            ServiceName::Registry => format!("https://{}/ready", local(self.ports.registry)),
            ServiceName::ApiServer => format!("http://{}/ready", local(self.ports.api)),
            ServiceName::ImageService => format!("http://{}/ready", local(self.ports.image)),
            ServiceName::Webui => format!("http://{}/ready", local(self.ports.webui)),
            ServiceName::CatalogServer => format!("http://{}/health", local(self.ports.catalog)),
        }
    }

    /// Variables fixed by the supervisor; they override all others.
    pub(crate) fn fixed(&self, service: ServiceName) -> BTreeMap<&'static str, OsString> {
        let listen = self.listen.to_string();
        let text = |text: &str| OsString::from(text);
        let port = |port: u16| OsString::from(port.to_string());
        let folder = self.directory.of(service).into_os_string();
        let pairs: Vec<(&'static str, OsString)> = match service {
            ServiceName::Registry => vec![
                (
                    "REGISTRY_HTTP_ADDR",
                    text(&SocketAddr::new(self.listen, self.ports.registry).to_string()),
                ),
                (
                    "REGISTRY_HTTP_TLS_CERTIFICATE",
                    self.secrets.tls.cert.clone().into(),
                ),
                ("REGISTRY_HTTP_TLS_KEY", self.secrets.tls.key.clone().into()),
                (
                    "REGISTRY_AUTH_HTPASSWD_PATH",
                    self.secrets.htpasswd.clone().into(),
                ),
                ("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", folder),
                (
                    "REGISTRY_NOTIFICATIONS_ENDPOINTS_0_NAME",
                    text("api-server"),
                ),
                (
                    "REGISTRY_NOTIFICATIONS_ENDPOINTS_0_URL",
                    text(&format!("{}/registry-events", self.own_api_url())),
                ),
                (
                    "REGISTRY_NOTIFICATIONS_ENDPOINTS_0_IGNORE_ACTIONS",
                    text("pull"),
                ),
            ],
            ServiceName::ApiServer => vec![
                ("API_LISTEN_ADDRESS", text(&listen)),
                ("API_LISTEN_PORT", port(self.ports.api)),
                ("DB_HOST", text(&Ipv4Addr::LOCALHOST.to_string())),
                ("DB_PORT", port(self.ports.postgres)),
                ("DB_USER", text(DB_USER)),
                ("DB_NAME", text(DB_NAME)),
                // The private server listens on loopback and has no certificate.
                ("DB_SSLMODE", text("disable")),
                // An empty variable counts as unset: DB_PASS_FILE is used.
                ("DB_PASS", OsString::new()),
                (
                    "DB_PASS_FILE",
                    self.secrets.database_password.clone().into(),
                ),
                ("WORK_DIR", folder),
            ],
            ServiceName::ImageService => vec![
                ("LISTEN_ADDRESS", text(&listen)),
                ("LISTEN_PORT", port(self.ports.image)),
                ("DATA_DIR", folder),
            ],
            ServiceName::Webui => vec![
                ("CATALOG_SERVER_URL", self.catalog_server_url().into()),
                (
                    "REGISTRY_URL",
                    text(&format!("https://{}", self.registry())),
                ),
                ("REGISTRY_CA_FILE", self.secrets.tls.cert.clone().into()),
                (
                    "REGISTRY_PAGE_URL",
                    text(&format!("https://{}/ui/", self.registry())),
                ),
                ("LISTEN_ADDRESS", text(&listen)),
                ("WEBUI_PORT", port(self.ports.webui)),
                ("WEBUI_STATIC_PORT", port(self.ports.webui_static)),
                ("API_URL", text(&self.own_api_url())),
            ],
            ServiceName::CatalogServer => vec![
                ("CATALOGS", text(&self.catalogs)),
                ("CATALOG_CACHE_DIR", folder),
                ("CATALOG_CA_FILE", self.secrets.tls.cert.clone().into()),
                ("LISTEN_ADDRESS", text(&listen)),
                ("CATALOG_PORT", port(self.ports.catalog)),
            ],
        };
        pairs.into_iter().collect()
    }

    /// Writes the file of variables that a service reads below its environment: defaults of this installation, then
    /// the user's lines, which override them.
    ///
    /// Errors: unreadable `--env-file`.
    pub(crate) fn write_variables(&self, service: ServiceName) -> Result<PathBuf, Error> {
        let mut text = String::from("# Written by `atoll up` at each start of the service.\n");
        let lines = self.env_file.as_ref().map(|path| {
            fs::read_to_string(path).doing(|| format!("reading --env-file {}", path.display()))
        });
        let lines = lines.transpose()?.unwrap_or_default();
        // The service itself reports a malformed line.
        let own = env_lines(&lines).unwrap_or_default();
        for (name, value) in self.defaults(service, &own) {
            writeln!(text, "{name}={value}").ok();
        }
        if let Some(path) = &self.env_file {
            writeln!(text, "# {}", path.display()).ok();
            text.push_str(&lines);
            let copy = self.directory.user_variables();
            // After a restore it is the watched file itself: written at each start, it would restart the services for ever.
            if fs::read(&copy).ok().as_deref() != Some(lines.as_bytes()) {
                write_atomic(&copy, lines.as_bytes(), 0o600)?;
            }
        }
        let target = self.directory.variables(service);
        write_atomic(&target, text.as_bytes(), 0o600)?;
        self.users.share(service, &target)?;
        Ok(target)
    }

    fn defaults(&self, service: ServiceName, own: &[(&str, &str)]) -> Vec<(&str, String)> {
        // The names in the user's URLs are names of all services: the web UI forwards requests with the browser's.
        let names = own.iter().filter(|(name, _)| URLS.contains(name));
        let names = names.filter_map(|(_, value)| {
            let url = Url::parse(value).ok()?;
            url.host_str().map(str::to_owned)
        });
        let names: BTreeSet<String> = names.collect();
        let names: Vec<String> = names.into_iter().collect();
        let allowed = ("ALLOWED_HOSTS", names.join(","));
        if !service.follows_env_file() {
            return vec![allowed];
        }
        let api = self.socket(self.ports.api).to_string();
        let mut pairs = vec![
            ("ASSISTED_SERVICE_SCHEME", "http".to_owned()),
            ("ASSISTED_SERVICE_HOST", api),
            ("SERVICE_BASE_URL", self.api_url()),
            ("IMAGE_SERVICE_BASE_URL", self.image_service_url()),
            allowed,
        ];
        if service == ServiceName::ImageService
            && let Some(folder) = std::env::current_exe()
                .ok()
                .as_deref()
                .and_then(Path::parent)
        {
            // Discovery agents are beside this program.
            pairs.push(("AGENT_DIR", folder.display().to_string()));
        }
        if service == ServiceName::ImageService {
            let certificate = self.secrets.tls.cert.display().to_string();
            pairs.push(("OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE", certificate));
            let logins = self.directory.image_service_logins();
            pairs.push(("REGISTRY_AUTH_FILE", logins.display().to_string()));
        }
        if let Some(log_in) = &self.log_in {
            let settings = log_in.settings.iter();
            let settings = settings.filter(|(name, _)| reads(service, name));
            pairs.extend(settings.map(|(name, value)| (name.as_str(), value.clone())));
            if service == ServiceName::Webui {
                let token = log_in.token.display().to_string();
                pairs.push(("LOOPBACK_LOG_IN_TOKEN_FILE", token));
            }
        }
        if matches!(service, ServiceName::ApiServer | ServiceName::Webui) {
            pairs.push(("TRUSTED_PROXY_SECRET", self.proxy_secret.clone()));
        }
        if service == ServiceName::ApiServer {
            pairs.push(("PUBLIC_CONTAINER_REGISTRIES", self.registry()));
            // The web UI proxies requests from this machine and forwards client addresses. Other programs here do not
            // have its secret.
            pairs.push(("TRUSTED_PROXIES", loopback(self.listen).to_string()));
            let certificate = self.secrets.tls.cert.display().to_string();
            pairs.push(("MIRROR_CA_PATH", certificate));
            let path = |path: PathBuf| path.display().to_string();
            pairs.push(("ARCHIVES_DIR", path(self.directory.archives())));
            pairs.push(("ARCHIVES_REGISTRY", self.registry()));
            let logins = path(self.directory.registry_logins());
            pairs.push(("ARCHIVES_REGISTRY_AUTH_FILE", logins));
        }
        pairs
    }

    fn socket(&self, port: u16) -> SocketAddr {
        SocketAddr::new(reachable(self.listen), port)
    }
}

/// Modification time of the file of variables.
pub(crate) fn changed_at(path: Option<&Path>) -> Option<std::time::SystemTime> {
    fs::metadata(path?).ok()?.modified().ok()
}

/// Address of listeners on `listen` for other machines.
pub(crate) fn reachable(listen: IpAddr) -> IpAddr {
    if !listen.is_unspecified() {
        return listen;
    }
    // Nothing is sent: connecting a datagram socket only consults the routing table. 192.0.2.1 is reserved for
    // documentation (RFC 5737).
    let outward = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|socket| {
            socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
            socket.local_addr()
        })
        .map(|address| address.ip());
    outward
        .ok()
        .filter(|address| !address.is_unspecified())
        .unwrap_or_else(|| loopback(listen))
}

/// Address of listeners on `listen` for this machine.
fn loopback(listen: IpAddr) -> IpAddr {
    match listen {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(dir: &Path, env_file: Option<PathBuf>) -> Environment {
        let directory = DataDirectory::new(Some(dir.join("data"))).unwrap();
        directory.create().unwrap();
        let listen = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let secrets =
            SecretFiles::in_folder(&directory.secrets(), directory.registry_certificate());
        let ports = ServicePorts {
            postgres: 1,
            registry: 2,
            api: 3,
            image: 4,
            webui: 5,
            webui_static: 6,
            catalog: 7,
        };
        Environment {
            directory,
            ports,
            listen,
            secrets,
            env_file,
            catalogs: String::new(),
            users: ServiceUsers::default(),
            log_in: None,
            proxy_secret: "shown".to_owned(),
        }
    }

    #[test]
    fn user_variables_override_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("my.env");
        fs::write(&file, "SERVICE_BASE_URL=http://api.example\n").unwrap();
        let environment = environment(dir.path(), Some(file));
        let path = environment.write_variables(ServiceName::ApiServer).unwrap();
        let text = fs::read_to_string(path).unwrap();
        let ours = text.find("SERVICE_BASE_URL=http://127.0.0.1:3").unwrap();
        let theirs = text.find("SERVICE_BASE_URL=http://api.example").unwrap();
        assert!(ours < theirs, "{text}");
    }

    #[test]
    fn names_of_the_user_are_served_by_all_services() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("my.env");
        let lines = "SERVICE_BASE_URL=http://api.example:8090\nWEBUI_BASE_URL=https://ui.example\n";
        fs::write(&file, lines).unwrap();
        let environment = environment(dir.path(), Some(file));
        for service in ServiceName::ALL {
            let text = fs::read_to_string(environment.write_variables(service).unwrap()).unwrap();
            assert!(
                text.contains("\nALLOWED_HOSTS=api.example,ui.example\n"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_copy_of_a_backup_can_be_the_file_itself() {
        let dir = tempfile::tempdir().unwrap();
        let mut environment = environment(dir.path(), None);
        let copy = environment.directory.user_variables();
        fs::write(&copy, "A=b\n").unwrap();
        let early = std::time::UNIX_EPOCH;
        fs::File::options()
            .write(true)
            .open(&copy)
            .unwrap()
            .set_modified(early)
            .unwrap();
        environment.env_file = Some(copy.clone());
        environment.write_variables(ServiceName::Webui).unwrap();
        assert_eq!(changed_at(Some(&copy)), Some(early));
    }

    #[test]
    fn the_web_ui_alone_proves_to_the_api_that_it_forwards_addresses() {
        let dir = tempfile::tempdir().unwrap();
        let environment = environment(dir.path(), None);
        for service in ServiceName::ALL {
            let path = environment.write_variables(service).unwrap();
            let text = fs::read_to_string(path).unwrap();
            let has_secret = text.contains("TRUSTED_PROXY_SECRET=shown");
            let expected = [ServiceName::ApiServer, ServiceName::Webui].contains(&service);
            assert_eq!(has_secret, expected, "{service}");
        }
    }

    #[test]
    fn passwords_are_passed_by_file() {
        let dir = tempfile::tempdir().unwrap();
        let environment = environment(dir.path(), None);
        let fixed = environment.fixed(ServiceName::ApiServer);
        assert_eq!(fixed["DB_PASS"], "");
        assert!(Path::new(&fixed["DB_PASS_FILE"]).ends_with("secrets/database-password"));
    }

    #[test]
    fn the_catalog_server_runs_only_with_catalogs() {
        let dir = tempfile::tempdir().unwrap();
        let mut environment = environment(dir.path(), None);
        assert!(
            environment
                .services()
                .all(|name| name != ServiceName::CatalogServer)
        );
        environment.catalogs = "/configs".to_owned();
        assert!(
            environment
                .services()
                .any(|name| name == ServiceName::CatalogServer)
        );
        assert_eq!(
            environment.fixed(ServiceName::CatalogServer)["CATALOGS"],
            "/configs"
        );
        assert_eq!(
            environment.fixed(ServiceName::Webui)["CATALOG_SERVER_URL"],
            "http://127.0.0.1:7"
        );
    }

    #[test]
    fn a_missing_env_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let environment = environment(dir.path(), Some(PathBuf::from("/none/x.env")));
        let error = environment
            .write_variables(ServiceName::ApiServer)
            .unwrap_err();
        assert!(error.to_string().contains("/none/x.env"), "{error}");
    }
}
