//! Stages of an installation: their order after the restart, and their reports.

use reqwest::Method;
use serde_json::json;

use crate::Error;
use crate::api::{ApiCall, ApiClient, RetryPolicy};

/// Position of a stage among those that follow the restart; anything earlier is 0.
pub(crate) fn order(stage: &str) -> usize {
    [
        "Rebooting",
        "Waiting for ignition",
        "Configuring",
        "Joined",
        "Done",
    ]
    .iter()
    .position(|known| *known == stage)
    .map_or(0, |position| position + 1)
}

/// Reports a stage of any host: the bootstrap host and the controller speak for others.
pub(crate) async fn report(
    api: &ApiClient,
    infra_env: &str,
    host: &str,
    stage: &str,
    info: &str,
) -> Result<(), Error> {
    let call = ApiCall::new(
        "progress",
        Method::PUT,
        format!("/v2/infra-envs/{infra_env}/hosts/{host}/progress"),
    )
    .json(&json!({ "current_stage": stage, "progress_info": info }));
    api.send(RetryPolicy::Installer, call).await.map(drop)
}
