//! A reader of compose.yaml, for the keys that configure containers.
//!
//! Tests use the file that users run. Unknown keys of services and secrets are rejected, so that none is ignored
//! silently.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The variables that the file refers to.
pub type Variables = BTreeMap<String, String>;

/// The file.
#[derive(Debug, Clone, Deserialize)]
pub struct Compose {
    /// Services by name.
    pub services: BTreeMap<String, Service>,
    /// Files with secrets by name.
    pub secrets: BTreeMap<String, Secret>,
}

/// A secret's file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// Relative to the compose file.
    pub file: String,
    // Tests mount it unchanged.
    #[serde(default, rename = "x-podman.relabel")]
    _relabel: IgnoredAny,
}

/// A service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Full name with its tag.
    pub image: String,
    /// Arguments of its program.
    #[serde(default)]
    pub command: Vec<String>,
    /// User of its program; default: that of the image.
    pub user: Option<String>,
    /// Variables; they override those of the file.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// A file with variables.
    pub env_file: Option<String>,
    /// Names of secrets.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// `SOURCE:TARGET[:OPTIONS]`; a source with a slash is a folder.
    #[serde(default)]
    pub volumes: Vec<String>,
    /// `[ADDRESS:]PORT:PORT`.
    #[serde(default)]
    pub ports: Vec<String>,
    /// Folders in memory.
    #[serde(default)]
    pub tmpfs: Vec<String>,
    /// Whether the image's files are read-only.
    #[serde(default)]
    pub read_only: bool,
    /// Dropped capabilities.
    #[serde(default)]
    pub cap_drop: Vec<String>,
    /// Security options of the kernel.
    #[serde(default)]
    pub security_opt: Vec<String>,
    /// Whether a small init is process 1.
    #[serde(default)]
    pub init: bool,
    /// Name servers.
    #[serde(default)]
    pub dns: Vec<String>,
    /// Limits of each process.
    #[serde(default)]
    pub ulimits: BTreeMap<String, i64>,
    /// As in `256m`.
    pub mem_limit: Option<String>,
    /// Processes and threads.
    pub pids_limit: Option<i64>,
    /// As in `25s`.
    pub stop_grace_period: Option<String>,
    /// The health check.
    pub healthcheck: Healthcheck,
    /// Restart policy.
    pub restart: String,
    /// Profiles that it belongs to; without any, it always runs.
    #[serde(default)]
    pub profiles: Vec<String>,
    // Tests choose the replicas.
    #[serde(default, rename = "scale")]
    _scale: IgnoredAny,
    #[serde(default, rename = "logging")]
    _logging: IgnoredAny,
}

/// A command that succeeds in a healthy container.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Healthcheck {
    /// `CMD`, then the command.
    pub test: Vec<String>,
    // Tests choose when it runs.
    #[serde(default, rename = "interval")]
    _interval: IgnoredAny,
    #[serde(default, rename = "timeout")]
    _timeout: IgnoredAny,
    #[serde(default, rename = "retries")]
    _retries: IgnoredAny,
    #[serde(default, rename = "start_period")]
    _start_period: IgnoredAny,
}

/// Options of volumes; SELinux's has no effect in tests.
const OPTIONS: [&str; 3] = ["ro", "rw", "z"];

/// A file, folder or volume that is mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Name of a volume, or a path relative to the compose file.
    pub source: String,
    /// Path in the container.
    pub target: String,
    /// Whether it is read-only.
    pub is_read_only: bool,
}

impl Volume {
    /// Whether the source is a folder and no volume.
    pub fn is_folder(&self) -> bool {
        self.source.starts_with(['.', '/'])
    }
}

impl Compose {
    /// Reads the file and substitutes variables.
    ///
    /// Errors: it cannot be read, a variable without a default is unset, a key is unknown.
    pub fn read(path: &Path, variables: &Variables) -> Result<Self> {
        let reading = || format!("reading {}", path.display());
        let text = std::fs::read_to_string(path).with_context(reading)?;
        let text = with_variables(&text, variables).with_context(reading)?;
        serde_yaml::from_str(&text).with_context(reading)
    }

    /// A service by its name.
    ///
    /// Errors: there is none.
    pub fn service(&self, name: &str) -> Result<&Service> {
        let service = self.services.get(name);
        service.with_context(|| format!("compose.yaml has no service {name}"))
    }
}

impl Service {
    /// Name and tag of the image.
    ///
    /// Errors: there is no tag.
    pub fn image(&self) -> Result<(&str, &str)> {
        let parts = self.image.rsplit_once(':');
        parts.with_context(|| format!("{}: has no tag", self.image))
    }

