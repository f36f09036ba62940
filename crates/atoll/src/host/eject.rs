//! `atoll host eject`: hosts are left to their disks.

use clap::Args;
use redfish::{BootOrder, FinishJob};
use service::Error;

use super::bmcs::{HostBmcArgs, HostResult, cell, print_failures};
use crate::catalog::table::table;
use crate::terminal;

/// Arguments of `eject`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostEjectArgs {
    #[command(flatten)]
    bmcs: HostBmcArgs,
    /// Restart the hosts from their disks, as after an installation that booted its image again
    #[arg(long)]
    restart: bool,
}

/// Ejects the images; returns whether all hosts succeeded.
///
/// Errors: a file cannot be read, or has no such host.
pub(super) fn run(arguments: &HostEjectArgs) -> Result<bool, Error> {
    let results = arguments.bmcs.run(FinishJob {
        restarts: arguments.restart,
    })?;
    let rows: Vec<_> = results
        .iter()
        .filter_map(|one| Some([one.host.name.clone(), shown(one.result.as_ref().ok()?)]))
        .collect();
    if !rows.is_empty() {
        terminal::print(&table(["NAME", "BOOT ORDER"], &rows));
    }
    Ok(print_failures(results.iter().map(HostResult::failure)))
}

/// The first entries; `-` where the BMC does not show them.
fn shown(order: &BootOrder) -> String {
    let names: Vec<_> = order.entries.iter().map(|it| it.name.as_str()).collect();
    cell(&names.join(", "))
}
