//! Handlers for agents and installers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use model::Error;
use model::host::{Host, HostCreateParams};
use model::steps::{StepReply, Steps};
use rules::steps::{RunnerCommand, runner_command};
use serde::Serialize;

use super::encoded_json::EncodedJson;
use super::error::ApiError;
use super::extract::{InInfraEnv, JsonBody, OfHost, REPLY_LIMIT};
use super::query::Query;
use crate::app::agent::{Agents, Poll};

/// Header with the agent's image.
const AGENT_VERSION: &str = "discovery_agent_version";

/// Response to a registration: the host, and its agent's next command.
#[derive(Debug, Serialize)]
pub(crate) struct Registration {
    #[serde(flatten)]
    host: Host,
    next_step_runner_command: RunnerCommand,
}

fn agent_version(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(AGENT_VERSION)
        .and_then(|value| value.to_str().ok())
}

pub(crate) async fn register(
    State(agents): State<Arc<Agents>>,
    InInfraEnv(infra_env): InInfraEnv,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<(StatusCode, Json<Registration>), ApiError> {
    let mut params: HostCreateParams = body.parse("new-host-params")?;
    if params.discovery_agent_version.is_empty() {
        agent_version(&headers)
            .unwrap_or_default()
            .clone_into(&mut params.discovery_agent_version);
    }
    let (host, agent_image) = agents.register(infra_env, &params).await?;
    let command = runner_command(infra_env, host.id, &agent_image);
    let answer = Registration {
        host,
        next_step_runner_command: command,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

pub(crate) async fn next_steps(
    State(agents): State<Arc<Agents>>,
    OfHost(infra_env, id): OfHost,
    headers: HeaderMap,
    query: Query,
) -> Result<EncodedJson<Vec<u8>>, ApiError> {
    let poll = Poll {
        host_time_s: query.integer("timestamp")?,
        agent_version: agent_version(&headers),
    };
    let steps = agents.next_steps(infra_env, id, poll).await?;
    Ok(EncodedJson(print(&steps)?))
}

/// Arguments list the other hosts of a cluster as JSON in a text: a fifth more with its escapes. Growing the buffer step
/// by step would copy it several times.
fn print(steps: &Steps) -> Result<Vec<u8>, ApiError> {
    let arguments = steps.instructions.iter().flat_map(|step| &step.args);
    let length: usize = arguments.map(String::len).sum();
    let mut json = Vec::with_capacity(length + length / 4 + 1024);
    serde_json::to_writer(&mut json, steps)
        .map_err(|error| Error::internal("printing the steps of a host", error))?;
    Ok(json)
}

pub(crate) async fn step_reply(
    State(agents): State<Arc<Agents>>,
    OfHost(infra_env, id): OfHost,
    body: JsonBody<REPLY_LIMIT>,
) -> Result<StatusCode, ApiError> {
    let parse = || parse_reply(&body);
    agents
        .reply(infra_env, id, body.sent().as_ref(), parse)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A reply; bytes that are no characters are replaced, as the peer's service does.
fn parse_reply(body: &JsonBody<REPLY_LIMIT>) -> Result<StepReply, ApiError> {
    body.parse("reply").or_else(|error| {
        body.with_whole_characters()
            .parse("reply")
            .map_err(|_| error)
    })
}

pub(crate) async fn progress(
    State(agents): State<Arc<Agents>>,
    OfHost(infra_env, id): OfHost,
    body: JsonBody,
) -> Result<StatusCode, ApiError> {
    agents
        .report_progress(infra_env, id, &body.parse("host-progress")?)
        .await?;
    Ok(StatusCode::OK)
}