    /// The volumes.
    ///
    /// Errors: a malformed one.
    pub fn volumes(&self) -> Result<Vec<Volume>> {
        let parse = |text: &String| {
            let parts: Vec<&str> = text.split(':').collect();
            let (source, target, options) = match parts[..] {
                [source, target] => (source, target, "rw"),
                [source, target, options] => (source, target, options),
                _ => bail!("volume {text:?} is not understood"),
            };
            if let Some(option) = options.split(',').find(|option| !OPTIONS.contains(option)) {
                bail!("volume {text:?}: option {option:?} is not understood");
            }
            Ok(Volume {
                source: source.to_owned(),
                target: target.to_owned(),
                is_read_only: options.split(',').any(|option| option == "ro"),
            })
        };
        self.volumes.iter().map(parse).collect()
    }

    /// Published port and port in the container.
    ///
    /// Errors: a malformed one.
    pub fn ports(&self) -> Result<Vec<(u16, u16)>> {
        let parse = |text: &String| {
            let numbers = text.rsplit_once(':').and_then(|(host, inside)| {
                let host = host.rsplit_once(':').map_or(host, |(_, port)| port);
                Some((host.parse().ok()?, inside.parse().ok()?))
            });
            numbers.with_context(|| format!("port {text:?} is not understood"))
        };
        self.ports.iter().map(parse).collect()
    }

    /// Limit of the memory.
    ///
    /// Errors: malformed.
    pub fn memory_bytes(&self) -> Result<Option<i64>> {
        let Some(text) = &self.mem_limit else {
            return Ok(None);
        };
        let (number, factor) = match text.as_bytes().last() {
            Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
            Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
            Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
            _ => (text.as_str(), 1),
        };
        let number: i64 = number
            .parse()
            .with_context(|| format!("mem_limit {text:?} is not understood"))?;
        Ok(Some(number * factor))
    }

    /// Grace period of a stop.
    ///
    /// Errors: malformed.
    pub fn grace_s(&self) -> Result<i32> {
        let text = self.stop_grace_period.as_deref().unwrap_or("10s");
        let number = text.strip_suffix('s').and_then(|text| text.parse().ok());
        number.with_context(|| format!("stop_grace_period {text:?} is not understood"))
    }
}

/// Substitutes variables: `${NAME}`, `${NAME-default}`, `${NAME:-default}`, and `$$` for a dollar. Defaults may have
/// variables, too.
fn with_variables(text: &str, variables: &Variables) -> Result<String> {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        done.push_str(before);
        rest = if let Some(after) = after.strip_prefix('$') {
            done.push('$');
            after
        } else {
            let (inner, after) = after
                .strip_prefix('{')
                .and_then(split_at_closing_brace)
                .with_context(|| {
                    let line: String = after.chars().take_while(|c| *c != '\n').collect();
                    format!("${line}: expected ${{NAME}}")
                })?;
            done.push_str(&value_of(inner, variables)?);
            after
        };
    }
    done.push_str(rest);
    Ok(done)
}

/// The text before the brace that closes a variable, and the text after it.
fn split_at_closing_brace(text: &str) -> Option<(&str, &str)> {
    let mut open = 1;
    for (at, brace) in text.match_indices(['{', '}']) {
        open = if brace == "{" { open + 1 } else { open - 1 };
        if open == 0 {
            return Some((&text[..at], &text[at + 1..]));
        }
    }
    None
}

