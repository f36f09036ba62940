//! Containers of a service, by `podman run`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use service::{Error, ResultExt as _};
use sha2::{Digest as _, Sha256};

use super::compose::{ComposeHealth, ComposeProject, ComposeService};
use crate::podman;

/// Label with the digest of the configuration: containers with another one are replaced.
pub(super) const CONFIG: &str = "io.atoll.config";
/// Labels by which podman-compose finds containers.
const PROJECT: [&str; 2] = ["io.podman.compose.project", "com.docker.compose.project"];
const SERVICE: &str = "com.docker.compose.service";
const NUMBER: &str = "com.docker.compose.container-number";
/// The folder exists where systemd runs.
const SYSTEMD: &str = "/run/systemd/system";

/// Whether systemd runs, whose timers run podman's health checks.
pub(super) fn has_systemd() -> bool {
    Path::new(SYSTEMD).exists()
}

/// A container that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExistingContainer {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) service: String,
    pub(super) number: u32,
    pub(super) is_running: bool,
    /// Words of podman about its state.
    pub(super) state: String,
    /// Digest of its configuration; none of those of podman-compose.
    pub(super) config: Option<String>,
}

/// All containers of the project.
///
/// Errors: those of podman.
pub(super) fn existing(project: &str) -> Result<Vec<ExistingContainer>, Error> {
    let filter = format!("label={}={project}", PROJECT[0]);
    let text = podman::run(&["ps", "--all", "--format", "json", "--filter", &filter])?;
    let found: Vec<Value> = serde_json::from_str(&text).doing("reading the list of containers")?;
    let mut containers: Vec<_> = found.iter().filter_map(container).collect();
    containers.sort_by(|a, b| (&a.service, a.number).cmp(&(&b.service, b.number)));
    Ok(containers)
}

fn container(value: &Value) -> Option<ExistingContainer> {
    let label = |name: &str| value["Labels"][name].as_str();
    let state = value["State"].as_str().unwrap_or_default();
    Some(ExistingContainer {
        id: value["Id"].as_str()?.to_owned(),
        name: value["Names"][0].as_str()?.to_owned(),
        service: label(SERVICE)?.to_owned(),
        number: label(NUMBER)?.parse().ok()?,
        is_running: state == "running",
        state: value["Status"].as_str().unwrap_or(state).to_owned(),
        config: label(CONFIG).map(str::to_owned),
    })
}

/// A container to be run.
pub(super) struct ContainerRun {
    arguments: Vec<String>,
    image: String,
    command: Vec<String>,
    /// `NAME=value` lines: secrets must not be arguments, which other users of the machine can read.
    variables: String,
}

impl ContainerRun {
    /// Replica `number` of a service, checked by systemd's timers if `is_checked`.
    ///
    /// Errors: a value that podman's format cannot express.
    pub(super) fn new(
        project: &ComposeProject,
        name: &str,
        number: u32,
        is_checked: bool,
    ) -> Result<Self, Error> {
        let service = project.service(name)?;
        let doing = || format!("configuring {name}");
        let mut run = Self {
            arguments: Vec::new(),
            image: service.image.clone(),
            command: service.command.clone(),
            variables: String::new(),
        };
        run.flag("--name", &project.container(name, number));
        for label in PROJECT {
            run.flag("--label", &format!("{label}={}", project.name));
        }
        run.flag("--label", &format!("{SERVICE}={name}"));
        run.flag("--label", &format!("{NUMBER}={number}"));
        run.flag("--network", &network(project));
        run.flag("--network-alias", name);
        run.confine(service);
        run.limit(service);
        run.mount(project, service).doing(doing)?;
        run.publish(&service.ports);
        if is_checked {
            run.check(&service.healthcheck);
        }
        for (name, value) in service.variables(&project.settings) {
            if value.contains('\n') {
                return Err(Error::new(
                    doing(),
                    format!("{name} has more than one line"),
                ));
            }
            writeln!(run.variables, "{name}={value}").ok();
        }
        Ok(run)
    }

