//! Step replies of agents.

use std::mem;

use model::Error;
use model::cluster::Cluster;
use model::events::EventSeverity;
use model::host::MediaStatus;
use model::inventory::{DiskInfo, DiskSpeed};
use model::steps::{
    ApiVipConnectivityResponse, ConnectivityReport, ContainerImageAvailabilityResponse,
    DhcpAllocationResponse, DiskSpeedCheckResponse, DomainResolutionResponse, FreeNetworkAddresses,
    NtpSynchronizationResponse, StepReply, StepType, TangConnectivityResponse,
    UpgradeAgentResponse, VerifiedVip,
};
use model::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bounds;
use crate::event::{self, NewEvent, about_host};
use crate::hardware::requirements::Requirements;
use crate::host;
use crate::host::images::image_statuses;
use crate::host::inventory::{self, SentInventory, UnreadableInventory};
use crate::json_text::{with_whole_characters, without_null_items};
use crate::network::vip_leases::LeasedVips;
use crate::policy::InstallationPolicy;
use crate::snapshot::host_state::HostState;
use crate::snapshot::reach::Reaches;

/// The agent could not read its boot medium.
const MEDIA_LOST: i64 = 256;
/// Exit code of the container engine when the installer's container already runs.
const NAME_IN_USE: i64 = 125;
/// Result of a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AcceptedReply {
    /// Events to store.
    pub events: Vec<NewEvent>,
    /// An input of decisions changed.
    pub refresh: bool,
    /// Verification of the cluster's virtual addresses, to be stored by [`store_vips`].
    pub vips: Vec<VerifiedVip>,
    /// Leased virtual addresses of the cluster, to be stored by [`LeasedVips::store`].
    pub leased: Option<LeasedVips>,
}

impl AcceptedReply {
    fn changed(refresh: bool) -> Self {
        Self {
            refresh,
            ..Self::default()
        }
    }
}

/// A reply within its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedReply {
    /// Without output if that is the inventory.
    reply: StepReply,
    inventory: Option<Result<SentInventory, UnreadableInventory>>,
}

impl CheckedReply {
    /// Checks a reply, and parses its inventory.
    ///
    /// Errors: Invalid – the output of another step breaks a bound; TooLarge.
    pub fn new(mut reply: StepReply) -> Result<Self, Error> {
        for text in [&mut reply.output, &mut reply.error] {
            // The database stores no NUL.
            if text.contains('\0') {
                *text = text.replace('\0', "\u{fffd}");
            }
        }
        let mut inventory = None;
        if let Some(step) = reply.step_type {
            if step == StepType::Inventory && reply.exit_code == 0 {
                inventory = Some(SentInventory::parse(&reply.output));
                reply.output = String::new();
            }
            bounds::check_output(step, &reply)?;
        }
        Ok(Self { reply, inventory })
    }

    /// The reason why its inventory cannot be read: [`accept`] stores it, and the agent is answered with it.
    pub fn unreadable(&self) -> Option<&UnreadableInventory> {
        self.inventory.as_ref()?.as_ref().err()
    }
}

