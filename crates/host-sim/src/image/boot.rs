//! The agent's configuration in the embedded ignition.

use serde_json::Value;
use uuid::Uuid;

use super::ignition::{embedded_text, unit};
use crate::Error;

/// Program of the agent that is inside a discovery image.
const EMBEDDED: &str = "/usr/local/bin/atoll-agent";
/// Version that it reports unless its unit has one.
const EMBEDDED_VERSION: &str = concat!("atoll-agent/", env!("CARGO_PKG_VERSION"));

/// Configuration of a booted machine: API server, infra-env, agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootConfig {
    /// Base address of the API, without the API's own path.
    pub url: String,
    /// The infra-env that made the image.
    pub infra_env_id: Uuid,
    /// Version that the agent reports: its image; of an agent inside the discovery image, its own.
    pub agent_version: String,
    /// Whether certificates are not to be checked.
    pub insecure: bool,
    /// Certificates to trust, PEM.
    pub ca_pem: Option<String>,
    /// Sent as X-Secret-Key.
    pub token: Option<String>,
}

impl BootConfig {
    /// Reads agent.service of a discovery ignition.
    ///
    /// Errors: `Invalid` – no such unit, it is not enabled, or its command lacks an argument.
    pub fn from_ignition(config: &Value) -> Result<Self, Error> {
        let what = "agent.service of the discovery ignition";
        let unit =
            unit(config, "agent.service").ok_or_else(|| Error::invalid(what, "does not exist"))?;
        if unit["enabled"] != true {
            return Err(Error::invalid(what, "is not enabled: no agent would start"));
        }
        let text = unit["contents"]
            .as_str()
            .ok_or_else(|| Error::invalid(what, "has no contents"))?;
        let command = directives(text, "ExecStart")
            .last()
            .ok_or_else(|| Error::invalid(what, "has no ExecStart"))?;
        let words = words(command);
        let is_embedded = words.first().is_some_and(|program| program == EMBEDDED);
        let flags = CommandFlags::parse(&words);
        let required = |name: &str| {
            flags
                .get(name)
                .ok_or_else(|| Error::invalid(what, format!("its ExecStart has no --{name}")))
        };
        let infra_env_id = required("infra-env-id")?;
        let ca_pem = match flags.get("cacert") {
            Some(path) => Some(embedded_text(config, path)?.ok_or_else(|| {
                Error::invalid(
                    what,
                    format!("its --cacert {path} is not among the files of the ignition"),
                )
            })?),
            None => None,
        };
        Ok(Self {
            url: required("url")?.trim_end_matches('/').to_owned(),
            infra_env_id: infra_env_id.parse().map_err(|_| {
                Error::invalid(
                    what,
                    format!("--infra-env-id {infra_env_id:?} is not a UUID"),
                )
            })?,
            agent_version: match flags.get("agent-version") {
                None if is_embedded => EMBEDDED_VERSION.to_owned(),
                _ => required("agent-version")?.to_owned(),
            },
            insecure: matches!(
                flags.get("insecure"),
                Some("true" | "1" | "t" | "T" | "TRUE" | "True" | "")
            ),
            ca_pem,
            token: environment(text, "PULL_SECRET_TOKEN").filter(|token| !token.is_empty()),
        })
    }
}

/// Values of a directive, in order; a backslash at the end of a line joins the next one.
fn directives<'a>(unit: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let joined = unit.replace("\\\n", " ");
    let lines: Vec<String> = joined.lines().map(|line| line.trim().to_owned()).collect();
    lines.into_iter().filter_map(move |line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The value of an environment variable set by `Environment=` lines.
fn environment(unit: &str, name: &str) -> Option<String> {
    directives(unit, "Environment")
        .flat_map(|line| words(&line))
        .filter_map(|word| {
            word.split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        })
        .filter(|(key, _)| key == name)
        .map(|(_, value)| value.replace("%%", "%"))
        .last()
}

/// Splits a command line at blanks, honouring quotes.
fn words(line: impl AsRef<str>) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut is_open = false;
    for c in line.as_ref().chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                is_open = true;
            }
            (None, c) if c.is_whitespace() => {
                if is_open {
                    words.push(std::mem::take(&mut word));
                }
                is_open = false;
            }
            (_, c) => {
                word.push(c);
                is_open = true;
            }
        }
    }
    if is_open {
        words.push(word);
    }
    words
}

