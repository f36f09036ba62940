//! Steps that start and stop programs of the machine.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::arguments::{absolute, is_image, none, only_json, some_text};
use super::reply::StepReply;
use crate::install_request::InstallRequest;
use crate::machine::Machine;
use crate::state_file::MachineState;

/// Exit code of a container engine whose container name is taken.
const NAME_IN_USE: i64 = 125;

/// The installer runs beside the agent; the reply comes at once, when the container is started.
pub(super) fn install(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let request = InstallRequest::parse(some_text(args)?, &machine.hardware)?;
    Ok(if machine.begin_installation(request) {
        StepReply::default()
    } else {
        StepReply::failed(
            NAME_IN_USE,
            "the container name \"assisted-installer\" is already in use",
        )
    })
}

pub(super) fn stop_installation(
    machine: &Arc<Machine>,
    args: &[String],
) -> Result<StepReply, String> {
    none(args)?;
    machine.stop_installation();
    Ok(StepReply::default())
}

#[derive(Deserialize)]
struct UpgradeRequest {
    agent_image: String,
}

pub(super) fn upgrade_agent(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let request: UpgradeRequest = only_json(args)?;
    if !is_image(&request.agent_image) {
        return Err(format!("{:?} is no image", request.agent_image));
    }
    machine
        .disk
        .change(|record| record.agent_version = Some(request.agent_image.clone()));
    let reply =
        StepReply::json(&json!({ "agent_image": request.agent_image, "result": "success" }));
    Ok(StepReply {
        restarts: true,
        ..reply
    })
}

#[derive(Deserialize)]
struct ArtifactsRequest {
    kernel_url: Url,
    rootfs_url: Url,
    initrd_url: Url,
    host_fs_mount_dir: String,
}

pub(super) async fn download_boot_artifacts(
    machine: &Arc<Machine>,
    args: &[String],
) -> Result<StepReply, String> {
    let request: ArtifactsRequest = only_json(args)?;
    absolute(&request.host_fs_mount_dir)?;
    for url in [request.kernel_url, request.rootfs_url, request.initrd_url] {
        if let Err(error) = machine.api.fetch(url).await {
            return Ok(StepReply::failed(-1, error.chain()));
        }
    }
    Ok(StepReply {
        output: "boot artifacts are in place".into(),
        ..StepReply::default()
    })
}

#[derive(Deserialize)]
struct ReclaimRequest {
    host_fs_mount_dir: String,
}

/// The machine boots its discovery image again and loses its state.
pub(super) fn reboot_for_reclaim(
    machine: &Arc<Machine>,
    args: &[String],
) -> Result<StepReply, String> {
    let request: ReclaimRequest = only_json(args)?;
    absolute(&request.host_fs_mount_dir)?;
    machine
        .disk
        .change(|record| *record = MachineState::default());
    Ok(StepReply {
        restarts: true,
        ..StepReply::default()
    })
}
