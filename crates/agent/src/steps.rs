//! Steps that the service asks for, by their types.
//!
//! Source: assisted-installer-agent, src/commands/actions; arguments and outputs are `model::steps`.

mod api_vip;
mod connectivity;
pub(crate) mod context;
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

use std::sync::Arc;

use model::steps::StepType;

use self::context::{StepContext, StepOutcome};

/// Longest error of a step. Units: bytes.
const MAX_ERROR: usize = 4096;

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