/// `--name value` and `--name=value` alike.
struct CommandFlags(Vec<(String, String)>);

impl CommandFlags {
    fn parse(words: &[String]) -> Self {
        let mut flags = Vec::new();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--") else {
                continue;
            };
            if let Some((name, value)) = flag.split_once('=') {
                flags.push((name.to_owned(), value.to_owned()));
            } else {
                let value = words
                    .next_if(|next| !next.starts_with("--"))
                    .cloned()
                    .unwrap_or_default();
                flags.push((flag.to_owned(), value));
            }
        }
        Self(flags)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(flag, _)| flag == name)
            .map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "5a2a1b6e-8a4b-4b0e-9d0c-0f7f2f6f0a11";

    fn config(exec: &str) -> Value {
        let contents = format!(
            "[Service]\nType=simple\nEnvironment=HTTP_PROXY=\nEnvironment=\"PULL_SECRET_TOKEN=ab%%c\"\n\
             ExecStartPre=/usr/local/bin/agent-pull-image q/agent:1\nExecStart={exec}\n[Install]\nWantedBy=multi-user.target\n"
        );
        json!({
            "ignition": { "version": "3.1.0" },
            "systemd": { "units": [{ "name": "agent.service", "enabled": true, "contents": contents }] },
            "storage": { "files": [{ "path": "/etc/assisted-service/service-ca-cert.crt",
                "contents": { "source": "data:,PEM" } }] },
        })
    }

    #[test]
    fn the_command_line_of_the_agent_is_parsed() {
        let exec = format!(
            "/usr/local/bin/agent --url http://10.0.0.1:8090/ --infra-env-id {ID} --agent-version q/agent:1 \
             --insecure=true  --cacert /etc/assisted-service/service-ca-cert.crt"
        );
        let boot = BootConfig::from_ignition(&config(&exec)).unwrap();
        assert_eq!(
            boot,
            BootConfig {
                url: "http://10.0.0.1:8090".into(),
                infra_env_id: ID.parse().unwrap(),
                agent_version: "q/agent:1".into(),
                insecure: true,
                ca_pem: Some("PEM".into()),
                token: Some("ab%c".into()),
            }
        );
    }

    #[test]
    fn missing_parts_are_named() {
        for (exec, part) in [
            (
                format!("/usr/local/bin/agent --infra-env-id {ID} --agent-version a"),
                "--url",
            ),
            (
                "/usr/local/bin/agent --url http://a --infra-env-id 7 --agent-version a".into(),
                "not a UUID",
            ),
            (
                format!("/usr/local/bin/agent --url http://a --infra-env-id {ID}"),
                "--agent-version",
            ),
            (
                format!(
                    "agent --url http://a --infra-env-id {ID} --agent-version a --cacert /none"
                ),
                "/none",
            ),
        ] {
            let text = BootConfig::from_ignition(&config(&exec))
                .unwrap_err()
                .to_string();
            assert!(text.contains(part), "{text}");
        }
        assert!(BootConfig::from_ignition(&json!({})).is_err());
    }

    #[test]
    fn an_agent_inside_the_image_has_a_version_of_its_own() {
        let version = |arguments: &str| {
            let exec = format!("{EMBEDDED} --url http://a --infra-env-id {ID}{arguments}");
            BootConfig::from_ignition(&config(&exec))
                .unwrap()
                .agent_version
        };
        assert_eq!(version(" --console --insecure=false"), EMBEDDED_VERSION);
        assert_eq!(version(" --agent-version a"), "a");
    }

    #[test]
    fn insecure_is_off_unless_true() {
        let exec =
            format!("agent --url http://a --infra-env-id {ID} --agent-version a --insecure=false");
        assert!(!BootConfig::from_ignition(&config(&exec)).unwrap().insecure);
    }
}
