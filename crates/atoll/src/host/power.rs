//! `atoll host power`: power of hosts by their BMCs.

use clap::{Args, ValueEnum};
use redfish::{PowerAction, PowerJob, PowerStateJob};
use service::Error;

use super::bmcs::{HostBmcArgs, HostResult, print_failures};
use crate::catalog::table::table;
use crate::terminal;

/// Arguments of `power`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostPowerArgs {
    action: HostPowerAction,
    #[command(flatten)]
    bmcs: HostBmcArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HostPowerAction {
    /// Read the power
    Status,
    /// Power on
    On,
    /// Power off at once, without the operating system
    Off,
    /// Power off by the operating system
    Shutdown,
    /// Power off at once, and on again
    Restart,
}

impl HostPowerAction {
    fn change(self) -> Option<PowerAction> {
        match self {
            Self::Status => None,
            Self::On => Some(PowerAction::On),
            Self::Off => Some(PowerAction::ForceOff),
            Self::Shutdown => Some(PowerAction::GracefulShutdown),
            Self::Restart => Some(PowerAction::Restart),
        }
    }
}

/// Reads or changes the power; returns whether all hosts succeeded.
///
/// Errors: a file cannot be read, or has no such host.
pub(super) fn run(arguments: &HostPowerArgs) -> Result<bool, Error> {
    let results = match arguments.action.change() {
        Some(action) => arguments.bmcs.run(PowerJob(action))?,
        None => arguments.bmcs.run(PowerStateJob)?,
    };
    let rows: Vec<_> = results
        .iter()
        .filter_map(|one| Some([one.host.name.clone(), one.result.as_ref().ok()?.to_string()]))
        .collect();
    if !rows.is_empty() {
        terminal::print(&table(["NAME", "POWER"], &rows));
    }
    Ok(print_failures(results.iter().map(HostResult::failure)))
}
