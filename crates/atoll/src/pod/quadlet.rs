//! `atoll pod quadlet`: units for podman's systemd generator, from compose.yaml and .env.
//!
//! The files in `deploy/quadlet` are its output with default settings; a test keeps them equal. Quadlets name volumes and
//! networks since podman 4.7; `atoll pod up` runs the same containers without systemd.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use service::Error;
use service::settings::env_lines;

use super::compose::ComposeProject;
use super::container::{ContainerRun, network, volume_name};
use super::init::{DIR, TEMPLATE_OF_SETTINGS};
use super::lifecycle::PodFolderArgs;
use crate::file::{folder, write_atomic};
use crate::terminal;

const COMPOSE: &str = include_str!("../../../../compose.yaml");
/// Folder of the variables of each service: units are readable for all users, and must not contain secrets.
const VARIABLES: &str = "env";
const OWN: u32 = 0o600;
const READABLE: u32 = 0o644;
/// Folder of units for the services of the system.
const SYSTEM_UNITS: &str = "/etc/containers/systemd";

/// Arguments of `atoll pod quadlet`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodQuadletArgs {
    /// Folder for the units [default: quadlet in the folder of the pod]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pod: PodFolderArgs,
}

/// Writes units and the variables of each service, and prints the next steps.
///
/// Errors: files that cannot be read or written.
pub(super) fn run(arguments: &PodQuadletArgs) -> Result<(), Error> {
    let project = ComposeProject::read(&arguments.pod.dir)?;
    let output = arguments.output.clone();
    let output = output.unwrap_or_else(|| project.folder.join("quadlet"));
    folder(&output, 0o755)?;
    for (name, text) in units(&project)? {
        write_atomic(&output.join(name), text.as_bytes(), READABLE)?;
    }
    let variables = project.folder.join(VARIABLES);
    folder(&variables, 0o700)?;
    for name in project.active() {
        let text = ContainerRun::new(&project, name, 1, true)?;
        let path = variables.join(format!("{name}.env"));
        write_atomic(&path, text.variables().as_bytes(), OWN)?;
    }
    let services: Vec<_> = project
        .active()
        .map(|it| format!("{}-{it}", project.name))
        .collect();
    let services = services.join(" ");
    terminal::print(&format!(
        "Units written to {}. Next, as root: atoll pod down --dir {}; cp {}/* {SYSTEM_UNITS}/; \
         systemctl daemon-reload; systemctl start {services}",
        output.display(),
        project.folder.display(),
        output.display(),
    ));
    Ok(())
}

/// The units of the pod with default settings, by name.
///
/// Errors: none that a build of this workspace has.
pub(crate) fn default_units() -> Result<BTreeMap<String, String>, Error> {
    let lines = env_lines(TEMPLATE_OF_SETTINGS)
        .unwrap_or_default()
        .into_iter();
    let settings = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let project = ComposeProject::parse(PathBuf::from(DIR), COMPOSE, settings.collect());
    units(&project.map_err(|e| Error::new("reading compose.yaml", e))?)
}

/// Units by name: the network, the volumes, and the containers of active services.
///
/// Errors: a service that cannot be configured.
fn units(project: &ComposeProject) -> Result<BTreeMap<String, String>, Error> {
    let mut units = BTreeMap::new();
    let labels = labels(project);
    let mut text = format!("[Network]\nNetworkName={}\n{labels}", network(project));
    if let Some((subnet, gateway)) = &project.subnet {
        writeln!(text, "Subnet={subnet}").ok();
        if let Some(gateway) = gateway {
            writeln!(text, "Gateway={gateway}").ok();
        }
    }
    units.insert(format!("{}.network", project.name), text);
    for name in project.active() {
        let service = project.service(name)?;
        for volume in volumes(&service.volumes) {
            let own = volume_name(project, volume);
            let text = format!("[Volume]\nVolumeName={own}\n{labels}");
            units.insert(format!("{}-{volume}.volume", project.name), text);
        }
        for number in 1..=service.scale {
            let file = match number {
                1 => format!("{}-{name}.container", project.name),
                _ => format!("{}-{name}-{number}.container", project.name),
            };
            units.insert(file, container(project, name, number)?);
        }
    }
    Ok(units)
}

fn labels(project: &ComposeProject) -> String {
    let labels = ["io.podman.compose.project", "com.docker.compose.project"];
    labels
        .map(|label| format!("Label={label}={}\n", project.name))
        .concat()
}

fn volumes(volumes: &[String]) -> BTreeSet<&str> {
    let sources = volumes.iter().filter_map(|volume| volume.split(':').next());
    sources
        .filter(|source| !source.starts_with(['.', '/']))
        .collect()
}

