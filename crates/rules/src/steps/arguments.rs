//! The arguments of each step; none when the step has nothing to do.

use model::cluster::{DiskEncryptionMode, DiskEncryptionTarget};
use model::host::{Host, HostRole};
use model::steps::{
    ApiVipConnectivityAdditionalRequestHeader, ApiVipConnectivityRequest,
    ApiVipConnectivityResponse, ContainerImageAvailabilityRequest,
    ContainerImageAvailabilityResult, DiskSpeedCheckRequest, LogsGatherCmdRequest, StepType,
    TangConnectivityRequest,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::view::{StepView, installation_path};
use super::{install, network};
use crate::cluster::ignition_endpoint;
use crate::hardware::disks::{self, installation_disk};
use crate::host::cluster_ignition::{ClusterIgnition, Encryption};
use crate::host::images::image_statuses;
use crate::json_text;
use crate::network::networking;
use crate::snapshot::host_texts::parse;
use crate::versions::agent_version::is_embedded;

/// Timeout of the disk speed check. Units: seconds, as text.
const DISK_SPEED_TIMEOUT: &str = "480.00";
/// Timeout of pulling the images. Units: seconds.
const IMAGE_TIMEOUT_S: i64 = 960;
/// Mount of the machine's file system in the agent's container.
const HOST_MOUNT: &str = "/host";

pub(super) fn arguments(kind: StepType, view: &StepView<'_>) -> Option<Vec<String>> {
    match kind {
        StepType::Inventory => Some(inventory(view)),
        StepType::ConnectivityCheck => Some(vec![network::connectivity(view)?]),
        StepType::FreeNetworkAddresses => one(network::free_addresses(view)?),
        StepType::DhcpLeaseAllocate => one(network::dhcp(view)?),
        StepType::NtpSynchronizer => one(network::time_servers(view)),
        StepType::DomainResolution => one(network::domains(view)?),
        StepType::VerifyVips => one(network::vips(view)?),
        StepType::TangConnectivityCheck => one(tang(view)?),
        StepType::ApiVipConnectivityCheck => one(api_vip(view)?),
        StepType::InstallationDiskSpeedCheck => disk_speed(view),
        StepType::ContainerImageAvailability => one(images(view)?),
        StepType::Install => one(install::request(view)?),
        StepType::LogsGather => one(logs(view)?),
        StepType::StopInstallation => Some(Vec::new()),
        StepType::UpgradeAgent => one(json!({ "agent_image": view.ctx.components.agent })),
        StepType::DownloadBootArtifacts => one(boot_artifacts(view)?),
        StepType::RebootForReclaim => one(json!({ "host_fs_mount_dir": HOST_MOUNT })),
        StepType::Execute | StepType::NextStepRunner => None,
    }
}

fn one(request: impl Serialize) -> Option<Vec<String>> {
    Some(vec![json_text::text(&request)?])
}

/// Options only for agents inside discovery images: those of all releases refuse the step with any.
/// Source: assisted-service, internal/host/hostcommands/inventory_cmd.go; assisted-installer-agent,
/// src/commands/actions/inventory_cmd.go.
fn inventory(view: &StepView<'_>) -> Vec<String> {
    let settings = view.ctx.settings;
    let record = &view.host.record;
    let mut args = vec![record.id.to_string()];
    if !is_embedded(&record.discovery_agent_version) {
        return args;
    }
    if let Some(size) = settings.inventory_max_size {
        args.push(format!("--output-max-size={size}"));
    }
    if let Some(size) = settings.inventory_disk_min_size {
        args.push(format!("--disk-min-size={size}"));
    }
    args
}

/// Source: assisted-service, internal/host/hostcommands/tang_connectivity_check_cmd.go.
fn tang(view: &StepView<'_>) -> Option<TangConnectivityRequest> {
    if view.is_adding_host() {
        return joined_tang(&view.host.record);
    }
    let encryption = view.cluster()?.disk_encryption.as_ref()?;
    let is_on = encryption
        .enable_on
        .is_some_and(|target| target != DiskEncryptionTarget::None);
    (is_on && encryption.mode == Some(DiskEncryptionMode::Tang)).then(|| TangConnectivityRequest {
        tang_servers: encryption.tang_servers.clone(),
    })
}

/// The servers of the installed cluster, whose ignition the host has downloaded.
fn joined_tang(host: &Host) -> Option<TangConnectivityRequest> {
    let report: ApiVipConnectivityResponse = parse(&host.api_vip_connectivity)?;
    match ClusterIgnition::of(&report)?.encryption() {
        Encryption::Tang(servers) => Some(TangConnectivityRequest {
            tang_servers: json_text::text(&servers)?,
        }),
        _ => None,
    }
}

/// Source: assisted-service, internal/host/hostcommands/api_vip_connectivity_check_cmd.go.
fn api_vip(view: &StepView<'_>) -> Option<ApiVipConnectivityRequest> {
    let access = view.ctx.ignition;
    let is_secure = access.certificates.is_some();
    let header = |key: &str, value: &str| ApiVipConnectivityAdditionalRequestHeader {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    Some(ApiVipConnectivityRequest {
        url: ignition_endpoint::url(view.cluster()?, &view.host.record, is_secure)?,
        verify_cidr: false,
        ca_certificate: access.certificates.clone(),
        ignition_endpoint_token: access.bearer().map(str::to_owned),
        request_headers: access
            .request_headers()
            .map(|(key, value)| header(&key, &value))
            .collect(),
    })
}

/// Only while there is no result for the disk.
/// Source: assisted-service, internal/host/hostcommands/disk_performance_cmd.go.
fn disk_speed(view: &StepView<'_>) -> Option<Vec<String>> {
    let path = tested_path(view);
    if path.is_empty() || disks::speed(view.host) != disks::Speed::Unknown {
        return None;
    }
    Some(vec![
        json_text::text(&DiskSpeedCheckRequest { path })?,
        DISK_SPEED_TIMEOUT.to_owned(),
    ])
}

/// Path under which the installation disk is tested. Agents of 4.12 hand it to fio as it is, which takes `:` for the end of
/// a file name: such a path, as those below `/dev/disk/by-path`, is replaced by the device file.
/// Source: assisted-installer-agent, src/disk_speed_check/disk_speed_check.go.
fn tested_path(view: &StepView<'_>) -> String {
    let path = installation_path(view.host);
    let device = installation_disk(view.host).map_or("", |disk| &disk.path);
    if path.contains(':') && !device.is_empty() && !view.has_agent_of(4, 13) {
        return device.to_owned();
    }
    path
}

/// Images of the installation without a good result.
/// Source: assisted-service, internal/host/hostcommands/container_image_availability_cmd.go.
fn images(view: &StepView<'_>) -> Option<ContainerImageAvailabilityRequest> {
    let release = view.ctx.release;
    let statuses = image_statuses(&view.host.record);
    let is_present = |image: &String| {
        statuses
            .get(image)
            .is_some_and(|status| status.result == Some(ContainerImageAvailabilityResult::Success))
    };
    let must_gather = must_gather(&release.must_gather);
    let mut images: Vec<String> = Vec::new();
    for image in [
        &release.release,
        &release.machine_config_operator,
        &must_gather,
        &view.ctx.components.installer,
    ] {
        if !image.is_empty() && !is_present(image) && !images.contains(image) {
            images.push(image.clone());
        }
    }
    (!images.is_empty()).then_some(ContainerImageAvailabilityRequest {
        timeout: IMAGE_TIMEOUT_S,
        images,
    })
}

/// The platform's own entry of a map by operator, or the reference itself.
fn must_gather(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => map
            .get("ocp")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        _ => text.to_owned(),
    }
}

/// Only while no logs are collected.
/// Source: assisted-service, internal/host/hostcommands/logs_cmd.go.
fn logs(view: &StepView<'_>) -> Option<LogsGatherCmdRequest> {
    let record = &view.host.record;
    if record.logs_collected_at.0.is_some() {
        return None;
    }
    let cluster = view.cluster()?;
    let masters = view
        .others()
        .filter(|other| matches!(other.record.role, Some(HostRole::Master)))
        .filter_map(|other| network::main_address(other, &cluster.machine_networks));
    Some(LogsGatherCmdRequest {
        cluster_id: cluster.id,
        infra_env_id: record.infra_env_id,
        host_id: record.id,
        bootstrap: record.bootstrap,
        installer_gather: true,
        master_ips: if record.bootstrap && !networking::is_single_node(cluster) {
            masters.map(|address| address.to_string()).collect()
        } else {
            Vec::new()
        },
    })
}

/// Source: assisted-service, internal/host/hostcommands/download_boot_artifacts_cmd.go.
fn boot_artifacts(view: &StepView<'_>) -> Option<Value> {
    let artifacts = view.ctx.boot_artifacts?;
    Some(json!({
        "kernel_url": artifacts.kernel,
        "rootfs_url": artifacts.rootfs,
        "initrd_url": artifacts.initrd,
        "host_fs_mount_dir": HOST_MOUNT,
    }))
}
