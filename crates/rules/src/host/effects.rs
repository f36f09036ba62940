//! Effects of a host's transitions beyond the status.

use model::host::{HostKind, HostProgressInfo, HostRole, HostStage, MediaStatus};
use model::logs::LogsState;
use model::time::DateTime;

use super::facts::{Facts, StageMove};
use crate::event::{NewEvent, about_host};
use crate::host::heartbeat;
use crate::host::metric_events;
use crate::host::progress;
use crate::snapshot::host_state::HostState;

use model::cluster::Cluster;
use model::events::EventSeverity::{Error, Info, Warning};

/// An effect of a transition on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Clears the inventory until the next reply.
    ClearInventory,
    /// Clears the bootstrap flag, except on a single node.
    ClearBootstrap,
    /// Clears stage and percentage.
    ClearProgress,
    /// Clears the results of the image check.
    ClearImages,
    /// Clears the failed results of the image check, so that these images are pulled again.
    ClearFailedImages,
    /// Clears log state and log times.
    ClearLogs,
    /// Clears the state of time sources.
    ClearNtp,
    /// Clears the results that belong to a cluster.
    ClearCluster,
    /// Stores the registration and the agent's version.
    Register,
    /// Stores the reported stage.
    StoreStage,
    /// Reports the hardware of a host whose installation failed.
    MeasureFailure,
    /// Stores and reports that the stage timed out.
    StageTimedOut,
    /// Restarts the clock of the stage.
    RestartStageClock,
    /// Stores whether heartbeats time out.
    StoreConnection,
    /// Stores and reports that the boot medium is lost.
    DisconnectMedia,
    /// Ends log collection with a timeout.
    LogsTimeOut,
    /// Binds the host to the cluster.
    Bind,
    /// Reports the start of the installation.
    ReportInstallation,
    /// Reports the cancelled installation.
    ReportCancelled,
    /// Reports the reset, and that the user must boot the host.
    ReportReset,
}

/// Applies an effect.
pub(super) fn run(
    effect: Effect,
    host: &mut HostState,
    cluster: Option<&Cluster>,
    facts: &Facts,
    events: &mut Vec<NewEvent>,
) {
    let record = &mut host.record;
    match effect {
        Effect::ClearInventory => {
            record.inventory.clear();
            record.inventory_error.clear();
            host.inventory = None;
            host.clear_check_target();
        }
        Effect::ClearBootstrap => record.bootstrap = facts.single_node && !facts.day2,
        Effect::ClearProgress => clear_progress(host),
        Effect::ClearImages => record.images_status.clear(),
        Effect::ClearFailedImages => crate::host::images::clear_failed_images(record),
        Effect::ClearLogs => {
            record.logs_info = None;
            record.logs_collected_at = DateTime(None);
            record.logs_started_at = DateTime(None);
        }
        Effect::ClearNtp => record.ntp_sources.clear(),
        Effect::ClearCluster => clear_cluster(host),
        Effect::Register => register(host, cluster, facts),
        Effect::StoreStage => store_stage(host, cluster, facts, events),
        Effect::MeasureFailure => {
            events.extend(metric_events::of_ended_installation(
                host,
                HostStage::Failed,
            ));
        }
        Effect::StageTimedOut => stage_timed_out(host, facts, events),
        Effect::RestartStageClock => restart_stage_clock(host, facts),
        Effect::StoreConnection => record.connection_timed_out = !facts.connected,
        Effect::DisconnectMedia => disconnect_media(host, events),
        Effect::LogsTimeOut => record.logs_info = Some(LogsState::Timeout),
        Effect::Bind => record.cluster_id = cluster.map(|cluster| cluster.id),
        Effect::ReportInstallation => events.push(about_host(
            host,
            "host_installation_started",
            Info,
            "installation was started",
        )),
        Effect::ReportCancelled => events.push(about_host(
            host,
            "host_installation_cancelled",
            Info,
            "installation was cancelled",
        )),
        Effect::ReportReset => {
            events.push(about_host(
                host,
                "host_installation_reset",
                Info,
                "installation was reset",
            ));
            events.push(about_host(
                host,
                "user_required_complete_installation_reset",
                Info,
                "boot the discovery image to complete the reset",
            ));
        }
    }
}