fn container(project: &ComposeProject, name: &str, number: u32) -> Result<String, Error> {
    let run = ContainerRun::new(project, name, number, true)?;
    let mut text = format!("[Unit]\nDescription=Atoll: {name}\n\n[Container]\n");
    let mut line = |key: &str, value: &str| {
        // Systemd replaces specifiers.
        writeln!(text, "{key}={}", value.replace('%', "%%")).ok();
    };
    line("Image", run.image());
    let variables = project.folder.join(VARIABLES).join(format!("{name}.env"));
    // Systemd splits the values of some keys into words.
    line("EnvironmentFile", &quoted(&variables.display().to_string()));
    let mut arguments = vec!["--pull=never".to_owned()];
    let mut flags = run.arguments().iter();
    while let Some(flag) = flags.next() {
        let key = match flag.as_str() {
            "--init" => {
                line("RunInit", "true");
                continue;
            }
            "--read-only" => {
                line("ReadOnly", "true");
                continue;
            }
            "--restart" => {
                flags.next();
                continue;
            }
            "--name" => "ContainerName",
            "--label" => "Label",
            "--network" => "Network",
            "--mount" => "Mount",
            "--publish" => "PublishPort",
            "--cap-drop" => "DropCapability",
            "--cap-add" => "AddCapability",
            "--security-opt" => "NoNewPrivileges",
            "--tmpfs" => "Tmpfs",
            "--pids-limit" => "PidsLimit",
            "--log-driver" => "LogDriver",
            "--sysctl" => "Sysctl",
            "--health-cmd" => "HealthCmd",
            "--health-interval" => "HealthInterval",
            "--health-timeout" => "HealthTimeout",
            "--health-retries" => "HealthRetries",
            "--health-start-period" => "HealthStartPeriod",
            other => {
                let value = flags.next().map(String::as_str).unwrap_or_default();
                arguments.push(quoted(&format!("{other}={value}")));
                continue;
            }
        };
        let value = flags.next().map(String::as_str).unwrap_or_default();
        match (key, value) {
            ("Network", _) => line(key, &format!("{}.network", project.name)),
            ("NoNewPrivileges", "no-new-privileges") => line(key, "true"),
            ("NoNewPrivileges", _) => arguments.push(quoted(&format!("{flag}={value}"))),
            ("Mount" | "Label" | "Sysctl", value) => line(key, &quoted(&mount(project, value))),
            _ => line(key, value),
        }
    }
    line("PodmanArgs", &arguments.join(" "));
    if !run.command().is_empty() {
        let command: Vec<_> = run.command().iter().map(|word| quoted(word)).collect();
        line("Exec", &command.join(" "));
    }
    text.push_str(
        "\n[Service]\nRestart=always\n\n[Install]\nWantedBy=multi-user.target default.target\n",
    );
    Ok(text)
}

/// Volumes are units, which exist before their containers.
fn mount(project: &ComposeProject, value: &str) -> String {
    let prefix = format!("type=volume,source={}_", project.name);
    match value
        .strip_prefix(&prefix)
        .and_then(|rest| rest.split_once(','))
    {
        Some((volume, rest)) => {
            format!("type=volume,source={}-{volume}.volume,{rest}", project.name)
        }
        None => value.to_owned(),
    }
}

/// A word of a systemd command line.
fn quoted(word: &str) -> String {
    if word.contains([' ', '"', '\'', '\\']) {
        format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Set: the test writes the files.
    const UPDATE: &str = "UPDATE_QUADLETS";

    fn folder_of_units() -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/quadlet"))
    }

    #[test]
    fn the_units_of_the_workspace_are_those_of_compose() {
        let folder = folder_of_units();
        if std::env::var_os(UPDATE).is_some() {
            fs::remove_dir_all(&folder).ok();
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in default_units().unwrap() {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
        let found: BTreeMap<String, String> = entries
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        assert!(
            found == default_units().unwrap(),
            "deploy/quadlet differs from compose.yaml: {UPDATE}=1 cargo test -p atoll --lib quadlet"
        );
    }

    #[test]
    fn units_have_everything_of_compose() {
        let units = default_units().unwrap();
        let db = &units["atoll-db.container"];
        for line in [
            "Image=localhost/atoll/db:0.1.0",
            "ContainerName=atoll_db_1",
            "Network=atoll.network",
            "EnvironmentFile=<dir>/env/db.env",
            "Mount=type=volume,source=atoll-db.volume,destination=/var/lib/postgresql/data",
            "Mount=type=bind,source=<dir>/secrets/database-password,destination=/run/secrets/db-password,ro=true,relabel=shared",
            "PublishPort=127.0.0.1:5432:5432",
            "NoNewPrivileges=true",
            "DropCapability=ALL",
            "ReadOnly=true",
            "HealthCmd=[\"pg_isready\",\"-q\",\"-h\",\"127.0.0.1\"]",
        ] {
            assert!(db.lines().any(|own| own == line), "{line}:\n{db}");
        }
        assert!(
            db.contains("--memory=1g") && db.contains("--user=999:999"),
            "{db}"
        );
        assert_eq!(
            units["atoll-db.volume"].lines().nth(1),
            Some("VolumeName=atoll_db")
        );
        assert!(units["atoll.network"].contains("Subnet=10.123.7.0/24\n"));
        assert!(!units.contains_key("atoll-catalog.container"));
    }

    #[test]
    fn replicas_are_units_and_secrets_are_not_in_them() {
        let settings = [
            ("WEBUI_REPLICAS", "2"),
            ("SESSION_KEY", "a secret"),
            ("COMPOSE_PROFILES", "catalog"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let project =
            ComposeProject::parse(PathBuf::from("/a b/100%"), COMPOSE, settings.into()).unwrap();
        let units = units(&project).unwrap();
        assert!(units.contains_key("atoll-catalog.container"));
        let second = &units["atoll-webui-2.container"];
        assert!(
            second.contains("EnvironmentFile=\"/a b/100%%/env/webui.env\"\n"),
            "{second}"
        );
        assert!(units.values().all(|text| !text.contains("a secret")));
    }
}
