//! Inputs of a host's guards: plain values, computed once.

use chrono::TimeDelta;
use model::cluster::{Cluster, ClusterStatus};
use model::host::{HostKind, HostRole, HostStage, MediaStatus};
use model::inventory::{Disk, Inventory};
use model::time::{DateTime, Timestamp};

use crate::hardware::check_outcome::CheckOutcome;
use crate::hardware::disks::installation_disk;
use crate::host::retry;
use crate::host::timeout;
use crate::host::timeout::older;
use crate::policy::InstallationPolicy;
use crate::snapshot::host_state::HostState;
use crate::snapshot::roles;

/// Position of a reported stage relative to the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageMove {
    /// Later than the current one, or the first.
    Forward,
    /// The current one again.
    Same,
    /// Earlier than the current one.
    Back,
    /// Not a stage of this host's role.
    Foreign,
}

/// A progress report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressReport {
    /// The stage as the host reported it.
    pub stage: HostStage,
    /// Additional text of the report.
    pub info: String,
    /// Position of the stage.
    pub step: StageMove,
}

/// Inputs of a host that depend on the whole cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterInputs {
    pub(crate) connected: bool,
    pub(crate) hardware_ok: bool,
    pub(crate) input_ok: bool,
    pub(crate) vsphere_ok: bool,
    pub(crate) sufficient: bool,
    pub(crate) blocking: String,
    pub(crate) cluster_needs_it: bool,
    pub(crate) cluster_status: Option<ClusterStatus>,
}

/// Plain values about one host at one moment.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Time of the evaluation.
    pub now: Timestamp,
    /// Day-2 host.
    pub day2: bool,
    /// Status of its cluster, when it has one.
    pub cluster: Option<ClusterStatus>,
    /// Heartbeats arrive and the boot medium can be read.
    pub connected: bool,
    /// The boot medium was lost.
    pub media_lost: bool,
    /// It has a role that can be installed.
    pub role_valid: bool,
    /// The inventory is present and valid.
    pub inventory: bool,
    /// The inventory is truncated so far that no check can use it.
    pub inventory_truncated: bool,
    /// Every validation of the hardware class passes.
    pub hardware_ok: bool,
    /// The user's required input is complete.
    pub input_ok: bool,
    /// Disks of a VMware machine carry ids.
    pub vsphere_ok: bool,
    /// Every validation of the sufficiency class passes.
    pub sufficient: bool,
    /// Messages of exactly the blocking validations.
    pub blocking: String,
    /// Result of the installation disk's speed test.
    pub disk_speed: CheckOutcome,
    /// Result of the container image check.
    pub images: CheckOutcome,
    /// Images that cannot be pulled.
    pub bad_images: String,
    /// Current stage.
    pub stage: Option<HostStage>,
    /// The current stage timed out.
    pub stage_expired: bool,
    /// Limit of the current stage. Units: minutes.
    pub stage_limit_min: i64,
    /// The clock of the stage is a minute old or more.
    pub stage_stale: bool,
    /// The preparation timed out.
    pub prepare_expired: bool,
    /// No progress within 20 minutes of the installation's start.
    pub start_expired: bool,
    /// The pending user action timed out.
    pub action_expired: bool,
    /// The reclaim timed out.
    pub reclaim_expired: bool,
    /// The cluster could not be installed without this host.
    pub cluster_needs_it: bool,
    /// A stage that times out is reported and does not fail.
    pub soft_timeouts: bool,
    /// Log collection is overdue.
    pub logs_overdue: bool,
    /// The only host of its cluster.
    pub single_node: bool,
    /// The machine, for texts: maker, model, serial number.
    pub machine: String,
    /// The installation disk, for texts: name and id.
    pub disk: String,
    /// The progress report of this trigger.
    pub report: Option<ProgressReport>,
    /// Why the installation failed.
    pub reason: String,
    /// Version of the agent that registers.
    pub agent_version: String,
}

