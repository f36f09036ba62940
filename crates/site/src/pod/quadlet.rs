//! Units for podman's systemd generator, from compose.yaml and .env.
//!
//! The files in `deploy/quadlet` are its output with default settings; a test keeps them equal. They have the keys of the first
//! generator, of podman 4.4, and flags of `podman run` for all else: units of networks and volumes cannot give them their names
//! there. `atoll pod up` runs the same containers without systemd.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use service::file::{folder, write_atomic};
use service::settings::env_lines;
use service::{Error, ResultExt as _};

use super::compose::ComposeProject;
use super::container::{self, ContainerRun, network};
use super::folder::{DIR, TEMPLATE_OF_SETTINGS};
use crate::podman;

const COMPOSE: &str = include_str!("../../../../compose.yaml");
/// Folder of the variables of each service: units are readable for all users, and must not contain secrets.
const VARIABLES: &str = "env";
const OWN: u32 = 0o600;
const READABLE: u32 = 0o644;
/// The first version of podman with a generator.
const GENERATOR: (u64, u64) = (4, 4);

/// Units that were written.
#[derive(Debug, Clone)]
pub struct WrittenUnits {
    /// Their folder.
    pub output: PathBuf,
    /// Folder of the pod.
    pub pod: PathBuf,
    /// Names of the services of systemd.
    pub services: Vec<String>,
}

/// Writes units and the variables of each service of the pod in `dir`; the units into `output`, or a folder in the pod's.
///
/// Errors: podman has no generator; files that cannot be read or written.
pub fn write(dir: &Path, output: Option<PathBuf>) -> Result<WrittenUnits, Error> {
    let project = ComposeProject::read(dir)?;
    let version = podman::run(&["version", "--format", "{{.Client.Version}}"])?;
    check_generator(version.trim(), &project.folder.display().to_string())?;
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
    let services = project.active();
    let services = services.map(|it| format!("{}-{it}", project.name));
    Ok(WrittenUnits {
        output,
        services: services.collect(),
        pod: project.folder.clone(),
    })
}

/// Whether podman of this version turns quadlets into units.
///
/// Errors: it does not, with the commands that run the pod there.
fn check_generator(version: &str, dir: &str) -> Result<(), Error> {
    let mut numbers = version.split('.').map(|it| it.parse::<u64>().ok());
    let number = numbers.next().flatten().zip(numbers.next().flatten());
    if number.is_some_and(|it| it >= GENERATOR) {
        return Ok(());
    }
    let (major, minor) = GENERATOR;
    let reason = format!(
        "podman {version} has no generator of units, {major}.{minor} is the first: `atoll pod up --dir {dir}` runs the pod, or \
         `podman play kube pod.yml`"
    );
    Err(Error::new("writing units for systemd", reason))
}

/// The units of the pod with default settings, by name.
///
/// Errors: none that a build of this workspace has.
pub fn default_units() -> Result<BTreeMap<String, String>, Error> {
    let lines = env_lines(TEMPLATE_OF_SETTINGS)
        .unwrap_or_default()
        .into_iter();
    let settings = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let project = ComposeProject::parse(PathBuf::from(DIR), COMPOSE, settings.collect());
    units(&project.doing("reading compose.yaml")?)
}

/// Units by name: the containers of active services.
///
/// Errors: a service that cannot be configured.
fn units(project: &ComposeProject) -> Result<BTreeMap<String, String>, Error> {
    let mut units = BTreeMap::new();
    for name in project.active() {
        for number in 1..=project.service(name)?.scale {
            let file = match number {
                1 => format!("{}-{name}.container", project.name),
                _ => format!("{}-{name}-{number}.container", project.name),
            };
            units.insert(file, unit(project, name, number)?);
        }
    }
    Ok(units)
}

