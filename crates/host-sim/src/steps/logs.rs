//! Steps that gather and upload logs.

use std::sync::Arc;

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::arguments::only_json;
use super::reply::StepReply;
use crate::Error;
use crate::api::{ApiCall, RetryPolicy};
use crate::log_archive::log_archive;
use crate::machine::Machine;

#[derive(Deserialize)]
struct GatherRequest {
    cluster_id: Uuid,
    infra_env_id: Uuid,
    host_id: Uuid,
    bootstrap: bool,
    #[serde(rename = "installer_gather")]
    _installer_gather: bool,
}

pub(super) async fn gather(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let request: GatherRequest = only_json(args)?;
    if request.host_id != machine.hardware.host_id
        || request.infra_env_id != machine.boot.infra_env_id
    {
        return Err(format!(
            "the request names host {} of infra-env {}",
            request.host_id, request.infra_env_id
        ));
    }
    Ok(
        match upload_host_logs(machine, request.cluster_id, request.bootstrap).await {
            Ok(()) => StepReply::default(),
            Err(error) => StepReply::failed(-1, error.chain()),
        },
    )
}

/// Uploads the logs of a host as the agent does: reports the start, sends the archive, reports the end.
pub(crate) async fn upload_host_logs(
    machine: &Machine,
    cluster_id: Uuid,
    is_bootstrap: bool,
) -> Result<(), Error> {
    let (infra_env_id, host_id) = (machine.boot.infra_env_id, machine.hardware.host_id);
    let state = |state: &str| {
        let path = format!("/v2/infra-envs/{infra_env_id}/hosts/{host_id}/logs-progress");
        ApiCall::new("logs", Method::PUT, path).json(&json!({ "logs_state": state }))
    };
    machine
        .api
        .send(RetryPolicy::Installer, state("requested"))
        .await?;
    let agent = format!(
        "agent of {} ({host_id}): {} reached\n",
        machine.name(),
        machine.disk.get().stage.unwrap_or_default()
    );
    let mut files = vec![
        ("logs/agent.logs", agent.as_str()),
        (
            "logs/mount.logs",
            "/dev/sr0 on /run/media/iso type iso9660 (ro)\n",
        ),
    ];
    if is_bootstrap {
        files.push((
            "logs/bootkube.logs",
            "bootkube.service: all static pods are running\n",
        ));
    }
    let upload = ApiCall::new(
        "logs",
        Method::POST,
        format!("/v2/clusters/{cluster_id}/logs"),
    )
    .query("logs_type", &"host")
    .query("infra_env_id", &infra_env_id)
    .query("host_id", &host_id)
    .upload("upfile", "logs.tar.gz", &log_archive(&files)?);
    machine.api.send(RetryPolicy::Installer, upload).await?;
    machine
        .api
        .send(RetryPolicy::Installer, state("completed"))
        .await
        .map(drop)
}
