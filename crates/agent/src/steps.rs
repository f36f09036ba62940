//! Steps that the service asks for, by their types.
//!
//! Source: assisted-installer-agent, src/commands/actions; arguments and outputs are `model::steps`.

mod api_vip;
mod connectivity;
mod dhcp_lease;
#[cfg(test)]
mod dhcp_lease_tests;
mod disk_speed;
mod domain_resolution;
mod free_addresses;
#[cfg(test)]
mod hostile_tests;
mod image_availability;
mod install;
mod inventory;
mod logs;
#[cfg(test)]
mod network_tests;
mod ntp;
mod reclaim;
mod tang;
mod upgrade_agent;
mod vips;

use std::sync::{Arc, Mutex};

use model::steps::StepType;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::HostFiles;
use crate::api::ServiceClient;
use crate::install::InstallationTask;
use crate::status::StatusHandle;

/// Longest error of a step. Units: bytes.
const MAX_ERROR: usize = 4096;

/// Everything that steps use.
#[derive(Debug)]
pub(crate) struct StepContext {
    pub(crate) api: ServiceClient,
    pub(crate) files: HostFiles,
    pub(crate) host_id: Uuid,
    pub(crate) status: StatusHandle,
    pub(crate) installation: InstallationTask,
    /// The peer's image of the agent, which its installer uses.
    pub(crate) agent_image: Mutex<String>,
}

/// Result of a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StepOutcome {
    pub(crate) exit_code: i64,
    /// JSON text of most steps.
    pub(crate) output: String,
    pub(crate) error: String,
    /// The host has to register again.
    pub(crate) registers_again: bool,
}

impl StepOutcome {
    fn json(output: &impl Serialize) -> Result<Self, String> {
        let output = serde_json::to_string(output).map_err(|error| error.to_string())?;
        Ok(Self {
            output,
            ..Self::default()
        })
    }
}

/// Runs a step. A failure of the step itself has the exit code -1.
pub(crate) async fn run(
    context: &Arc<StepContext>,
    kind: StepType,
    arguments: &[String],
) -> StepOutcome {
    let outcome = match kind {
        StepType::Inventory => inventory::run(context, arguments).await,
        StepType::ConnectivityCheck => connectivity::run(context, arguments).await,
        StepType::FreeNetworkAddresses => free_addresses::run(context, arguments).await,
        StepType::DhcpLeaseAllocate => dhcp_lease::run(context, arguments).await,
        StepType::NtpSynchronizer => ntp::run(context, arguments).await,
        StepType::DomainResolution => domain_resolution::run(context, arguments).await,
        StepType::VerifyVips => vips::run(context, arguments).await,
        StepType::TangConnectivityCheck => tang::run(arguments).await,
        StepType::ApiVipConnectivityCheck => api_vip::run(arguments).await,
        StepType::InstallationDiskSpeedCheck => disk_speed::run(arguments).await,
        StepType::ContainerImageAvailability => image_availability::run(context, arguments).await,
        StepType::Install => install::run(context, arguments),
        StepType::StopInstallation => Ok(install::stop(context)),
        StepType::UpgradeAgent => upgrade_agent::run(arguments),
        StepType::DownloadBootArtifacts => reclaim::download(context, arguments).await,
        StepType::RebootForReclaim => reclaim::reboot(context, arguments).await,
        StepType::LogsGather => logs::run(context, arguments).await,
        other => Err(format!("this agent has no step {other}")),
    };
    let mut outcome = outcome.unwrap_or_else(|error| StepOutcome {
        exit_code: -1,
        error,
        ..StepOutcome::default()
    });
    // It may quote the arguments.
    let end = outcome.error.floor_char_boundary(MAX_ERROR);
    outcome.error.truncate(end);
    outcome
}

/// The request in the only argument.
fn only<T: DeserializeOwned>(arguments: &[String]) -> Result<T, String> {
    let [argument] = arguments else {
        return Err(format!("expected one argument, got {}", arguments.len()));
    };
    serde_json::from_str(argument).map_err(|error| format!("unexpected argument: {error}"))
}