    /// Digest of everything that configures the container, its image's id included.
    pub(super) fn config(&self, image_id: &str) -> String {
        let mut sha256 = Sha256::new();
        let texts = self.arguments.iter().chain(&self.command);
        for text in texts.map(String::as_str).chain([image_id, &self.variables]) {
            sha256.update(text.len().to_le_bytes());
            sha256.update(text);
        }
        hex::encode(sha256.finalize())
    }

    /// Full name of the image.
    pub(super) fn image(&self) -> &str {
        &self.image
    }

    /// Flags and their values.
    pub(super) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// The command, if it is not that of the image.
    pub(super) fn command(&self) -> &[String] {
        &self.command
    }

    /// Lines `NAME=value`.
    pub(super) fn variables(&self) -> &str {
        &self.variables
    }

    /// Creates and starts it.
    ///
    /// Errors: those of podman, a missing image included: nothing is pulled.
    pub(super) fn start(&self, config: &str) -> Result<(), Error> {
        let label = format!("{CONFIG}={config}");
        let mut arguments = vec!["run", "--detach", "--pull", "never", "--label", &label];
        arguments.extend(["--env-file", "/dev/stdin"]);
        arguments.extend(self.arguments.iter().map(String::as_str));
        arguments.push(&self.image);
        arguments.extend(self.command.iter().map(String::as_str));
        podman::run_with_input(&arguments, &self.variables).map(drop)
    }

    fn flag(&mut self, name: &str, value: &str) {
        self.arguments.extend([name.to_owned(), value.to_owned()]);
    }

    fn switch(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.arguments.push(name.to_owned());
        }
    }

    fn flags<'a>(&mut self, name: &str, values: impl IntoIterator<Item = &'a String>) {
        for value in values {
            self.flag(name, value);
        }
    }

    fn confine(&mut self, service: &ComposeService) {
        self.switch("--init", service.init);
        self.switch("--read-only", service.read_only);
        self.flags("--user", &service.user);
        self.flags("--cap-drop", &service.cap_drop);
        self.flags("--cap-add", &service.cap_add);
        self.flags("--security-opt", &service.security_opt);
        self.flags("--dns", &service.dns);
        self.flags("--add-host", &service.extra_hosts);
        self.flags("--tmpfs", &service.tmpfs);
        for (name, value) in &service.sysctls {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            self.flag("--sysctl", &format!("{name}={value}"));
        }
        self.flag("--restart", &service.restart);
    }

    fn limit(&mut self, service: &ComposeService) {
        for (name, value) in &service.ulimits {
            self.flag("--ulimit", &format!("{name}={value}:{value}"));
        }
        self.flags("--memory", &service.mem_limit);
        self.flags(
            "--pids-limit",
            service.pids_limit.map(|it| it.to_string()).as_ref(),
        );
        if let Some(period) = &service.stop_grace_period {
            self.flag("--stop-timeout", period.trim_end_matches('s'));
        }
        if let Some(logging) = &service.logging {
            self.flag("--log-driver", &logging.driver);
            for (name, value) in &logging.options {
                self.flag("--log-opt", &format!("{name}={value}"));
            }
        }
    }

    fn mount(&mut self, project: &ComposeProject, service: &ComposeService) -> Result<(), String> {
        for volume in &service.volumes {
            let mut parts = volume.split(':');
            let (Some(source), Some(target)) = (parts.next(), parts.next()) else {
                return Err(format!("volume {volume:?}: expected SOURCE:TARGET"));
            };
            let is_read_only = parts.any(|options| options.split(',').any(|it| it == "ro"));
            if source.starts_with(['.', '/']) {
                self.bind(&project.folder.join(source), target, is_read_only)?;
            } else {
                let source = project.volume(source);
                let access = if is_read_only { ",ro=true" } else { "" };
                self.flag(
                    "--mount",
                    &format!("type=volume,source={source},destination={target}{access}"),
                );
            }
        }
        for name in &service.secrets {
            let file = project.secrets.get(name);
            let file = file.ok_or_else(|| format!("there is no secret {name}"))?;
            self.bind(
                &project.folder.join(file),
                &format!("/run/secrets/{name}"),
                true,
            )?;
        }
        Ok(())
    }

    /// Mounts a file or folder, relabelled where SELinux is enforced.
    fn bind(&mut self, source: &Path, target: &str, is_read_only: bool) -> Result<(), String> {
        // Without `.` components.
        let source: std::path::PathBuf = source.components().collect();
        let shown = source.display().to_string();
        if shown.contains([',', '"', '\n']) {
            return Err(format!(
                "{shown}: podman cannot mount paths with commas and quotation marks: move the folder"
            ));
        }
        let value = format!(
            "type=bind,source={shown},destination={target},ro={is_read_only},relabel=shared"
        );
        self.flag("--mount", &value);
        Ok(())
    }

    /// Publishes each port once: an unset variable repeats another line.
    fn publish(&mut self, ports: &[String]) {
        let ports: std::collections::BTreeSet<&String> = ports.iter().collect();
        self.flags("--publish", ports);
    }

    fn check(&mut self, health: &ComposeHealth) {
        let Some(command) = command(&health.test) else {
            return;
        };
        self.flag("--health-cmd", &serde_json::json!(command).to_string());
        self.flags("--health-interval", &health.interval);
        self.flags("--health-timeout", &health.timeout);
        self.flags(
            "--health-retries",
            health.retries.map(|it| it.to_string()).as_ref(),
        );
        self.flags("--health-start-period", &health.start_period);
    }
}