impl Facts {
    /// Computes the inputs of one host; `cluster_inputs` holds those that depend on the cluster.
    pub(crate) fn of(
        host: &HostState,
        cluster: Option<&Cluster>,
        cluster_inputs: ClusterInputs,
        policy: &InstallationPolicy,
        now: Timestamp,
    ) -> Self {
        let record = &host.record;
        let stage = record.progress.as_ref().and_then(|one| one.current_stage);
        let single_node = cluster.is_some_and(roles::is_single_node);
        let stage_timeout = timeout::host_stage(record, single_node);
        let updated = record
            .progress
            .as_ref()
            .map_or(DateTime(None), |one| one.stage_updated_at);
        Self {
            now,
            day2: record.kind == HostKind::AddToExistingClusterHost,
            cluster: cluster_inputs.cluster_status,
            connected: cluster_inputs.connected,
            media_lost: record.media_status == Some(MediaStatus::Disconnected),
            role_valid: matches!(
                record.role,
                Some(HostRole::Master | HostRole::Arbiter | HostRole::Worker)
            ),
            inventory: host.inventory.is_some(),
            inventory_truncated: host.inventory.as_deref().is_some_and(is_fully_truncated),
            hardware_ok: cluster_inputs.hardware_ok,
            input_ok: cluster_inputs.input_ok,
            vsphere_ok: cluster_inputs.vsphere_ok,
            sufficient: cluster_inputs.sufficient,
            blocking: cluster_inputs.blocking,
            disk_speed: crate::hardware::disks::speed(host).outcome(),
            images: crate::host::images::images_outcome(record),
            bad_images: crate::host::images::failed_images(record).join(", "),
            stage,
            stage_expired: stage_timeout
                .is_some_and(|timeout| timeout.is_expired(now, host.observed)),
            stage_limit_min: stage_timeout.map_or(0, |timeout| timeout.limit.num_minutes()),
            stage_stale: older(updated, now) >= TimeDelta::minutes(1),
            prepare_expired: timeout::host_preparation(record, policy)
                .is_expired(now, host.observed),
            start_expired: timeout::host_start(record).is_expired(now, host.observed),
            action_expired: timeout::host_user_action(record, policy)
                .is_expired(now, host.observed),
            reclaim_expired: timeout::host_reclaim(record).is_expired(now, host.observed),
            cluster_needs_it: cluster_inputs.cluster_needs_it,
            soft_timeouts: policy.soft_timeouts,
            logs_overdue: timeout::host_logs(record, policy)
                .is_some_and(|timeout| timeout.is_expired(now, host.observed)),
            single_node,
            machine: host.inventory.as_deref().map_or_else(String::new, machine),
            disk: installation_disk(host).map_or_else(String::new, disk),
            report: None,
            reason: String::new(),
            agent_version: String::new(),
        }
    }

    /// Disk speed and container images have passed.
    pub fn prepared(&self) -> bool {
        self.disk_speed == CheckOutcome::Good && self.images == CheckOutcome::Good
    }

    /// A result of the preparation is missing.
    pub fn prepare_pending(&self) -> bool {
        self.disk_speed == CheckOutcome::Unknown || self.images == CheckOutcome::Unknown
    }

    /// Its cluster is being installed.
    pub fn cluster_is_installing(&self) -> bool {
        self.cluster
            .is_some_and(|status| retry::CLUSTER.contains(&status))
    }

    /// The cluster has the given status.
    pub fn cluster_is(&self, status: ClusterStatus) -> bool {
        self.cluster == Some(status)
    }
}

pub(crate) fn is_fully_truncated(inventory: &Inventory) -> bool {
    inventory
        .truncation
        .as_ref()
        .is_some_and(|truncation| truncation.r#type == model::inventory::Type::Full.into())
}

fn machine(inventory: &Inventory) -> String {
    let Some(vendor) = &inventory.system_vendor else {
        return String::new();
    };
    let parts = [
        &vendor.manufacturer,
        &vendor.product_name,
        &vendor.serial_number,
    ];
    let known: Vec<&str> = parts
        .into_iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    known.join(" ")
}

fn disk(disk: &Disk) -> String {
    if disk.name.is_empty() {
        return disk.id.clone();
    }
    format!("{} ({})", disk.name, disk.id)
}
