//! The request that starts the installation of a host.

use model::cluster::{Cluster, HighAvailabilityMode};
use model::host::HostRole;
use model::inventory::{DeviceType, Disk, DriveType, Interface};
use model::network::Proxy;
use model::steps::InstallCmdRequest;

use super::network::{nics_inside, union};
use super::view::{StepView, installation_path};
use crate::hardware::disks::installation_disk;
use crate::network::networking;
use crate::versions::at_least;

/// Destinations that the installer on a host reaches without the cluster's proxy.
const NEVER_PROXIED: &str = "127.0.0.1,localhost,.svc,.cluster.local";
/// Arguments of the kernel that a mainframe's host needs to find its disks and networks again.
const MAINFRAME_ARGUMENTS: &[&str] = &[
    "ip",
    "nameserver",
    "rd.dasd",
    "rd.znet",
    "rd.zfcp",
    "zfcp.allow_lun_scan",
];

/// Agents ignore unknown members, but the agent inside discovery images passes them on to the installer of the cluster's
/// release, which ends at an unknown flag.
/// Source: assisted-service, internal/host/hostcommands/install_cmd.go, GetSteps; assisted-installer, src/config/config.go
/// of each release.
pub(super) fn request(view: &StepView<'_>) -> Option<InstallCmdRequest> {
    let cluster = view.cluster()?;
    let record = &view.host.record;
    let settings = view.ctx.settings;
    let components = view.ctx.components;
    let release = view.ctx.release;
    let boot_device = installation_path(view.host);
    let first_day = !view.is_adding_host();
    let only_first_day = |text: &str| {
        if first_day {
            text.to_owned()
        } else {
            String::new()
        }
    };
    Some(InstallCmdRequest {
        cluster_id: cluster.id,
        infra_env_id: record.infra_env_id,
        host_id: record.id,
        role: role(view),
        controller_image: components.controller.clone(),
        installer_image: components.installer.clone(),
        high_availability_mode: high_availability_mode(view, cluster),
        control_plane_count: cluster.control_plane_count,
        proxy: proxy(cluster),
        check_cvo: Some(settings.check_cluster_version),
        disks_to_format: disks_to_format(view),
        must_gather_image: only_first_day(&release.must_gather),
        mco_image: only_first_day(&release.machine_config_operator),
        openshift_version: only_first_day(&cluster.openshift_version),
        service_ips: settings.service_ips.clone(),
        installer_args: installer_args(view, cluster)?,
        skip_installation_disk_cleanup: is_kept(view, &record.installation_disk_id),
        enable_skip_mco_reboot: skips_reboot(view, cluster, &boot_device),
        notify_num_reboots: settings.notify_num_reboots && view.has_installer_of(4, 17),
        coreos_image: if boots_persistently(view) && view.has_installer_of(4, 19) {
            release.operating_system.clone()
        } else {
            String::new()
        },
        boot_device,
    })
}

fn role(view: &StepView<'_>) -> HostRole {
    let record = &view.host.record;
    if record.bootstrap {
        return HostRole::Bootstrap;
    }
    let decided = |role: &HostRole| *role != HostRole::AutoAssign;
    record
        .role
        .filter(decided)
        .or(record.suggested_role.filter(decided))
        .unwrap_or(HostRole::Worker)
}

/// For installers before 4.19, which know the size of the control plane by no other member: without it they install no
/// single node.
/// Source: assisted-installer, src/config/config.go of each release.
fn high_availability_mode(view: &StepView<'_>, cluster: &Cluster) -> Option<HighAvailabilityMode> {
    let mode = if networking::is_single_node(cluster) {
        HighAvailabilityMode::None
    } else {
        HighAvailabilityMode::Full
    };
    (!view.has_installer_of(4, 19)).then_some(mode)
}

/// `*` is sent alone: agents refuse it among other destinations, which it covers.
/// Source: assisted-service, internal/host/hostcommands/install_cmd.go, getProxyArguments, and
/// pkg/validations/validations.go, ValidateNoProxyFormat, which agents call.
fn proxy(cluster: &Cluster) -> Option<Proxy> {
    if cluster.http_proxy.is_empty() && cluster.https_proxy.is_empty() {
        return None;
    }
    let internal = format!("api-int.{}.{}", cluster.name, cluster.base_dns_domain);
    let no_proxy = if cluster.no_proxy.split(',').any(|item| item == "*") {
        "*".to_owned()
    } else {
        union([cluster.no_proxy.as_str(), NEVER_PROXIED, &internal].into_iter()).join(",")
    };
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    Some(Proxy {
        http_proxy: some(&cluster.http_proxy),
        https_proxy: some(&cluster.https_proxy),
        no_proxy: Some(no_proxy),
    })
}

