//! The installer's image, for the host that starts the control plane.
//!
//! Source: assisted-installer-agent, src/commands/actions/install_cmd.go.

use std::process::Stdio;
use std::sync::PoisonError;

use model::host::HostStage;
use model::network::Proxy;
use model::steps::InstallCmdRequest;
use tokio::process::Command;

use super::plan::InstallPlan;
use crate::Error;
use crate::steps::context::StepContext;

/// Folders and files of the host that the installer uses.
const VOLUMES: [&str; 6] = [
    "/dev:/dev:rw",
    "/opt:/opt:rw",
    "/var/log:/var/log:rw",
    "/run/systemd/journal/socket:/run/systemd/journal/socket",
    "/etc/pki:/etc/pki",
    "/tmp:/tmp",
];

/// Runs the image until it ends; it reports its progress.
///
/// Errors: podman fails, or the installer does.
pub(super) async fn run(context: &StepContext, plan: &InstallPlan) -> Result<(), Error> {
    let stage = HostStage::StartingInstallation;
    context
        .status
        .change(|status| status.installation = Some(stage.to_string()));
    let status = Command::new("podman")
        .args(podman_arguments(context.api.cacert()))
        .arg(&plan.request.installer_image)
        .args(installer_arguments(context, plan))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .map_err(|error| Error::io("running podman", error))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::message(format!(
        "the installer's container ended with {status}"
    )))
}

fn podman_arguments(cacert: Option<&str>) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "run",
        "--replace",
        "--privileged",
        "--pid=host",
        "--net=host",
        "--name=assisted-installer",
        "--env=PULL_SECRET_TOKEN",
    ]
    .map(str::to_owned)
    .into();
    let own = cacert.map(|path| format!("{path}:{path}:rw"));
    for volume in VOLUMES.map(str::to_owned).into_iter().chain(own) {
        arguments.push(format!("--volume={volume}"));
    }
    arguments
}

fn installer_arguments(context: &StepContext, plan: &InstallPlan) -> Vec<String> {
    let request = &plan.request;
    let mut arguments = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            arguments.extend([format!("--{name}"), value]);
        }
    };
    add("role", request.role.to_string());
    add("infra-env-id", request.infra_env_id.to_string());
    add("cluster-id", request.cluster_id.to_string());
    add("host-id", request.host_id.to_string());
    add("boot-device", request.boot_device.clone());
    add("url", context.api.base().to_string());
    add("controller-image", request.controller_image.clone());
    let image = context
        .agent_image
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    add("agent-image", image.clone());
    if let Some((flag, value)) = control_plane(request) {
        add(flag, value);
    }
    add("mco-image", request.mco_image.clone());
    add("must-gather-image", request.must_gather_image.clone());
    add("openshift-version", request.openshift_version.clone());
    for disk in &request.disks_to_format {
        add("format-disk", disk.clone());
    }
    add(
        "cacert",
        context.api.cacert().unwrap_or_default().to_owned(),
    );
    let own = plan.installer_arguments(&context.files);
    add(
        "installer-args",
        if own.is_empty() {
            String::new()
        } else {
            serde_json::json!(own).to_string()
        },
    );
    for (name, value) in request.proxy.iter().flat_map(proxy_arguments) {
        add(name, value);
    }
    add("service-ips", request.service_ips.join(","));
    add("coreos-image", request.coreos_image.clone());
    let flags = [
        ("--insecure", context.api.is_insecure()),
        ("--check-cluster-version", request.check_cvo == Some(true)),
        (
            "--skip-installation-disk-cleanup",
            request.skip_installation_disk_cleanup,
        ),
        ("--enable-skip-mco-reboot", request.enable_skip_mco_reboot),
        ("--notify-num-reboots", request.notify_num_reboots),
    ];
    arguments.extend(
        flags
            .iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(flag, _)| (*flag).to_owned()),
    );
    arguments
}

/// The size of the control plane, by the flag that the installer knows: until 4.18 a mode, since 4.19 the count.
/// Source: assisted-installer, src/config/config.go.
fn control_plane(request: &InstallCmdRequest) -> Option<(&'static str, String)> {
    match (request.high_availability_mode, request.control_plane_count) {
        (Some(mode), _) => Some(("high-availability-mode", mode.to_string())),
        (None, 0) => None,
        (None, count) => Some(("control-plane-count", count.to_string())),
    }
}

fn proxy_arguments(proxy: &Proxy) -> [(&'static str, String); 3] {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    [
        ("http-proxy", text(&proxy.http_proxy)),
        ("https-proxy", text(&proxy.https_proxy)),
        ("no-proxy", text(&proxy.no_proxy)),
    ]
}

#[cfg(test)]
mod tests {
    use model::cluster::HighAvailabilityMode as Mode;

    use super::*;

    #[test]
    fn the_control_plane_has_the_flag_of_the_installer() {
        for (high_availability_mode, control_plane_count, expected) in [
            (Some(Mode::None), 1, "--high-availability-mode None"),
            (Some(Mode::Full), 3, "--high-availability-mode Full"),
            (None, 5, "--control-plane-count 5"),
            (None, 0, ""),
        ] {
            let request = InstallCmdRequest {
                high_availability_mode,
                control_plane_count,
                ..InstallCmdRequest::default()
            };
            let flag = control_plane(&request).map(|(flag, value)| format!("--{flag} {value}"));
            assert_eq!(flag.unwrap_or_default(), expected);
        }
    }
}
