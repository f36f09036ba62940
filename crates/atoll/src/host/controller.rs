//! `atoll host controller`: the hosts of a cluster without another controller.

use std::path::PathBuf;

use clap::Args;
use host_controller::{HostController, HostReport};
use service::logs::{self, LogFormat};
use service::runtime;
use service::{Error, ResultExt as _, shutdown};

use super::bmcs::connector;
use crate::catalog::table::table;
use crate::cluster_args::ClusterArgs;
use crate::terminal;

const DOING: &str = "controlling the hosts";

/// Arguments of `controller`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostControllerArgs {
    /// Look at every host once, print the changes, and end; exit code 1 if a host has an error or was left alone
    #[arg(long)]
    once: bool,
    /// CA certificates of the BMCs (PEM) to trust in addition to the system's
    #[arg(long = "ca", alias = "bmc-ca", value_name = "FILE")]
    bmc_ca: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Controls the hosts until SIGTERM or SIGINT; returns whether a single look found no errors.
///
/// Errors: the cluster cannot be read, or another controller runs.
pub(super) fn run(arguments: &HostControllerArgs) -> Result<bool, Error> {
    let connector = connector(arguments.bmc_ca.as_deref())?;
    runtime::block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let controller = HostController::new(cluster, &connector, &holder());
        if arguments.once {
            let reports = controller.once().await;
            return Ok(print(&reports.doing(DOING)?));
        }
        logs::init("info", LogFormat::Auto);
        let stop = shutdown::on_signals()?;
        let ended = controller.run(&stop).await;
        ended.doing(DOING)?;
        Ok(true)
    })?
}

/// The name of this process for other controllers.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}, process {}", host.trim(), std::process::id())
}

/// Prints changes, errors and notes; returns whether there is neither an error nor a note.
fn print(reports: &[HostReport]) -> bool {
    let changes = reports.iter().flat_map(|report| {
        let changes = report.changes.iter();
        changes.map(|change| [report.host.clone(), change.to_string()])
    });
    let changes: Vec<_> = changes.collect();
    if changes.is_empty() {
        terminal::line("no host was changed");
    } else {
        terminal::print(&table(["NAME", "CHANGE"], &changes));
    }
    let mut is_good = true;
    for report in reports {
        for problem in [&report.error, &report.note].into_iter().flatten() {
            terminal::notice(&format!("{}: {problem}", report.host));
            is_good = false;
        }
    }
    is_good
}