fn disks_to_format(view: &StepView<'_>) -> Vec<String> {
    view.host
        .record
        .disks_to_be_formatted
        .split(',')
        .filter(|id| !id.is_empty() && !is_kept(view, id))
        .map(str::to_owned)
        .collect()
}

/// Whether the user skips formatting of that disk.
fn is_kept(view: &StepView<'_>, disk: &str) -> bool {
    !disk.is_empty()
        && view
            .host
            .record
            .skip_formatting_disks
            .split(',')
            .any(|id| id == disk)
}

/// The agent of 4.15 writes the flag as two arguments, and its installer reads no flag after the second one: those of the
/// proxy and of the service addresses.
/// Source: assisted-service, internal/host/hostcommands/install_cmd.go; assisted-installer-agent,
/// src/commands/actions/install_cmd.go of 4.15.
fn skips_reboot(view: &StepView<'_>, cluster: &Cluster, boot_device: &str) -> bool {
    let settings = view.ctx.settings;
    let loses_no_flag = || proxy(cluster).is_none() && settings.service_ips.is_empty();
    settings.skip_mco_reboot
        && at_least(&cluster.openshift_version, 4, 15)
        && (view.has_agent_of(4, 16) || loses_no_flag())
        && !is_mainframe(view)
        && !boot_device.contains("/dm-")
}

fn is_mainframe(view: &StepView<'_>) -> bool {
    view.host
        .inventory
        .as_ref()
        .and_then(|inventory| inventory.cpu.as_ref())
        .is_some_and(|cpu| cpu.architecture == "s390x")
}

fn boots_persistently(view: &StepView<'_>) -> bool {
    view.host
        .inventory
        .as_ref()
        .and_then(|inventory| inventory.boot.as_ref())
        .is_some_and(|boot| boot.device_type == Some(DeviceType::Persistent.into()))
}

/// The user's arguments, then those of the host's network and disk; a JSON list as text, empty for none.
/// Source: assisted-service, internal/host/hostcommands/install_cmd.go, constructHostInstallerArgs.
fn installer_args(view: &StepView<'_>, cluster: &Cluster) -> Option<String> {
    let text = &view.host.record.installer_args;
    let mut args: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    let has_user_network = args
        .iter()
        .any(|arg| arg == "--copy-network" || arg == "-n" || arg.starts_with("ip="));
    if has_user_network {
        // The user's own network arguments rule out the automatic ones.
    } else if !view.ctx.infra_env.static_network_config.is_empty() {
        args.push("--copy-network".to_owned());
    } else if is_mainframe(view) {
        args.extend(mainframe_arguments(view));
    } else if !view.is_adding_host() && !networking::is_user_managed(cluster) {
        let nics = nics_inside(view.host, &cluster.machine_networks);
        args.extend(nics.filter_map(nic_argument).flat_map(karg));
    }
    args.extend(disk_arguments(view).iter().flat_map(|value| karg(*value)));
    if args.is_empty() {
        return Some(String::new());
    }
    serde_json::to_string(&args).ok()
}

fn karg(value: impl Into<String>) -> [String; 2] {
    ["--append-karg".to_owned(), value.into()]
}

/// Source: assisted-service, internal/host/hostcommands/install_cmd.go, getDHCPArgPerNIC.
fn nic_argument(nic: &Interface) -> Option<String> {
    if nic.mac_address.is_empty() {
        return None;
    }
    let method = match (nic.ipv4_addresses.is_empty(), nic.ipv6_addresses.is_empty()) {
        (false, false) => "dhcp,dhcp6",
        (true, false) => "dhcp6",
        (false, true) => "dhcp",
        (true, true) => return None,
    };
    let mac = nic.mac_address.to_ascii_lowercase().replace(':', "-");
    Some(format!("ip={mac}:{method}"))
}

/// Source: assisted-service, internal/host/hostcommands/install_cmd.go, appendMultipathArgs, appendRaidArgs,
/// appendISCSIArgs.
fn disk_arguments(view: &StepView<'_>) -> &'static [&'static str] {
    match installation_disk(view.host).map(Disk::known_type) {
        Some(DriveType::ISCSI) => &["rd.iscsi.firmware=1"],
        Some(DriveType::Multipath) => &["rw", "rd.multipath=default"],
        Some(DriveType::RAID) => &["rd.md=1", "rd.auto=1"],
        _ => &[],
    }
}

/// Source: assisted-service, internal/host/hostcommands/install_cmd.go, appends390xArgs.
fn mainframe_arguments(view: &StepView<'_>) -> Vec<String> {
    let line = view
        .host
        .inventory
        .as_ref()
        .and_then(|inventory| inventory.boot.as_ref())
        .map(|boot| boot.command_line.as_str())
        .unwrap_or_default();
    line.split_whitespace()
        .filter(|argument| {
            let name = argument.split('=').next().unwrap_or_default();
            MAINFRAME_ARGUMENTS.contains(&name)
        })
        .flat_map(karg)
        .collect()
}