/// Applies a reply.
///
/// Errors: Invalid – the output is malformed, or the step's type is missing from a success; Conflict – an inventory in a
/// status that accepts none.
/// Source: assisted-service, internal/bminventory/inventory.go, V2PostStepReply.
pub fn accept(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    CheckedReply { reply, inventory }: &mut CheckedReply,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<AcceptedReply, Error> {
    if reply.exit_code == MEDIA_LOST {
        return Ok(media_lost(host, cluster, policy, now));
    }
    let Some(step) = reply.step_type else {
        if reply.exit_code != 0 {
            // As most failures, that of an unnamed step changes nothing, and its agent would only repeat it.
            return Ok(AcceptedReply::default());
        }
        return Err(Error::invalid(
            "step_type",
            "is missing: it names the step of the reply",
        ));
    };
    if reply.exit_code != 0 {
        return failed(host, cluster, step, reply, policy, now);
    }
    let healed = host.record.media_status == Some(MediaStatus::Disconnected);
    host.record.media_status = Some(MediaStatus::Connected);
    let mut accepted = match inventory {
        Some(Ok(inventory)) => {
            let before = host.record.inventory.clone();
            inventory::accept(host, cluster, inventory, policy, now)?;
            let was_unreadable = !mem::take(&mut host.record.inventory_error).is_empty();
            AcceptedReply::changed(host.record.inventory != before || was_unreadable)
        }
        Some(Err(unreadable)) => no_inventory(host, unreadable.to_string()),
        None => succeeded(host, cluster, step, reply, policy, now)?,
    };
    accepted.refresh |= healed;
    Ok(accepted)
}

/// Stores why the agent's inventory is missing. The last one that could be read stays.
fn no_inventory(host: &mut HostState, reason: String) -> AcceptedReply {
    if !inventory::is_accepted_in(host.record.status)
        || !set(&mut host.record.inventory_error, reason)
    {
        return AcceptedReply::default();
    }
    let reason = &host.record.inventory_error;
    let event = about_host(
        host,
        event::INVENTORY_UNREADABLE,
        EventSeverity::Error,
        reason,
    );
    AcceptedReply {
        events: vec![event.prop("reason", reason)],
        ..AcceptedReply::changed(true)
    }
}

/// Source: assisted-service, internal/host/host.go, HandleMediaDisconnected.
fn media_lost(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> AcceptedReply {
    // A status without a rule ignores the report: the agent is not needed any more.
    let events = host::apply(host, cluster, host::Trigger::MediaDisconnected, policy, now);
    AcceptedReply {
        events: events.unwrap_or_default(),
        ..AcceptedReply::changed(true)
    }
}

fn failed(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    step: StepType,
    reply: &StepReply,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<AcceptedReply, Error> {
    match step {
        StepType::Inventory => {
            let reason = format!(
                "the agent cannot collect the inventory: {}",
                failure_text(reply)
            );
            Ok(no_inventory(host, reason))
        }
        StepType::Install => Ok(install_failed(host, cluster, reply, policy, now)),
        StepType::InstallationDiskSpeedCheck => disk_speed(host, cluster, reply, policy),
        StepType::ContainerImageAvailability => images(host, reply),
        StepType::DownloadBootArtifacts => Ok(reclaim(
            host,
            cluster,
            host::Trigger::ReclaimFailed,
            policy,
            now,
        )),
        // A host that fails to restart for its reclaim is asked again until that times out.
        StepType::TangConnectivityCheck => {
            let text = if reply.error.is_empty() {
                &reply.output
            } else {
                &reply.error
            };
            Ok(AcceptedReply::changed(set(
                &mut host.record.tang_connectivity,
                bounds::cut(text).to_owned(),
            )))
        }
        _ => Ok(AcceptedReply::default()),
    }
}

/// Exit code and message of a failed step.
fn failure_text(reply: &StepReply) -> String {
    let message = if reply.error.is_empty() {
        &reply.output
    } else {
        &reply.error
    };
    format!(
        "exit code {}: {}",
        reply.exit_code,
        bounds::cut(message.trim())
    )
}

/// Source: assisted-service, internal/host/host.go, HandleInstallationFailure.
fn install_failed(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    reply: &StepReply,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> AcceptedReply {
    if reply.exit_code == NAME_IN_USE && reply.error.contains("already in use") {
        return AcceptedReply::default();
    }
    let reason = failure_text(reply);
    // A host past the installation cannot fail any more.
    match host::apply(
        host,
        cluster,
        host::Trigger::InstallationFailed { reason },
        policy,
        now,
    ) {
        Ok(events) => AcceptedReply {
            events,
            ..AcceptedReply::changed(true)
        },
        Err(_) => AcceptedReply::default(),
    }
}

/// Source: assisted-service, internal/host/host.go, HandleReclaimBootArtifactDownload, HandleReclaimFailure.
fn reclaim(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    trigger: host::Trigger,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> AcceptedReply {
    // A status without a rule ignores the reply: it is a repeated one, or the reclaim has ended meanwhile.
    let events = host::apply(host, cluster, trigger, policy, now);
    events.map_or_else(
        |_| AcceptedReply::default(),
        |events| AcceptedReply {
            events,
            ..AcceptedReply::changed(true)
        },
    )
}

fn succeeded(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    step: StepType,
    reply: &StepReply,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<AcceptedReply, Error> {
    let record = &mut host.record;
    match step {
        StepType::ConnectivityCheck => connectivity(host, cluster, reply, policy),
        StepType::FreeNetworkAddresses if reply.output.trim().is_empty() => {
            Ok(AcceptedReply::default())
        }
        StepType::FreeNetworkAddresses => {
            let found = list::<FreeNetworkAddresses>(reply)?;
            let changed = record.free_addresses.set(&print(&found)?);
            Ok(AcceptedReply::changed(changed))
        }
        StepType::NtpSynchronizer => {
            let answer: NtpSynchronizationResponse = parse(reply)?;
            bounds::check_results("time sources", answer.ntp_sources.len())?;
            Ok(AcceptedReply::changed(set(
                &mut record.ntp_sources,
                print(&answer.ntp_sources)?,
            )))
        }
        StepType::DomainResolution => {
            store::<DomainResolutionResponse>(&mut record.domain_name_resolutions, reply)
        }
        StepType::TangConnectivityCheck => {
            store::<TangConnectivityResponse>(&mut record.tang_connectivity, reply)
        }
        StepType::ApiVipConnectivityCheck => {
            store::<ApiVipConnectivityResponse>(&mut record.api_vip_connectivity, reply)
        }
        StepType::VerifyVips => Ok(AcceptedReply {
            refresh: true,
            vips: list(reply)?,
            ..AcceptedReply::default()
        }),
        StepType::DhcpLeaseAllocate => leased_vips(cluster, reply),
        StepType::InstallationDiskSpeedCheck => disk_speed(host, cluster, reply, policy),
        StepType::ContainerImageAvailability => images(host, reply),
        StepType::UpgradeAgent => agent_upgrade(host, reply),
        StepType::DownloadBootArtifacts => Ok(reclaim(
            host,
            cluster,
            host::Trigger::RebootForReclaim,
            policy,
            now,
        )),
        StepType::Inventory
        | StepType::Install
        | StepType::Execute
        | StepType::StopInstallation
        | StepType::LogsGather
        | StepType::NextStepRunner
        | StepType::RebootForReclaim => Ok(AcceptedReply::default()),
    }
}

/// Source: assisted-service, internal/bminventory/inventory.go, processUpgradeAgentResponse.
fn agent_upgrade(host: &HostState, reply: &StepReply) -> Result<AcceptedReply, Error> {
    let UpgradeAgentResponse {
        agent_image: image,
        result,
    } = parse(reply)?;
    bounds::check_text(
        "the name of the agent's image",
        &image,
        bounds::HOSTNAME_BYTES,
    )?;
    let (name, severity, message) = match result.as_str() {
        "success" => (
            event::UPGRADE_AGENT_FINISHED,
            EventSeverity::Info,
            format!("its agent has pulled image {image} and restarts from it"),
        ),
        "failure" => (
            event::UPGRADE_AGENT_FAILED,
            EventSeverity::Error,
            format!(
                "its agent could not pull image {image} and will retry; check that the registry is reachable from the host"
            ),
        ),
        // Another upgrade runs.
        _ => return Ok(AcceptedReply::default()),
    };
    let event = about_host(host, name, severity, &message).prop("agent_image", image);
    Ok(AcceptedReply {
        events: vec![event],
        ..AcceptedReply::default()
    })
}

/// Source: assisted-service, internal/bminventory/inventory.go, processDhcpAllocationResponse.
fn leased_vips(cluster: Option<&Cluster>, reply: &StepReply) -> Result<AcceptedReply, Error> {
    // The host left its cluster meanwhile.
    let Some(cluster) = cluster else {
        return Ok(AcceptedReply::default());
    };
    let answer: DhcpAllocationResponse = parse(reply)?;
    Ok(AcceptedReply {
        leased: Some(LeasedVips::check(cluster, &answer)?),
        ..AcceptedReply::changed(true)
    })
}

/// Stores the hosts' verification of virtual addresses. Returns whether anything changed.
/// Source: assisted-service, internal/cluster/cluster.go, HandleVerifyVipsResponse.
pub fn store_vips(cluster: &mut Cluster, verified: &[VerifiedVip]) -> bool {
    use model::steps::VipType;
    let mut changed = false;
    for one in verified {
        let Some(verification) = one.verification else {
            continue;
        };
        let slots: Vec<&mut Option<_>> = match one.vip_type {
            Some(VipType::Ingress) => cluster
                .ingress_vips
                .iter_mut()
                .filter(|vip| vip.ip == one.vip)
                .map(|vip| &mut vip.verification)
                .collect(),
            Some(VipType::Api) => cluster
                .api_vips
                .iter_mut()
                .filter(|vip| vip.ip == one.vip)
                .map(|vip| &mut vip.verification)
                .collect(),
            None => Vec::new(),
        };
        for slot in slots {
            changed |= *slot != Some(verification);
            *slot = Some(verification);
        }
    }
    changed
}

/// Round trips differ in every report. Within the limits they change no decision, so the stored report is kept: most
/// replies of a cluster cost neither a write nor a refresh.
fn connectivity(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    reply: &StepReply,
    policy: &InstallationPolicy,
) -> Result<AcceptedReply, Error> {
    let report: ConnectivityReport = parse(reply)?;
    if let Some(before) = host.reaches() {
        let version = cluster.map_or("", |cluster| cluster.openshift_version.as_str());
        let limits = Requirements::of(policy, version).strictest_network();
        if before.are_equivalent(&Reaches::of(&report), limits) {
            return Ok(AcceptedReply::default());
        }
    }
    let changed = host.record.connectivity.set(&print(&report)?);
    host.clear_reaches();
    Ok(AcceptedReply::changed(changed))
}

/// Source: assisted-service, internal/host/host.go, SetDiskSpeed.
fn disk_speed(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    reply: &StepReply,
    policy: &InstallationPolicy,
) -> Result<AcceptedReply, Error> {
    if reply.output.trim().is_empty() {
        return Ok(AcceptedReply::default());
    }
    let answer: DiskSpeedCheckResponse = parse(reply)?;
    let mut results = crate::hardware::disks::results(&host.record.disks_info);
    bounds::check_text("the path of the disk", &answer.path, bounds::HOSTNAME_BYTES)?;
    results.insert(
        answer.path.clone(),
        DiskInfo {
            id: None,
            path: answer.path.clone(),
            disk_speed: Some(DiskSpeed {
                tested: true,
                exit_code: reply.exit_code,
                speed_ms: answer.io_sync_duration,
            }),
        },
    );
    bounds::check_results("tested disks", results.len())?;
    let changed = set(&mut host.record.disks_info, print(&results)?);
    let mut accepted = AcceptedReply::changed(changed);
    let version = cluster.map_or("", |cluster| cluster.openshift_version.as_str());
    let single = cluster.is_some_and(crate::snapshot::roles::is_single_node);
    let role = crate::snapshot::roles::effective_role(&host.record);
    let limit = Requirements::of(policy, version)
        .role(role, single)
        .installation_disk_speed_threshold_ms;
    if changed && reply.exit_code == 0 && answer.io_sync_duration > limit {
        let message = format!(
            "disk {} needs {} ms for a flush, more than the {limit} ms that are supported",
            answer.path, answer.io_sync_duration
        );
        accepted.events.push(
            about_host(
                host,
                "disk_speed_slower_than_supported",
                EventSeverity::Warning,
                &message,
            )
            .prop("host_disk", &answer.path)
            .prop("fdatasync_duration", answer.io_sync_duration),
        );
    }
    Ok(accepted)
}

/// Source: assisted-service, internal/host/host.go, UpdateImageStatus.
fn images(host: &mut HostState, reply: &StepReply) -> Result<AcceptedReply, Error> {
    if reply.output.trim().is_empty() {
        return Ok(AcceptedReply::default());
    }
    let answer: ContainerImageAvailabilityResponse = parse(reply)?;
    let mut known = image_statuses(&host.record);
    let mut accepted = AcceptedReply::default();
    for image in answer.images {
        bounds::check_text("the name of an image", &image.name, bounds::HOSTNAME_BYTES)?;
        let result = image.result.unwrap_or_default();
        let before = known.get(&image.name);
        if before.is_none_or(|before| before.result.unwrap_or_default() != result) {
            let info = format!(
                "{} bytes in {:.1} s, {:.1} MB/s",
                image.size_bytes, image.time, image.download_rate
            );
            let message = format!("image {}: {result} ({info})", image.name);
            accepted.events.push(
                about_host(host, "image_status_updated", EventSeverity::Info, &message)
                    .prop("image_status", &image.name)
                    .prop("result", result)
                    .prop("info", info),
            );
        }
        // The measurements of the first pull stay: later ones find layers in place.
        known
            .entry(image.name.clone())
            .and_modify(|known| known.result = image.result)
            .or_insert(image);
    }
    bounds::check_results("images", known.len())?;
    accepted.refresh = set(&mut host.record.images_status, print(&known)?);
    Ok(accepted)
}

fn store<T: DeserializeOwned + Serialize>(
    field: &mut String,
    reply: &StepReply,
) -> Result<AcceptedReply, Error> {
    let answer: T = parse(reply)?;
    Ok(AcceptedReply::changed(set(field, print(&answer)?)))
}

/// Agents send a list that they have not collected as `null`.
fn list<T: DeserializeOwned>(reply: &StepReply) -> Result<Vec<T>, Error> {
    let list: Option<Vec<T>> = serde_json::from_str(&with_whole_characters(&reply.output))
        .map_err(|error| unreadable(reply, &error))?;
    Ok(list.unwrap_or_default())
}

/// Parses a record. serde accepts a list for a struct.
fn parse<T: DeserializeOwned>(reply: &StepReply) -> Result<T, Error> {
    if reply.output.trim_start().starts_with('[') {
        return Err(unreadable(reply, &"it is a list"));
    }
    let json = with_whole_characters(&reply.output);
    let parsed = serde_json::from_str(&json);
    let parsed = parsed.or_else(|error| without_null_items(&json).ok_or(error));
    parsed.map_err(|error| unreadable(reply, &error))
}

fn unreadable(reply: &StepReply, problem: &dyn std::fmt::Display) -> Error {
    let step = reply.step_type.map_or("", StepType::as_str);
    Error::invalid(
        "output",
        format!("the output of step {step} cannot be read: {problem}"),
    )
}

fn print<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::internal("printing a reply", error))
}

fn set(field: &mut String, value: String) -> bool {
    let changed = *field != value;
    *field = value;
    changed
}

#[cfg(test)]
mod reclaim_tests;
#[cfg(test)]
mod release_tests;
#[cfg(test)]
mod upgrade_tests;
