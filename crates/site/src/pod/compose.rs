//! A reader of the pod's compose.yaml, for the keys that configure containers.
//!
//! Variables are those of `.env` alone, so that the same folder always gives the same containers. Keys that are not
//! honoured are rejected by name: none is ignored silently.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ::bundle::interpolation::{interpolate, only_variable};
use serde::Deserialize;
use serde_json::Value;
use service::settings::{env_lines, not_a_line};
use service::{Error, ResultExt as _};

use super::configmap::SETTINGS;

/// The file.
pub(crate) const COMPOSE: &str = "compose.yaml";
/// Names the project, and so containers, volumes and network.
const PROJECT_VARIABLE: &str = "COMPOSE_PROJECT_NAME";
/// Profiles that always run, separated by commas.
const PROFILES_VARIABLE: &str = "COMPOSE_PROFILES";

/// The services of a pod's folder.
#[derive(Debug, Clone)]
pub(crate) struct ComposeProject {
    /// Its folder.
    pub(super) folder: PathBuf,
    /// Its name, the prefix of all names.
    pub(super) name: String,
    /// The services by name, those without an active profile included.
    pub(super) services: BTreeMap<String, ComposeService>,
    /// Subnet and gateway of its network.
    pub(super) subnet: Option<(String, Option<String>)>,
    /// Files of secrets, relative to the folder.
    pub(super) secrets: BTreeMap<String, String>,
    /// The settings.
    pub(super) settings: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct ComposeFile {
    name: Option<String>,
    services: BTreeMap<String, ComposeService>,
    #[serde(default)]
    networks: BTreeMap<String, ComposeNetwork>,
    #[serde(default)]
    secrets: BTreeMap<String, ComposeSecret>,
}

#[derive(Debug, Default, Deserialize)]
struct ComposeNetwork {
    #[serde(default)]
    ipam: AddressPlan,
}

#[derive(Debug, Default, Deserialize)]
struct AddressPlan {
    #[serde(default)]
    config: Vec<ComposeSubnet>,
}

#[derive(Debug, Deserialize)]
struct ComposeSubnet {
    subnet: String,
    gateway: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ComposeSecret {
    file: String,
}

/// A service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComposeService {
    pub(super) image: String,
    #[serde(default = "one")]
    pub(super) scale: u32,
    /// The variable of `.env` with the number of replicas.
    #[serde(skip)]
    pub(super) scale_variable: Option<String>,
    pub(super) user: Option<String>,
    #[serde(default)]
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    pub(super) env_file: Option<String>,
    #[serde(default)]
    pub(super) secrets: Vec<String>,
    #[serde(default)]
    pub(super) volumes: Vec<String>,
    #[serde(default)]
    pub(super) ports: Vec<String>,
    #[serde(default)]
    pub(super) tmpfs: Vec<String>,
    #[serde(default)]
    pub(super) read_only: bool,
    #[serde(default)]
    pub(super) cap_drop: Vec<String>,
    #[serde(default)]
    pub(super) cap_add: Vec<String>,
    #[serde(default)]
    pub(super) security_opt: Vec<String>,
    #[serde(default)]
    pub(super) sysctls: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) extra_hosts: Vec<String>,
    #[serde(default)]
    pub(super) init: bool,
    #[serde(default)]
    pub(super) dns: Vec<String>,
    #[serde(default)]
    pub(super) ulimits: BTreeMap<String, i64>,
    pub(super) mem_limit: Option<String>,
    pub(super) pids_limit: Option<i64>,
    pub(super) stop_grace_period: Option<String>,
    pub(super) healthcheck: ComposeHealth,
    pub(super) restart: String,
    #[serde(default)]
    pub(super) profiles: Vec<String>,
    pub(super) logging: Option<ComposeLogging>,
}

/// The health check.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComposeHealth {
    /// `CMD`, then the command.
    pub(super) test: Vec<String>,
    pub(super) interval: Option<String>,
    pub(super) timeout: Option<String>,
    pub(super) retries: Option<u32>,
    pub(super) start_period: Option<String>,
}

/// The log.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComposeLogging {
    pub(super) driver: String,
    #[serde(default)]
    pub(super) options: BTreeMap<String, String>,
}

fn one() -> u32 {
    1
}