/// The command of a health check.
pub(super) fn command(test: &[String]) -> Option<&[String]> {
    let (first, command) = test.split_first()?;
    (first == "CMD" && !command.is_empty()).then_some(command)
}

/// Name of the project's network.
pub(super) fn network(project: &ComposeProject) -> String {
    format!("{}_default", project.name)
}

/// Creates the project's network, with the labels of podman-compose.
///
/// Errors: those of podman; the network has another subnet.
pub(super) fn ensure_network(project: &ComposeProject) -> Result<(), Error> {
    let name = network(project);
    let names = podman::run(&["network", "ls", "--format", "{{.Name}}"])?;
    if names.lines().any(|it| it == name) {
        let Some((subnet, _)) = &project.subnet else {
            return Ok(());
        };
        let found = podman::run(&["network", "inspect", &name])?;
        if found.contains(&format!("\"{subnet}\"")) {
            return Ok(());
        }
        let reason =
            format!("it has another subnet than {subnet}: `atoll pod down`, then try again");
        return Err(Error::new(format!("using the network {name}"), reason));
    }
    let arguments = create_network(project);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    podman::run(&arguments).map(drop)
}

/// Arguments of podman that create the project's network.
pub(super) fn create_network(project: &ComposeProject) -> Vec<String> {
    let mut arguments = vec!["network".to_owned(), "create".to_owned()];
    let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
    for label in PROJECT {
        add("--label", format!("{label}={}", project.name));
    }
    if let Some((subnet, gateway)) = &project.subnet {
        add("--subnet", subnet.clone());
        if let Some(gateway) = gateway {
            add("--gateway", gateway.clone());
        }
    }
    arguments.push(network(project));
    arguments
}

/// Creates the volumes of a service.
///
/// Errors: those of podman.
pub(super) fn ensure_volumes(
    project: &ComposeProject,
    service: &ComposeService,
) -> Result<(), Error> {
    let sources = service
        .volumes
        .iter()
        .filter_map(|volume| volume.split(':').next());
    for source in sources.filter(|source| !source.starts_with(['.', '/'])) {
        podman::ensure_volume(&project.name, &project.volume(source))?;
    }
    Ok(())
}

/// Id of a loaded image.
///
/// Errors: it is not loaded; those of podman.
pub(super) fn image_id(image: &str) -> Result<String, Error> {
    let text = podman::run(&["image", "inspect", "--format", "{{.Id}}", image]);
    match text {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(_) => Err(Error::new(
            format!("looking for the image {image}"),
            "it is not loaded: `atoll install BUNDLE` loads the images of a bundle",
        )),
    }
}

/// Containers by service.
pub(super) fn by_service(
    containers: &[ExistingContainer],
) -> BTreeMap<&str, Vec<&ExistingContainer>> {
    let mut services: BTreeMap<&str, Vec<&ExistingContainer>> = BTreeMap::new();
    for container in containers {
        services
            .entry(&container.service)
            .or_default()
            .push(container);
    }
    services
}
