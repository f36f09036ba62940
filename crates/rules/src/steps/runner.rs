//! Command of the step runner, which a registered agent starts.

use model::ids::{HostId, InfraEnvId};
use model::steps::NextStepCmdRequest;
use serde::{Deserialize, Serialize};

use crate::json_text;

/// `next_step_runner_command` of the registration's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunnerCommand {
    /// Program; the agent knows its own when this is absent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// One text: the request as JSON.
    pub args: Vec<String>,
    /// Units: seconds; absent when the agent decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_seconds: Option<i64>,
}

/// The command for a host.
/// Source: assisted-service, internal/host/hostcommands/next_step_runner_cmd.go.
pub fn runner_command(
    infra_env_id: InfraEnvId,
    host_id: HostId,
    agent_image: &str,
) -> RunnerCommand {
    let request = NextStepCmdRequest {
        infra_env_id,
        host_id,
        agent_version: agent_image.to_owned(),
    };
    RunnerCommand {
        args: json_text::text(&request).into_iter().collect(),
        ..RunnerCommand::default()
    }
}