fn unit(project: &ComposeProject, name: &str, number: u32) -> Result<String, Error> {
    let run = ContainerRun::new(project, name, number, true)?;
    let mut unit = UnitText::default();
    unit.section("Unit");
    unit.line("Description", &format!("Atoll: {name}"));
    let folder = project.folder.display().to_string();
    unit.line("RequiresMountsFor", &quoted(&folder));
    unit.section("Container");
    unit.line("Image", run.image());
    let variables = project.folder.join(VARIABLES).join(format!("{name}.env"));
    // Systemd splits the values of some keys into words.
    unit.line("EnvironmentFile", &quoted(&variables.display().to_string()));
    let mut arguments = vec!["--pull=never".to_owned()];
    let mut flags = run.arguments().iter().map(String::as_str);
    while let Some(flag) = flags.next() {
        match flag {
            "--init" => {
                unit.line("RunInit", "true");
                continue;
            }
            "--read-only" => {
                unit.line("ReadOnly", "true");
                continue;
            }
            _ => {}
        }
        let value = flags.next().unwrap_or_default();
        match (flag, value) {
            ("--restart", _) => {}
            ("--name", _) => unit.line("ContainerName", value),
            ("--label", _) => unit.line("Label", &quoted(value)),
            ("--network", _) => unit.line("Network", value),
            ("--publish", _) => unit.line("PublishPort", value),
            ("--cap-drop", _) => unit.line("DropCapability", value),
            ("--cap-add", _) => unit.line("AddCapability", value),
            ("--security-opt", "no-new-privileges") => unit.line("NoNewPrivileges", "true"),
            _ => arguments.push(quoted(&format!("{flag}={value}"))),
        }
    }
    for argument in arguments {
        unit.line("PodmanArgs", &argument);
    }
    if !run.command().is_empty() {
        let command: Vec<_> = run.command().iter().map(|word| quoted(word)).collect();
        unit.line("Exec", &command.join(" "));
    }
    unit.section("Service");
    unit.line("Restart", "always");
    // The container that comes first makes it. Failures are ignored: another one was faster.
    unit.line("ExecStartPre", &ensure_network(project));
    unit.section("Install");
    unit.line("WantedBy", "multi-user.target default.target");
    Ok(unit.0)
}

/// The command that makes the network unless it exists.
fn ensure_network(project: &ComposeProject) -> String {
    let name = network(project);
    let create = container::create_network(project).join(" ");
    let script = format!("podman network exists {name} || exec podman {create}");
    format!("-/bin/sh -c {}", quoted(&script))
}

/// Text of a unit.
#[derive(Debug, Default)]
struct UnitText(String);

impl UnitText {
    fn section(&mut self, name: &str) {
        let before = if self.0.is_empty() { "" } else { "\n" };
        writeln!(self.0, "{before}[{name}]").ok();
    }

    fn line(&mut self, key: &str, value: &str) {
        // Systemd replaces specifiers.
        writeln!(self.0, "{key}={}", value.replace('%', "%%")).ok();
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
            "Network=atoll_default",
            "EnvironmentFile=<dir>/env/db.env",
            "PodmanArgs=--mount=type=volume,source=atoll_db,destination=/var/lib/postgresql/data",
            "PodmanArgs=--mount=type=bind,source=<dir>/secrets/database-password,destination=/run/secrets/db-password,ro=true,relabel=shared",
            "PublishPort=127.0.0.1:5432:5432",
            "NoNewPrivileges=true",
            "DropCapability=ALL",
            "ReadOnly=true",
            r#"PodmanArgs="--health-cmd=[\"pg_isready\",\"-q\",\"-h\",\"127.0.0.1\"]""#,
            "PodmanArgs=--memory=1g",
            "PodmanArgs=--user=999:999",
        ] {
            assert!(db.lines().any(|own| own == line), "{line}:\n{db}");
        }
        assert!(db.contains("--subnet 10.123.7.0/24 --gateway 10.123.7.1 atoll_default"));
        assert!(!units.contains_key("atoll-catalog.container"));
    }

    /// Source: containers/podman v4.4.0, pkg/systemd/quadlet/quadlet.go, `supportedContainerKeys`; a generator refuses units with
    /// other ones.
    #[test]
    fn keys_are_those_of_the_first_generator() {
        let known = [
            "ContainerName",
            "Image",
            "Environment",
            "EnvironmentFile",
            "Exec",
            "NoNewPrivileges",
            "DropCapability",
            "AddCapability",
            "ReadOnly",
            "PublishPort",
            "PodmanArgs",
            "Label",
            "RunInit",
            "Network",
        ];
        for (name, text) in default_units().unwrap() {
            assert!(name.ends_with(".container"), "{name}");
            let (_, section) = text.split_once("[Container]\n").unwrap();
            let (section, _) = section.split_once("\n[Service]").unwrap();
            for line in section.lines().filter(|line| !line.is_empty()) {
                let (key, _) = line.split_once('=').unwrap();
                assert!(known.contains(&key), "{name}: {line}");
            }
        }
    }

    #[test]
    fn older_podman_gets_the_other_ways() {
        for version in ["4.4.0", "4.9.4-rhel", "5.0.0-dev", "10.1.2"] {
            check_generator(version, "pod").unwrap();
        }
        for version in ["4.3.1", "3.4.4", "", "x"] {
            let error = check_generator(version, "pod").unwrap_err().to_string();
            assert!(error.contains("atoll pod up --dir pod"), "{error}");
            assert!(error.contains("podman play kube"), "{error}");
        }
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
        for line in [
            "EnvironmentFile=\"/a b/100%%/env/webui.env\"",
            "RequiresMountsFor=\"/a b/100%%\"",
        ] {
            assert!(second.lines().any(|own| own == line), "{line}:\n{second}");
        }
        assert!(units.values().all(|text| !text.contains("a secret")));
    }
}