fn value_of(inner: &str, variables: &Variables) -> Result<String> {
    let end = inner.find([':', '-', '?']).unwrap_or(inner.len());
    let (name, default) = inner.split_at(end);
    let value = variables.get(name).cloned();
    match (default, value) {
        ("", Some(value)) => Ok(value),
        ("", None) => bail!("{name} is not given and has no default"),
        (default, value) => {
            let (is_empty_as_none, default) = match default.strip_prefix(":-") {
                Some(default) => (true, default),
                None => match default.strip_prefix('-') {
                    Some(default) => (false, default),
                    None => bail!("${{{inner}}} is not understood"),
                },
            };
            match value.filter(|value| !(is_empty_as_none && value.is_empty())) {
                Some(value) => Ok(value),
                None => with_variables(default, variables),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn variables_are_substituted_as_compose_does() {
        let given = variables(&[("A", "1"), ("EMPTY", "")]);
        let put = |text: &str| with_variables(text, &given);
        assert_eq!(put("a ${A} $$b ${B:-2}").unwrap(), "a 1 $b 2");
        assert_eq!(put("[${EMPTY:-3}][${EMPTY-3}]").unwrap(), "[3][]");
        assert_eq!(
            put("${B:-${A}}, ${A:-${B}}, ${B:-${C:-4}:5}.").unwrap(),
            "1, 1, 4:5."
        );
        assert!(put("${B:-${C:-4}").is_err(), "a brace is missing");
        assert!(put("${B}").unwrap_err().to_string().contains('B'));
        assert!(put("$A").is_err());
    }

    #[test]
    fn unknown_keys_are_rejected() {
        for (service, check, secret) in [
            ("new_key: 1,", "", ""),
            ("", "new_key: 1,", ""),
            ("", "", "new_key: 1,"),
        ] {
            let text = format!(
                "services: {{ a: {{ image: 'x:1', {service} healthcheck: {{ {check} test: [] }}, restart: 'no' }} }}\n\
                 secrets: {{ s: {{ {secret} file: f }} }}\n"
            );
            let error = serde_yaml::from_str::<Compose>(&text).unwrap_err();
            assert!(error.to_string().contains("new_key"), "{error}");
        }
        let text =
            "{ image: 'x:1', healthcheck: { test: [] }, restart: 'no', volumes: ['db:/var:ro,Z'] }";
        let service: Service = serde_yaml::from_str(text).unwrap();
        assert!(service.volumes().unwrap_err().to_string().contains("\"Z\""));
    }

    #[test]
    fn short_forms_are_parsed() {
        let text = "{ image: 'localhost/a:1', healthcheck: { test: [] }, restart: 'no', mem_limit: 256m, ports: ['1:2', '127.0.0.1:3:4'], \
                    volumes: ['db:/var', './images:/images:ro,z'] }";
        let service: Service = serde_yaml::from_str(text).unwrap();
        assert_eq!(service.image().unwrap(), ("localhost/a", "1"));
        assert_eq!(service.memory_bytes().unwrap(), Some(256 << 20));
        assert_eq!(service.ports().unwrap(), [(1, 2), (3, 4)]);
        let volumes = service.volumes().unwrap();
        assert!(!volumes[0].is_folder() && !volumes[0].is_read_only);
        assert!(volumes[1].is_folder() && volumes[1].is_read_only);
        assert_eq!(service.grace_s().unwrap(), 10);
    }

    /// The variables of a Kubernetes file's containers.
    fn of_kube(file: &str) -> BTreeMap<String, Variables> {
        let path = format!("{}/../deploy/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let pod: serde_json::Value = serde_yaml::from_str(&text).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let containers = pod["spec"]["containers"].as_array().unwrap().iter();
        let variables = containers.map(|container| {
            let given = container["env"].as_array().unwrap().iter();
            let given = given.map(|variable| (text(&variable["name"]), text(&variable["value"])));
            (text(&container["name"]), given.collect())
        });
        variables.collect()
    }

    #[test]
    fn both_kinds_of_pod_have_the_same_bounds() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../compose.yaml"));
        let compose = Compose::read(path, &Variables::new()).unwrap();
        let bounds = |given: &Variables| -> Variables {
            let bounds = given.iter().filter(|(name, _)| name.starts_with("MAX_"));
            bounds
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        let mut kube = of_kube("pod.yml");
        kube.extend(of_kube("catalog.yml"));
        for (name, given) in &kube {
            let service = compose.service(name).unwrap();
            assert_eq!(bounds(given), bounds(&service.environment), "{name}");
        }
        // There, the page's server is the only proxy, and a neighbour on loopback.
        assert!(
            compose
                .service("api-server")
                .unwrap()
                .environment
                .contains_key("TRUSTED_PROXIES")
        );
        assert_eq!(kube["api-server"]["TRUSTED_PROXIES"], "127.0.0.1/32");
    }

    /// A port for BMCs, which needs no listener of its own: the image service of a pod speaks plain HTTP.
    #[test]
    fn a_further_port_of_the_image_service_is_published_when_set() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../compose.yaml"));
        for (given, expected) in [
            (&[][..], &[8888][..]),
            (&[("HTTP_LISTEN_PORT", "")], &[8888]),
            (&[("HTTP_LISTEN_PORT", "8087")], &[8888, 8087]),
            (&[("PUBLISH_IMAGES", "127.0.0.1:80")], &[80]),
            (
                &[("PUBLISH_IMAGES", "80"), ("HTTP_LISTEN_PORT", "8087")],
                &[80, 8087],
            ),
        ] {
            let compose = Compose::read(path, &variables(given)).unwrap();
            let ports = compose.service("proxy").unwrap().ports().unwrap();
            let mut outside: Vec<u16> = ports
                .iter()
                .filter(|(_, inside)| *inside == 8888)
                .map(|(outside, _)| *outside)
                .collect();
            outside.dedup();
            assert_eq!(outside, expected, "{given:?}");
            // Else the service would leave the port that the proxy forwards to.
            let service = compose.service("image-service").unwrap();
            assert_eq!(service.environment["LISTEN_PORT"], "8888");
            assert_eq!(service.environment["HTTP_LISTEN_PORT"], "");
        }
    }

    #[test]
    fn the_file_that_users_run_is_parsed() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../compose.yaml"));
        let compose = Compose::read(path, &Variables::new()).unwrap();
        for name in super::super::SERVICES {
            let service = compose.service(name).unwrap();
            service.image().unwrap();
            service.volumes().unwrap();
            service.ports().unwrap();
            service.memory_bytes().unwrap();
            service.grace_s().unwrap();
            assert!(
                service.read_only && service.init && !service.dns.is_empty(),
                "{name}"
            );
        }
    }
}