impl ComposeProject {
    /// Reads compose.yaml and .env of a pod's folder.
    ///
    /// Errors: a missing or malformed file, a key that is not honoured.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let absolute = |e| Error::new(format!("reading {}", folder.display()), e);
        let folder = std::path::absolute(folder).map_err(absolute)?;
        let read = |name: &str| {
            let path = folder.join(name);
            let text = fs::read_to_string(&path);
            text.doing(|| format!("reading {}", path.display()))
        };
        let (compose, settings) = (read(COMPOSE)?, read(SETTINGS)?);
        let path = folder.join(SETTINGS);
        let lines = env_lines(&settings).map_err(|number| {
            let doing = format!("reading {}", path.display());
            Error::new(doing, not_a_line(&path, number))
        })?;
        let settings = lines.into_iter();
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self::parse(folder.clone(), &compose, settings.collect())
            .doing(|| format!("reading {}", folder.join(COMPOSE).display()))
    }

    pub(super) fn parse(
        folder: PathBuf,
        compose: &str,
        settings: BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let mut document: Value = serde_yaml::from_str(compose).map_err(|e| e.to_string())?;
        let mut variables = BTreeMap::new();
        if let Some(services) = document["services"].as_object() {
            for (name, service) in services {
                let variable = service["scale"].as_str().and_then(only_variable);
                variables.extend(variable.map(|variable| (name.clone(), variable.to_owned())));
            }
        }
        let lookup = |name: &str| settings.get(name).cloned();
        replace(&mut document, &lookup);
        let file: ComposeFile = serde_json::from_value(document)
            .map_err(|e| format!("{e}: use podman-compose for files with other keys"))?;
        let mut services = file.services;
        for (name, service) in &mut services {
            service.scale_variable = variables.remove(name);
        }
        let project = settings
            .get(PROJECT_VARIABLE)
            .filter(|name| !name.is_empty());
        let own = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let networks = file.networks.into_iter();
        let plans = networks.filter(|(name, _)| name == "default");
        let mut subnets = plans.flat_map(|(_, network)| network.ipam.config);
        Ok(Self {
            name: project.cloned().or(file.name).or(own).unwrap_or_default(),
            services,
            subnet: subnets.next().map(|it| (it.subnet, it.gateway)),
            secrets: file
                .secrets
                .into_iter()
                .map(|(name, it)| (name, it.file))
                .collect(),
            folder,
            settings,
        })
    }

    /// Name of a volume in podman.
    pub(crate) fn volume(&self, name: &str) -> String {
        format!("{}_{name}", self.name)
    }

    /// A service.
    ///
    /// Errors: no such service, with the names of all.
    pub(super) fn service(&self, name: &str) -> Result<&ComposeService, Error> {
        self.services.get(name).ok_or_else(|| {
            let names: Vec<_> = self.services.keys().map(String::as_str).collect();
            let reason = format!("no such service; there are {}", names.join(", "));
            Error::new(format!("looking for {name}"), reason)
        })
    }

    /// Names of the services that run: those without profiles, and those with an active one.
    pub(crate) fn active(&self) -> impl Iterator<Item = &str> {
        let active = self.settings.get(PROFILES_VARIABLE).map(String::as_str);
        let active: Vec<&str> = active
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .collect();
        let services = self.services.iter().filter(move |(_, service)| {
            let mut profiles = service.profiles.iter();
            service.profiles.is_empty() || profiles.any(|it| active.contains(&it.as_str()))
        });
        services.map(|(name, _)| name.as_str())
    }

    /// Name of a container.
    pub(super) fn container(&self, service: &str, number: u32) -> String {
        format!("{}_{service}_{number}", self.name)
    }

    /// Value of a setting.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        let value = self.settings.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }
}

impl ComposeService {
    /// Variables of its containers: those of the file, then its own.
    pub(super) fn variables(
        &self,
        settings: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        if self.env_file.as_deref() == Some(SETTINGS) {
            variables.clone_from(settings);
        }
        variables.extend(self.environment.clone());
        variables
    }
}

/// Replaces variables in all texts, and makes numbers of texts that were variables alone.
fn replace(value: &mut Value, lookup: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) if text.contains('$') => {
            let is_variable = only_variable(text).is_some();
            let replaced = interpolate(text, lookup);
            *value = match replaced.parse::<u32>() {
                Ok(number) if is_variable => Value::from(number),
                _ => Value::String(replaced),
            };
        }
        Value::Object(members) => {
            for (name, member) in members {
                replace(member, lookup);
                // Variables of containers are texts, also numbers.
                if name == "environment" {
                    texts(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, lookup)),
        _ => {}
    }
}

fn texts(value: &mut Value) {
    for member in value
        .as_object_mut()
        .into_iter()
        .flat_map(serde_json::Map::values_mut)
    {
        *member = match &*member {
            Value::String(text) => Value::String(text.clone()),
            Value::Null => Value::String(String::new()),
            other => Value::String(other.to_string()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = include_str!("../../../../compose.yaml");

    fn project(settings: &[(&str, &str)]) -> ComposeProject {
        let settings = settings.iter();
        let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ComposeProject::parse(PathBuf::from("/x"), OWN, settings.collect()).unwrap()
    }

    #[test]
    fn the_pods_own_file_is_honoured_completely() {
        let project = project(&[("API_SERVER_REPLICAS", "3"), ("OIDC_CLIENT_SECRET", "5")]);
        assert_eq!(project.name, "atoll");
        let api = project.service("api-server").unwrap();
        assert_eq!(api.scale, 3);
        assert_eq!(api.scale_variable.as_deref(), Some("API_SERVER_REPLICAS"));
        assert_eq!(project.service("db").unwrap().scale_variable, None);
        let webui = project.service("webui").unwrap();
        assert_eq!(webui.environment["OIDC_CLIENT_SECRET"], "5");
        assert_eq!(project.subnet.as_ref().unwrap().0, "10.123.7.0/24");
        let active: Vec<_> = project.active().collect();
        assert!(!active.contains(&"catalog") && active.contains(&"db"));
    }

    #[test]
    fn secrets_of_others_are_blank() {
        let project = project(&[("EC_PRIVATE_KEY_PEM", "secret")]);
        let of = |name: &str| {
            let service = project.service(name).unwrap();
            let variables = service.variables(&project.settings);
            variables.get("EC_PRIVATE_KEY_PEM").cloned()
        };
        assert_eq!(of("api-server").as_deref(), Some("secret"));
        assert_eq!(of("image-service").as_deref(), Some(""));
        assert_eq!(of("webui"), None);
    }

    #[test]
    fn profiles_are_settings() {
        let project = project(&[("COMPOSE_PROFILES", "x, catalog")]);
        assert!(project.active().any(|name| name == "catalog"));
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let text =
            "services: {db: {image: a, restart: always, healthcheck: {test: []}, networks: [a]}}";
        let error = ComposeProject::parse(PathBuf::new(), text, BTreeMap::new()).unwrap_err();
        assert!(
            error.contains("networks") && error.contains("podman-compose"),
            "{error}"
        );
    }
}