fn clear_progress(host: &mut HostState) {
    host.record.progress = Some(HostProgressInfo::default());
    host.record.stage_started_at = DateTime(None);
    host.record.stage_updated_at = DateTime(None);
}

fn clear_cluster(host: &mut HostState) {
    clear_progress(host);
    let record = &mut host.record;
    record.cluster_id = None;
    record.kind = HostKind::Host;
    record.role = Some(HostRole::AutoAssign);
    record.suggested_role = None;
    record.bootstrap = false;
    record.progress_stages.clear();
    record.can_retry = false;
    record.logs_info = None;
    record.logs_collected_at = DateTime(None);
    record.logs_started_at = DateTime(None);
    record.connectivity.clear();
    record.domain_name_resolutions.clear();
    record.free_addresses.clear();
    record.images_status.clear();
    record.installation_disk_id.clear();
    record.installation_disk_path.clear();
    record.machine_config_pool_name.clear();
    record.api_vip_connectivity.clear();
    host.clear_reaches();
}

fn register(host: &mut HostState, cluster: Option<&Cluster>, facts: &Facts) {
    let record = &mut host.record;
    record
        .discovery_agent_version
        .clone_from(&facts.agent_version);
    record.registered_at = facts.now.into();
    heartbeat::receive(record, facts.now, None);
    record.media_status = Some(MediaStatus::Connected);
    record.connection_timed_out = false;
    record.kind = super::registration::kind(cluster);
}

fn store_stage(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    facts: &Facts,
    events: &mut Vec<NewEvent>,
) {
    let Some(report) = &facts.report else { return };
    // No agent runs on a day-2 host after its reboot.
    let stage = match report.stage {
        HostStage::Rebooting if facts.day2 => HostStage::Done,
        stage => stage,
    };
    let stages = cluster.map_or(&[][..], |cluster| progress::stages(&host.record, cluster));
    let record = &mut host.record;
    let progress = record.progress.get_or_insert_default();
    progress.progress_info.clone_from(&report.info);
    progress.stage_updated_at = facts.now.into();
    record.stage_updated_at = facts.now.into();
    if report.step != StageMove::Same {
        progress.current_stage = Some(stage);
        progress.stage_started_at = facts.now.into();
        progress.stage_timed_out = false;
        record.stage_started_at = facts.now.into();
        match stage {
            HostStage::Failed => {}
            HostStage::Done => progress.installation_percentage = 100,
            stage => progress.installation_percentage = progress::host_percentage(stages, stage),
        }
    }
    let message = if report.info.is_empty() {
        format!("reached stage {stage}")
    } else {
        format!("reached stage {stage}: {}", report.info)
    };
    let shown = format!("{stage} {}", report.info);
    events.push(
        about_host(host, "host_install_progress_updated", Info, &message)
            .prop("event", shown.trim()),
    );
    if stage == HostStage::Done && report.step != StageMove::Same {
        events.extend(metric_events::of_ended_installation(host, stage));
    }
}

fn stage_timed_out(host: &mut HostState, facts: &Facts, events: &mut Vec<NewEvent>) {
    let Some(progress) = &mut host.record.progress else {
        return;
    };
    if progress.stage_timed_out {
        return;
    }
    progress.stage_timed_out = true;
    let Some(stage) = progress.current_stage else {
        return;
    };
    let minutes = facts.stage_limit_min;
    let message = format!("stage {stage} takes longer than {minutes} minutes");
    events.push(
        about_host(host, "host_stage_timed_out", Warning, &message)
            .prop("stage", stage)
            .prop("minutes", minutes),
    );
}

/// At most once a minute, so that a refresh does not become a write.
fn restart_stage_clock(host: &mut HostState, facts: &Facts) {
    if !facts.stage_stale {
        return;
    }
    host.record.stage_updated_at = facts.now.into();
    if let Some(progress) = &mut host.record.progress {
        progress.stage_updated_at = facts.now.into();
    }
}

fn disconnect_media(host: &mut HostState, events: &mut Vec<NewEvent>) {
    if host.record.media_status == Some(MediaStatus::Disconnected) {
        return;
    }
    host.record.media_status = Some(MediaStatus::Disconnected);
    events.push(about_host(
        host,
        "host_media_disconnected",
        Error,
        "cannot read its boot medium any more",
    ));
}
